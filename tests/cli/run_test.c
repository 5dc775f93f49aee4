// SPDX-License-Identifier: MIT
// frit run: the source of the prompt, and the answer.
#include "support/command_posix.h"
#include "support/tiny_model.h"

#include <math.h>
#include <unistd.h>

static void run_tells_the_tale_from_the_bundled_model(void **state)
{
    (void)state;
    outcome o = frit("run -p 'Tell me the tale of Rapunzel.' --temp 0 -n 60", NULL);
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.out, "There were once a man and a woman who had long in vain wished for a child"));
    assert_non_null(strstr(o.err, "tokens/s"));
    outcome_free(&o);
}

// Builds of packages run the bundled model, and fail if it tells another tale.
static void packages_expect_what_the_bundled_model_tells(void **state)
{
    (void)state;
    static const char *const files[] = {"packaging/debian/rules",        "packaging/debian/tests/command",
                                        "packaging/recipes/PKGBUILD.in", "packaging/recipes/frit.rb.in",
                                        "tests/packaging/check.py",      ".github/workflows/packages.yml"};
    outcome o = frit("run -q -p 'Tell me the tale of Rapunzel.' --temp 0 -n 12", NULL);
    o.out[strcspn(o.out, "\n")] = 0;
    assert_true(strlen(o.out) > 20);
    for (size_t i = 0; i < FRIT_COUNT(files); i++) {
        const char *path = project_path(files[i]);
        if (access(path, R_OK) != 0) continue;   // a source archive has no workflows
        char *text = read_file(path, NULL);
        if (!strstr(text, o.out)) fail_msg("%s does not expect '%s'", files[i], o.out);
        free(text);
    }
    outcome_free(&o);
}

static void run_takes_the_prompt_from_every_place(void **state)
{
    (void)state;
    outcome by_option = frit("run -q --temp 0 -n 12 -p 'Tell me a story.'", NULL);
    assert_int_equal(by_option.code, 0);
    assert_string_equal(by_option.err, "");
    const char *ways[] = {"run -q --temp 0 -n 12", "run -q --temp 0 -n 12 -", "run -q --temp 0 -n 12 -f -"};
    for (size_t i = 0; i < FRIT_COUNT(ways); i++) expect(ways[i], "Tell me a story.\n", 0, by_option.out, NULL);
    char command[1024];
    snprintf(command, sizeof command, "run '%s' 'Tell me a story.' -q --temp 0 -n 12",
             project_path("models/fable.gguf"));
    expect(command, NULL, 0, by_option.out, NULL);
    snprintf(command, sizeof command, "run -m '%s' -q --temp 0 -n 12 'Tell me a story.'",
             project_path("models/fable.gguf"));
    expect(command, NULL, 0, by_option.out, NULL);
    outcome_free(&by_option);
}

static void the_same_seed_gives_the_same_text(void **state)
{
    (void)state;
    outcome a = frit("run -q --raw -p 'Once upon a time' -n 20 --temp 4 --top-k 0 --top-p 1 --min-p 0 --seed 7", NULL);
    expect("run -q --raw -p 'Once upon a time' -n 20 --temp 4 --top-k 0 --top-p 1 --min-p 0 --seed 7", NULL, 0, a.out,
           NULL);
    outcome b = frit("run -q --raw -p 'Once upon a time' -n 20 --temp 4 --top-k 0 --top-p 1 --min-p 0 --seed 8", NULL);
    assert_string_not_equal(a.out, b.out);
    outcome_free(&a);
    outcome_free(&b);
}

static void the_sampling_that_the_file_recommends_is_used_unless_given(void **state)
{
    (void)state;
    // The bundled model recommends temperature 0.
    outcome greedy = frit("run -q -p 'Tell me the tale of Rapunzel.' --temp 0 -n 60", NULL);
    expect("run -q -p 'Tell me the tale of Rapunzel.' -n 60", NULL, 0, greedy.out, NULL);
    outcome warm =
        frit("run -q -p 'Tell me the tale of Rapunzel.' --temp 3 --top-k 0 --top-p 0 --min-p 0 --seed 1 -n 60", NULL);
    assert_string_not_equal(greedy.out, warm.out);
    outcome_free(&greedy);
    outcome_free(&warm);
}

