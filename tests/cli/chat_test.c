// SPDX-License-Identifier: MIT
// frit chat in a pipe.
#include "support/chat_process.h"
#include "support/support.h"

#include <sys/stat.h>

// Checks that stderr contains every part.
static void expect_said(const char *arguments, const char *input, const char *const *parts, size_t n_parts)
{
    int code;
    char *err, *out = run_piped(arguments, input, &code, &err);
    for (size_t i = 0; i < n_parts; i++)
        if (!strstr(err, parts[i])) fail_msg("'%s' is not said after\n%s\nbut\n%s", parts[i], input, err);
    assert_int_equal(code, 0);
    free(err);
    free(out);
}
#define EXPECT_SAID(arguments, input, ...)                                         \
    do {                                                                           \
        const char *parts_[] = {__VA_ARGS__};                                      \
        expect_said((arguments), (input), parts_, sizeof parts_ / sizeof *parts_); \
    } while (0)

static void every_command_says_what_it_does(void **state)
{
    (void)state;
    EXPECT_SAID("-q -n 4", "/help\n", "/regen", "/stats", "Three quotes", "/exit");
    EXPECT_SAID("-q -n 4", "/system\n/system Be kind.\n/system\n/system -\n/system\n", "no system message; /system",
                "system message set", "Be kind.");
    EXPECT_SAID("-q -n 4 --system 'Be brief.'", "/show system\n/clear\n/show messages\n", "Be brief.", "begins anew",
                "system: Be brief.");
    EXPECT_SAID("-q -n 4", "/set top-k 7\n/set n-predict 9\n/show\n", "top-k              7", "n-predict          9",
                "no-penalize-nl     off ");
    EXPECT_SAID("-q -n 4", "/set tpo-k 7\n/set top-p 1.5\n/set temp\n/set logit-bias 1=2\n", "did you mean 'top-k'?",
                "top-p", "/set NAME VALUE", "command line only");
    EXPECT_SAID("-q -n 4", "/set vars {\"a\": 1}\n/set vars 7\n/show\n", "{\"a\":1}", "vars: not a JSON object");
    EXPECT_SAID("-q -n 4", "/show prompt\n/show model\n/show nothing\n", "fable.gguf", "/show settings, messages");
    EXPECT_SAID("-q -n 4", "/tokens Once upon a time\n/tokens\n", "4 tokens", "of the context of");
    EXPECT_SAID("-q -n 4", "/stats\nHello\n/stats\n", "nothing has been answered yet", "tokens were run in",
                "  context ");
    EXPECT_SAID("-n 4 --verbose", "Hello\n", "tokens were run in");
    EXPECT_SAID("-q -n 4", "/undo\n/regen\nHello\n/undo\n/show messages\n", "nothing to take back",
                "nothing to answer yet", "taken back: Hello", "no messages yet");
    EXPECT_SAID("-q -n 4", "/rgen\n/frobnicate\n", "did you mean /regen?", "/help lists them");
    EXPECT_SAID("-q -n 4", "/read\n/read /nonexistent\n/save\n/load\n/load /nonexistent\n/tools /nonexistent\n",
                "/read FILE [QUESTION]", "/nonexistent: No such file", "/save FILE", "/load FILE",
                "/nonexistent: No such file", "/nonexistent: No such file");
    EXPECT_SAID("-q -n 4", "//etc is a folder\n/show messages\n", "user: /etc is a folder");
    EXPECT_SAID("-q -n 4", "\"\"\"one\ntwo\n\nthree\"\"\"\n\"\"\"\nfour\n\"\"\"\n/show messages\n",
                "user: one\ntwo\n\nthree\n", "user: four\n");
    EXPECT_SAID("-q -n 4", "/exit\nnever asked\n", "");
}

static void only_answers_go_to_stdout(void **state)
{
    (void)state;
    int code;
    char *err, *out = run_piped("-q -n 12", "/help\nTell me a story.\n/show messages\n", &code, &err);
    assert_int_equal(code, 0);
    char *end = strchr(out, '\n');
    assert_true(end && end > out && strspn(end, "\n") == strlen(end));
    assert_null(strchr(out, '\033'));
    assert_null(strstr(out, "/help"));
    *end = 0;
    assert_non_null(strstr(err, out));   // /show messages says the same
    free(out);
    free(err);
}

static void a_turn_runs_only_what_is_new(void **state)
{
    (void)state;
    int code;
    char *err, *out = run_piped("-q -n 8", "Tell me a story.\n/stats\nTell me more.\n/stats\n", &code, &err);
    size_t kept[2], ran[2];
    char *at = err;
    for (int i = 0; i < 2; i++) {
        at = strstr(at, "  prompt");
        assert_non_null(at);
        assert_int_equal(sscanf(at, "  prompt %zu tokens were kept from the last turn %zu tokens", &kept[i], &ran[i]),
                         2);
        at++;
    }
    assert_int_equal(kept[0], 0);
    assert_true(kept[1] >= ran[0]);   // the whole first question at least
    assert_true(ran[1] < kept[1] + ran[1]);
    free(out);
    free(err);
}

