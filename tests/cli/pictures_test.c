// SPDX-License-Identifier: MIT
// Pictures in frit run and frit chat.
#include "support/chat_process.h"
#include "support/support.h"

#include <sys/stat.h>
#include <sys/wait.h>

static const char template_text[] =
    "{%- for message in messages -%}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

typedef struct fixture {
    char model[1024];    // options that name the model and its template
    char picture[480];   // a file whose name has a space
    char escaped[512];   // its name as a terminal types it
    char other[512];
} fixture;

static fixture open_fixture(void)
{
    fixture f;
    size_t n;
    char *bytes = read_file(shared_path("goldens/media/images/j444.jpg"), &n);
    char template[512];
    snprintf(template, sizeof template, "%s", temp_path("template.jinja"));
    write_file(template, template_text, strlen(template_text));
    snprintf(f.picture, sizeof f.picture, "%s", temp_path("my picture.jpg"));
    write_file(f.picture, bytes, n);
    free(bytes);
    snprintf(f.escaped, sizeof f.escaped, "%.*s\\ picture.jpg", (int)(strlen(f.picture) - strlen(" picture.jpg")),
             f.picture);
    snprintf(f.other, sizeof f.other, "%s", shared_path("goldens/media/images/j422.jpg"));
    snprintf(f.model, sizeof f.model, "-m '%s' --chat-template '%s' -n 6 -c 512",
             shared_path("goldens/media/qwen2_5_vl"), template);
    return f;
}

// Returns what the chat prints after the lines of input; *said is what it says.
static char *chat_with(const fixture *f, const char *options, const char *input, char **said)
{
    char arguments[2048];
    int code;
    snprintf(arguments, sizeof arguments, "%s %s", f->model, options);
    char *out = run_piped(arguments, input, &code, said);
    if (code != 0) fail_msg("the chat ends with %d: %s", code, *said);
    return out;
}

static void expect_said(const char *said, const char *part)
{
    if (!strstr(said, part)) fail_msg("'%s' is not said, but\n%s", part, said);
}

// Returns what frit run prints, and its exit code.
static char *run_with(const fixture *f, const char *options, int *code)
{
    char command[4096], out[512];
    snprintf(out, sizeof out, "%s", temp_path("run"));
    snprintf(command, sizeof command, "'%s/frit' run %s -q --temp 0 %s >'%s' 2>&1", FRIT_BUILD_DIR, f->model, options,
             out);
    const int status = system(command);
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return read_file(out, NULL);
}

static char *answer_of_run(const fixture *f, const char *options)
{
    int code;
    char *out = run_with(f, options, &code);
    if (code != 0) fail_msg("%s", out);
    return out;
}

static void run_takes_pictures_from_stdin_and_within_the_text(void **state)
{
    (void)state;
    const fixture f = open_fixture();
    const char *const forms[][2] = {
        // before and after the name of the file
        {"--image '", "' -p 'What?' </dev/null"},
        {"--image - -p 'What?' <'", "'"},
        {"-p '{image}What?' </dev/null --image '", "'"},
    };
    const char *const wrong[][3] = {
        {"--image '", "' -p '{image} or {image}?'", "the prompt has {image} 2 times and --image is given 1 times"},
        {"--image - <'", "'", "give the prompt by -p"},
        {"--image /dev/null -p 'What?' --image '", "'", "/dev/null"},
        {"--image - -p 'What?' </dev/null --system '", "'", "stdin: 0 bytes are no picture"},
    };
    char *expected = NULL, options[1024];
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        snprintf(options, sizeof options, "%s%s%s", forms[i][0], f.picture, forms[i][1]);
        char *answer = answer_of_run(&f, options);
        if (expected) assert_string_equal(answer, expected);
        free(expected);
        expected = answer;
    }
    free(expected);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int code;
        snprintf(options, sizeof options, "%s%s%s", wrong[i][0], f.picture, wrong[i][1]);
        char *said = run_with(&f, options, &code);
        assert_int_not_equal(code, 0);
        expect_said(said, wrong[i][2]);
        free(said);
    }
}

// A picture comes by --image, by /image with and without a question, and by its name as a terminal types it.
static void every_way_gives_the_same_answer(void **state)
{
    (void)state;
    const fixture f = open_fixture();
    char input[3072], options[1024], *said;
    snprintf(options, sizeof options, "--image '%s' -p 'What is this?' </dev/null", f.picture);
    char *expected = answer_of_run(&f, options);
    const char *const forms[][2] = {
        // before and after the name of the file
        {"/image \"", "\" What is this?\n"},
        {"/image '", "'\nWhat is this?\n"},
        {"/image nothing.png\n/image '", "'\nWhat is this?\n"},
    };
    assert_true(strlen(expected) > 1);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        snprintf(input, sizeof input, "%s%s%s", forms[i][0], f.picture, forms[i][1]);
        char *out = chat_with(&f, "", input, &said);
        assert_string_equal(out, expected);
        free(out);
        free(said);
    }
    snprintf(input, sizeof input, "%s\nWhat is this?\n", f.escaped);
    char *out = chat_with(&f, "", input, &said);
    assert_string_equal(out, expected);
    expect_said(said, "1 picture goes with the next message");
    free(out);
    free(said);
    snprintf(options, sizeof options, "-q --image '%s'", f.picture);
    out = chat_with(&f, options, "What is this?\n", &said);
    assert_string_equal(out, expected);
    free(out);
    free(said);
    free(expected);
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, part)); at++) n++;
    return n;
}