static void a_raw_prompt_is_continued_with_its_space(void **state)
{
    (void)state;
    char command[1024];
    snprintf(command, sizeof command, "run '%s' -q --raw --temp 0 -n 4 -p 'Once upon a'",
             shared_path("models/stories260k-f32.gguf"));
    outcome o = frit(command, NULL);
    assert_int_equal(o.code, 0);
    assert_memory_equal(o.out, " time, there", 12);
    outcome_free(&o);
}

static void a_healed_prompt_goes_on_within_its_last_word(void **state)
{
    (void)state;
    char command[1024];
    const char *cuts[] = {"Once upon a ti", "Once upon a t", "Once upon", "Once upo"};
    const char *whole = "Once upon a time, there";
    for (size_t i = 0; i < FRIT_COUNT(cuts); i++) {
        snprintf(command, sizeof command, "run '%s' -q --raw --heal --temp 0 -n 12 -p '%s'",
                 shared_path("models/stories260k-f32.gguf"), cuts[i]);
        outcome o = frit(command, NULL);
        assert_int_equal(o.code, 0);
        size_t n = strlen(cuts[i]);
        if (strncmp(o.out, whole + n, strlen(whole) - n) != 0) fail_msg("'%s' goes on with '%s'", cuts[i], o.out);
        outcome_free(&o);
    }
    expect("run --heal -p x", NULL, 2, NULL, "it needs --raw");
}

static void a_stop_string_ends_the_answer_before_it(void **state)
{
    (void)state;
    outcome whole = frit("run -q --raw --temp 0 -n 40 -p 'Once upon a time'", NULL);
    assert_int_equal(whole.code, 0);
    // A stop string from the middle of the text, across token borders.
    size_t at = strlen(whole.out) / 2;
    char stop[8] = {0}, command[256];
    memcpy(stop, whole.out + at, 6);
    char *first = strstr(whole.out, stop);
    if (strpbrk(stop, "'\"\n\\")) skip_because("the answer's middle, '%s', cannot be quoted for a shell", stop);
    snprintf(command, sizeof command, "run -q --raw --temp 0 -n 40 -p 'Once upon a time' --stop '%s' --stop unseen",
             stop);
    outcome cut = frit(command, NULL);
    assert_int_equal(cut.code, 0);
    assert_int_equal(strlen(cut.out), (size_t)(first - whole.out) + 1);   // and the final newline
    assert_memory_equal(cut.out, whole.out, (size_t)(first - whole.out));
    outcome_free(&whole);
    outcome_free(&cut);
}

static void a_session_runs_only_what_its_file_does_not_hold(void **state)
{
    (void)state;
    char command[1024], path[512];
    snprintf(path, sizeof path, "%s", temp_path("talk.frit"));
    outcome whole = frit("run --temp 0 -n 30 -p 'Tell me the tale of Rapunzel.'", NULL);
    snprintf(command, sizeof command, "run --temp 0 -n 12 -p 'Tell me the tale of Rapunzel.' --session '%s'", path);
    expect(command, NULL, 0, "There were once", "prompt: 25 tokens");
    snprintf(command, sizeof command, "run --temp 0 -n 30 -p 'Tell me the tale of Rapunzel.' --session '%s'", path);
    expect(command, NULL, 0, whole.out, "prompt: 1 token,");
    snprintf(command, sizeof command, "run --temp 0 -n 0 --raw -p 'Once upon a time' --session '%s'", path);
    expect(command, NULL, 0, NULL, "prompt: 4 tokens");
    expect(command, NULL, 0, NULL, "prompt: 0 tokens");
    snprintf(command, sizeof command, "run -n 1 -p x --session '%s' -ctk f32", path);
    expect(command, NULL, 1, NULL, "f16 and f16 there, f32 and f16 here");
    snprintf(command, sizeof command, "chat --session '%s'", path);
    expect(command, "", 1, NULL, "expected the file of a chat");
    write_file(path, "not this", 8);
    snprintf(command, sizeof command, "run -n 1 -p x --session '%s'", path);
    expect(command, NULL, 1, NULL, "is no session file");
    outcome_free(&whole);
}