// The oldest turns are removed, the system message stays, and the chat continues.
static void a_full_context_lets_the_oldest_turns_leave(void **state)
{
    (void)state;
    static const char input[] = "First question?\nSecond question?\nThird question?\nFourth question?\nFifth "
                                "question?\n/show prompt\n/show messages\n";
    int code;
    char *err, *out = run_piped("-c 128 -n 30 --system 'Be kind.'", input, &code, &err);
    assert_int_equal(code, 0);
    assert_non_null(strstr(err, "the context was full: the model no longer sees the oldest"));
    assert_null(strstr(err, "too long"));
    char *all = strstr(err, "system: Be kind."), *prompt = strstr(err, "Be kind.");
    assert_true(prompt && all && prompt < all);
    *all = 0;
    assert_null(strstr(prompt, "First question?"));
    assert_non_null(strstr(prompt, "Fifth question?"));
    assert_non_null(strstr(all + 1, "user: First question?"));   // the conversation keeps it
    free(out);
    free(err);
    out = run_piped("-c 128 -n 30 --no-context-shift --system 'Be kind.'", input, &code, &err);
    assert_non_null(strstr(err, "the conversation has become too long"));
    assert_null(strstr(err, "no longer sees"));
    free(out);
    free(err);
}

// Within an answer: it continues as if there had been no earlier turn.
static void an_answer_goes_on_where_the_context_ends(void **state)
{
    (void)state;
    int code;
    char *err,
        *out = run_piped("-c 128 -n 60", "Tell me a story.\nTell me the tale of Rapunzel.\n/stats\n", &code, &err);
    assert_int_equal(code, 0);
    assert_non_null(strstr(err, "the context was full: the model no longer sees the oldest 2 messages"));
    assert_non_null(strstr(out, "from which a splendid garden could be seen"));
    assert_non_null(strstr(err, "answer       60 tokens"));
    free(out);
    free(err);
    out =
        run_piped("-c 128 -n 60 --no-context-shift", "Tell me a story.\nTell me the tale of Rapunzel.\n", &code, &err);
    assert_non_null(strstr(err, "the context is full; -c N makes it larger"));
    free(out);
    free(err);
    out =
        run_piped("-c 16", "This message alone has many more tokens than the context can ever take, so many of them.\n",
                  &code, &err);
    assert_int_equal(code, 1);
    assert_non_null(strstr(err, "the message is too long for the context"));
    free(out);
    free(err);
}

static void a_model_without_a_template_gets_one_with_a_warning(void **state)
{
    (void)state;
    int code;
    char arguments[600];
    snprintf(arguments, sizeof arguments, "-n 4 %s", shared_path("models/stories260k-f32.gguf"));
    char *err, *out = run_piped(arguments, "Once upon a time\n/show model\n", &code, &err);
    assert_int_equal(code, 0);
    assert_non_null(strstr(err, "the model has no chat template: conversations are written as chatml"));
    assert_non_null(strstr(err, "template guessed"));
    assert_true(strlen(out) > 1);
    free(out);
    free(err);
}

static void a_conversation_is_saved_and_loaded(void **state)
{
    (void)state;
    char path[512], input[1200], load[700];
    snprintf(path, sizeof path, "%s", temp_path("talk.json"));
    snprintf(input, sizeof input, "/system Be kind.\nHello\n/save %s\n", path);
    EXPECT_SAID("-q -n 4", input, "talk.json: 3 messages");
    snprintf(load, sizeof load, "-q -n 4 --load '%s'", path);
    EXPECT_SAID(load, "/show messages\n", "system: Be kind.", "user: Hello", "assistant: ");
    snprintf(input, sizeof input, "/load %s\n/undo\n/show messages\n", path);
    EXPECT_SAID("-q -n 4", input, "3 messages", "taken back: Hello");
    // The file is also valid input of frit template.
    char command[1400];
    snprintf(command, sizeof command, "'%s/frit' template --messages '%s' | grep -q Hello", FRIT_BUILD_DIR, path);
    assert_int_equal(system(command), 0);
    write_file(path, "[{\"content\": 1}]", 16);
    snprintf(input, sizeof input, "/load %s\n", path);
    EXPECT_SAID("-q -n 4", input, "neither a list of messages");
}

static void a_file_is_read(void **state)
{
    (void)state;
    char path[512], input[1200];
    snprintf(path, sizeof path, "%s", temp_path("note.txt"));
    write_file(path, "The frog said\nnothing.\n", 23);
    snprintf(input, sizeof input, "/read %s What did it say?\n/show messages\n", path);
    EXPECT_SAID("-q -n 4", input, "user: The frog said\nnothing.\n\n\nWhat did it say?");
}

static void a_zero_byte_hides_nothing(void **state)
{
    (void)state;
    char command[1024];
    snprintf(command, sizeof command,
             "printf 'a\\0b\\n/show messages\\n' | '%s/frit' chat -q -n 1 2>&1 | grep -q 'user: a\xef\xbf\xbd"
             "b'",
             FRIT_BUILD_DIR);
    assert_int_equal(system(command), 0);
}

static void an_editor_is_refused_in_a_pipe(void **state)
{
    (void)state;
    setenv("VISUAL", "sleep 1000; echo", 1);
    EXPECT_SAID("-q -n 4", "Hello\n/edit\n/edit Hello you\n/show messages\n",
                "/edit starts an editor, which needs a terminal", "user: Hello\n");
    unsetenv("VISUAL");
}

int main(void)
{
    chat_keep_state();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_command_says_what_it_does),
        cmocka_unit_test(only_answers_go_to_stdout),
        cmocka_unit_test(a_turn_runs_only_what_is_new),
        cmocka_unit_test(a_full_context_lets_the_oldest_turns_leave),
        cmocka_unit_test(an_answer_goes_on_where_the_context_ends),
        cmocka_unit_test(a_model_without_a_template_gets_one_with_a_warning),
        cmocka_unit_test(a_conversation_is_saved_and_loaded),
        cmocka_unit_test(a_file_is_read),
        cmocka_unit_test(a_zero_byte_hides_nothing),
        cmocka_unit_test(an_editor_is_refused_in_a_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