// The picture stays in the conversation, and is not encoded again.
static void pictures_stay_in_the_conversation(void **state)
{
    (void)state;
    const fixture f = open_fixture();
    char input[4096], *said;
    snprintf(input, sizeof input,
             "/image '%s'\nWhat is this?\n/stats\nAnd now?\n/stats\n/show messages\n/undo\n/undo\n/show messages\n"
             "What else?\n/regen\n/image '%s' Both?\n/clear\n/show prompt\nHi\n",
             f.picture, f.other);
    char *out = chat_with(&f, "", input, &said);
    assert_int_equal(count(said, "are 12 tokens, encoded in"), 1);
    assert_int_equal(count(said, " tokens, encoded in"), 2);
    expect_said(said, " 0 tokens were kept");
    assert_int_equal(count(said, " 0 tokens were kept"), 1);   // not in the second turn
    expect_said(said, "user: picture ");
    expect_said(said, "taken back: What is this?\n1 picture goes with the next message");
    expect_said(said, "no messages yet");
    assert_int_equal(count(out, "\n"), 6);
    free(out);
    free(said);
}

// A picture that waits is not lost when a message with another one is taken back.
static void pictures_that_wait_stay(void **state)
{
    (void)state;
    const fixture f = open_fixture();
    char input[2048], *said;
    snprintf(input, sizeof input, "/image '%s' What is this?\n/image '%s'\n/undo\nBoth?\n/show messages\n", f.picture,
             f.other);
    char *out = chat_with(&f, "", input, &said);
    expect_said(said, "2 pictures go with the next message");
    assert_int_equal(count(said, "user: picture "), 2);
    assert_true(strstr(said, "my picture.jpg\nuser: picture ") != NULL);
    free(out);
    free(said);
}

static void a_saved_conversation_names_its_pictures(void **state)
{
    (void)state;
    const fixture f = open_fixture();
    char input[2048], saved[512], options[1024], *said, *first, *again;
    snprintf(saved, sizeof saved, "%s", temp_path("saved.json"));
    snprintf(input, sizeof input, "/image '%s' What is this?\n/save %s\nMore?\n", f.picture, saved);
    first = chat_with(&f, "", input, &said);
    free(said);
    char *json = read_file(saved, NULL);
    expect_said(json, "\"type\": \"image\"");
    expect_said(json, f.picture);
    free(json);
    snprintf(options, sizeof options, "--load '%s'", saved);
    again = chat_with(&f, options, "More?\n", &said);
    expect_said(said, "are 12 tokens, encoded in");
    assert_true(strlen(first) > strlen(again));
    assert_string_equal(first + strlen(first) - strlen(again), again);
    free(first);
    free(again);
    free(said);
}

static void what_cannot_be_is_said(void **state)
{
    static const char conversation[] =
        "[{\"role\": \"user\", \"content\": [{\"type\": \"image\", \"path\": \"/none.png\"}]}]";
    (void)state;
    const fixture f = open_fixture();
    char input[2048], options[1024], arguments[2048], missing[512], *said;
    snprintf(missing, sizeof missing, "%s", temp_path("missing.json"));
    write_file(missing, conversation, sizeof conversation - 1);
    snprintf(input, sizeof input, "/image\n/image /none.png What?\n/load %s\n/show messages\n/none.png\n", missing);
    char *out = chat_with(&f, "-q", input, &said);
    expect_said(said, "/image FILE [QUESTION]");
    assert_int_equal(count(said, "/none.png: cannot be opened"), 2);
    expect_said(said, "no messages yet");
    expect_said(said, "no command /none.png");
    assert_string_equal(out, "");
    free(out);
    free(said);
    snprintf(input, sizeof input, "/image '%s'\n/show messages\n", f.picture);
    snprintf(options, sizeof options, "-q --session '%s'", temp_path("chat.frit"));
    out = chat_with(&f, options, input, &said);
    expect_said(said, "a chat with --session takes no pictures");
    free(out);
    free(said);
    out = chat_with(&f, "-q --context-shift", input, &said);
    expect_said(said, "a chat with --context-shift takes no pictures");
    free(out);
    free(said);
    int code;
    snprintf(arguments, sizeof arguments, "-q --image '%s'", f.picture);   // the bundled model reads none
    out = run_piped(arguments, "Hello\n", &code, &said);
    assert_int_equal(code, 1);
    expect_said(said, "pictures");
    free(out);
    free(said);
}

int main(void)
{
    chat_keep_state();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_takes_pictures_from_stdin_and_within_the_text),
        cmocka_unit_test(every_way_gives_the_same_answer),
        cmocka_unit_test(pictures_stay_in_the_conversation),
        cmocka_unit_test(pictures_that_wait_stay),
        cmocka_unit_test(a_saved_conversation_names_its_pictures),
        cmocka_unit_test(what_cannot_be_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