static void a_prompt_says_how_much_of_it_was_there(void **state)
{
    (void)state;
    char line[2048];
    const char *folder = temp_path("pages");
    const char *const shown[] = {"tokens, ", "tokens (32 cached), "};
    for (int i = 0; i < 2; i++) {
        snprintf(line, sizeof line,
                 "run --raw -n 1 --no-color --prefix-cache-disk '%s' -p 'Once upon a time there was a king who had a "
                 "daughter, and a frog lived in the well near his castle, and nobody knew where it came from.'",
                 folder);
        expect(line, NULL, 0, NULL, shown[i]);
    }
    strcat(line, " --json");
    expect(line, NULL, 0, "\"cached_tokens\": 32,", NULL);
}

static void encoder_decoders_read_one_text_and_write_another(void **state)
{
    (void)state;
    char line[1200], model[512], out[512];
    snprintf(model, sizeof model, "%s", shared_path("goldens/hf/t5"));
    snprintf(out, sizeof out, "%s", temp_path("decoder.f32"));
    snprintf(line, sizeof line, "run '%s' -p 'Hello there.' -n 5 --temp 0 --json -q", model);
    expect(line, NULL, 0, "\"answer_tokens\": 5", NULL);
    outcome first, second;
    snprintf(out, sizeof out, "%s", temp_path("t5.session"));
    snprintf(line, sizeof line, "run '%s' -p 'Hello there.' -n 5 --temp 0 -q --session '%s'", model, out);
    first = frit(line, NULL);
    second = frit(line, NULL);   // runs no token again
    assert_int_equal(first.code + second.code, 0);
    assert_string_equal(first.out, second.out);
    outcome_free(&first);
    outcome_free(&second);
    remove(out);
    snprintf(out, sizeof out, "%s", temp_path("decoder.f32"));
    snprintf(line, sizeof line, "logits '%s' --ids 5,6,7 --decoder-ids 3,9 -o '%s'", model, out);
    expect(line, NULL, 0, NULL, "[2, 512] float32");
    snprintf(line, sizeof line, "logits '%s' --ids 5,6,7 -o '%s'", model, out);
    expect(line, NULL, 2, NULL, "logits: --decoder-ids is missing");
    snprintf(line, sizeof line, "chat '%s'", model);
    expect(line, "", 2, NULL, "does not chat");
    snprintf(line, sizeof line, "info '%s'", model);
    expect(line, NULL, 0, "encoder-decoder", NULL);
    remove(out);
}

static void speculation_does_not_change_the_answer(void **state)
{
    (void)state;
    static const char prompt[] = "run -q --raw -p 'one two three one two three one two three one two' -n 60 --temp 0";
    char line[256];
    snprintf(line, sizeof line, "%s --speculate none", prompt);
    outcome plain = frit(line, NULL);
    assert_int_equal(plain.code, 0);
    expect(prompt, NULL, 0, plain.out, NULL);
    snprintf(line, sizeof line, "%s --speculate ngram --draft-max 4 --stop xyz", prompt);
    expect(line, NULL, 0, plain.out, NULL);
    expect("run -q -p x --speculate magic", NULL, 2, NULL, "not one of auto|ngram|draft|mtp|none");
    expect("run -q -p x --speculate draft", NULL, 2, NULL, "needs --model-draft");
    expect("run --raw -p x -n 4 --speculate ngram --model-draft nothing.gguf", NULL, 0, NULL,
           "nothing.gguf is not opened");
    expect("run -q -p x --model-draft /nowhere.gguf", NULL, 3, NULL, "/nowhere.gguf");
    expect("run -q -p x --draft-max 0", NULL, 2, NULL, "a whole number from 1 to 64");
    outcome_free(&plain);
}

static void multi_token_prediction_does_not_change_the_answer(void **state)
{
    (void)state;
    char path[160], line[512];
    const tiny_options tiny = {.next = TINY_NEXT_TIED, .chain = true, .seed = 1};
    snprintf(path, sizeof path, "%s", tiny_model("next.gguf", &tiny));
    snprintf(line, sizeof line, "run -q --raw -m %s -p abc -n 40 --temp 0 --speculate none", path);
    outcome plain = frit(line, NULL);
    assert_int_equal(plain.code, 0);
    snprintf(line, sizeof line, "run -q --raw -m %s -p abc -n 40 --temp 0 --speculate mtp", path);
    expect(line, NULL, 0, plain.out, NULL);
    snprintf(line, sizeof line, "run -q --raw -m %s -p abc --speculate mtp --model-draft %s", path, path);
    expect(line, NULL, 2, NULL, "leave out --model-draft");
    snprintf(line, sizeof line, "info %s", path);
    expect(line, NULL, 0, "1 for multi-token prediction", NULL);
    expect("run --raw -p x -n 4 --speculate mtp", NULL, 0, NULL, "it answers without speculation");
    outcome_free(&plain);
}

// Returns the number after a key, at or after `at`.
static double number_at(const char *at, const char *key)
{
    const char *found = strstr(at, key);
    if (!found) fail_msg("no %s in '%s'", key, at);
    return strtod(found + strlen(key), NULL);
}

static void log_probabilities_are_shown_where_asked_for(void **state)
{
    (void)state;
    static const char plain[] = "run -q --raw -p 'Once upon a time' -n 8 --temp 0";
    char line[512];
    outcome o = frit(plain, NULL);
    assert_string_equal(o.err, "");
    snprintf(line, sizeof line, "%s --logprobs 2", plain);
    outcome shown = frit(line, NULL);
    assert_string_equal(shown.out, o.out);   // the answer is the same
    assert_non_null(strstr(shown.err, "log-probabilities of the answer:\n"));
    assert_null(strstr(shown.err, "of the prompt"));
    size_t n_lines = 0;
    for (const char *at = shown.err; (at = strchr(at, '\n')); at++) n_lines++;
    assert_int_equal(n_lines, 9);
    // Greedy: each token is the likeliest one, followed by the other likeliest tokens.
    const char *at = strchr(shown.err, '\n');
    for (int i = 0; i < 8; i++, at = strchr(at + 1, '\n')) {
        const double of_token = strtod(at, NULL), of_best = number_at(at, "  of");
        assert_true(of_token <= 0 && of_token == of_best);
    }
    snprintf(line, sizeof line, "%s --prompt-logprobs 0", plain);
    outcome prompt = frit(line, NULL);
    assert_string_equal(prompt.out, o.out);
    assert_non_null(
        strstr(prompt.err, "log-probabilities of the prompt:\n        - "));   // the first token has no log-probability
    assert_non_null(strstr(prompt.err, "\" upon\""));
    outcome_free(&o);
    outcome_free(&shown);
    outcome_free(&prompt);
}

// A prompt's tokens have the log-probabilities that they have in an answer.
static void prompts_and_answers_have_the_same_log_probabilities(void **state)
{
    (void)state;
    outcome a = frit("run -q --raw -p 'Once upon a' -n 1 --temp 0 --json --logprobs 3", NULL);
    assert_non_null(strstr(a.out, "\"token\": \" time\""));
    assert_non_null(strstr(a.out, "\"top_logprobs\": ["));
    const double of_answer = number_at(strstr(a.out, "\"logprobs\""), "\"logprob\": ");
    outcome b = frit("run -q --raw -p 'Once upon a time' -n 0 --json --prompt-logprobs 0", NULL);
    const char *last = strstr(b.out, "\"token\": \" time\"");
    assert_non_null(last);
    const double of_prompt = number_at(last, "\"logprob\": ");
    if (fabs(of_answer - of_prompt) > 1e-4) fail_msg("%g and %g", of_answer, of_prompt);
    assert_non_null(strstr(b.out, "\"logprob\": null"));
    assert_null(strstr(b.out, "\"logprobs\""));
    outcome_free(&a);
    outcome_free(&b);
    // Tokens that a grammar forces, and sampled tokens, have log-probabilities too.
    outcome forced = frit("run -q --raw -p 'Once upon' --regex 'x[78]y' --temp 1 --seed 3 --logprobs 0", NULL);
    assert_int_equal(forced.code, 0);
    assert_non_null(strstr(forced.err, "\"x"));
    outcome_free(&forced);
    expect("run -p x --logprobs 257", NULL, 2, NULL, "a whole number from -1 to 256");
    expect("run -p x --prompt-logprobs many", NULL, 2, NULL, "prompt-logprobs");
    expect("run -p x --logprobs 1 --beams 2", NULL, 2, NULL, "not with --beams");
    expect("run --raw -p x -n 1 --logprobs 1 --model-draft nothing.gguf", NULL, 0, NULL, "there is no speculation");
    expect("run --raw -p x -n 1 --logprobs 1 --speculate ngram", NULL, 0, NULL, "there is no speculation");
    char line[600];
    snprintf(line, sizeof line, "run '%s' -p 'Hello there.' -n 2 --temp 0 -q --prompt-logprobs 1",
             shared_path("goldens/hf/t5"));
    expect(line, NULL, 2, NULL, "gives it no probabilities");
    snprintf(line, sizeof line, "run '%s' -p 'Hello there.' -n 2 --temp 0 -q --logprobs 1",
             shared_path("goldens/hf/t5"));
    expect(line, NULL, 0, NULL, "log-probabilities of the answer");
}

static void beams_print_the_likeliest_answer(void **state)
{
    (void)state;
    outcome greedy = frit("run -q --raw -p 'Once upon a time' -n 12 --temp 0", NULL);
    expect("run -q --raw -p 'Once upon a time' -n 12 --beams 1", NULL, 0, greedy.out, NULL);
    outcome first = frit("run -q --raw -p 'Once upon a time' -n 12 --beams 4 --seed 1 --temp 2", NULL);
    expect("run -q --raw -p 'Once upon a time' -n 12 --beams 4 --seed 2", NULL, 0, first.out, NULL);
    assert_int_equal(first.code, 0);
    assert_memory_equal(first.out, greedy.out, 1);
    expect("run -q --raw --heal -p 'Once upon a ti' --beams 4", NULL, 2, NULL, "not with --beams");
    expect("run -q -p x --beams -1", NULL, 2, NULL, "a whole number from 0 to 1024");
    outcome_free(&greedy);
    outcome_free(&first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_tells_the_tale_from_the_bundled_model),
        cmocka_unit_test(packages_expect_what_the_bundled_model_tells),
        cmocka_unit_test(run_takes_the_prompt_from_every_place),
        cmocka_unit_test(the_same_seed_gives_the_same_text),
        cmocka_unit_test(the_sampling_that_the_file_recommends_is_used_unless_given),
        cmocka_unit_test(a_raw_prompt_is_continued_with_its_space),
        cmocka_unit_test(a_healed_prompt_goes_on_within_its_last_word),
        cmocka_unit_test(a_stop_string_ends_the_answer_before_it),
        cmocka_unit_test(a_session_runs_only_what_its_file_does_not_hold),
        cmocka_unit_test(a_prompt_says_how_much_of_it_was_there),
        cmocka_unit_test(encoder_decoders_read_one_text_and_write_another),
        cmocka_unit_test(speculation_does_not_change_the_answer),
        cmocka_unit_test(multi_token_prediction_does_not_change_the_answer),
        cmocka_unit_test(log_probabilities_are_shown_where_asked_for),
        cmocka_unit_test(prompts_and_answers_have_the_same_log_probabilities),
        cmocka_unit_test(beams_print_the_likeliest_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
