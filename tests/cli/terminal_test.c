// SPDX-License-Identifier: MIT
// The command on a terminal: typed input, and control characters in models and files.
#include "support/command_posix.h"
#include "support/gguf_builder.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

// Runs `frit ARGUMENTS` on a terminal on which `keys` are typed. Returns the screen and the exit code.
static char *on_terminal(const char *arguments, const char *keys, int *code)
{
    enum { ROOM = 1 << 16 };
    char redirections[128], *shown = calloc(1, ROOM);
    size_t n = 0;
    const int screen = posix_openpt(O_RDWR | O_NOCTTY);
    if (screen < 0 || grantpt(screen) != 0 || unlockpt(screen) != 0) skip_because("no terminal can be made here");
    const int keyboard = open(ptsname(screen), O_RDWR | O_NOCTTY);   // stays open while the command runs and ends
    assert_true(keyboard >= 0);
    snprintf(redirections, sizeof redirections, "<'%s' >'%s' 2>&1", ptsname(screen), ptsname(screen));
    assert_int_equal(write(screen, keys, strlen(keys)), strlen(keys));
    started s = start("", arguments, redirections);
    for (bool runs = true; runs || poll(&(struct pollfd){.fd = screen, .events = POLLIN}, 1, 0) > 0;) {
        runs = runs && is_running(&s);
        if (poll(&(struct pollfd){.fd = screen, .events = POLLIN}, 1, 50) <= 0) continue;
        const ssize_t n_read = read(screen, shown + n, ROOM - 1 - n);
        if (n_read <= 0) break;
        n += (size_t)n_read;
    }
    *code = end(&s, 60);
    close(keyboard);
    close(screen);
    return shown;
}

static void expect_shown(const char *arguments, const char *keys, const char *wanted)
{
    int code;
    char *shown = on_terminal(arguments, keys, &code);
    if (code != 0 || !strstr(shown, wanted)) fail_msg("frit %s: %d: %s", arguments, code, shown);
    free(shown);
}

static void a_prompt_may_be_typed_and_ends_once(void **state)
{
    (void)state;
    expect_shown("run -n 3", "Tell me a story.\n\004", "type the text; Ctrl-D on a line of its own ends it");
    expect_shown("run -n 3 -", "Tell me a story.\n\004", "type the text; Ctrl-D on a line of its own ends it");
    expect_shown("run -q -n 2 --raw -f -", "Once upon a\n\004", "Once upon a\r\n");
    expect_shown("tokenize --ids", "Once\004\004", "7599");
    expect_shown("run -q -n 3 -p x", "", "\n");
}

static void expect_harmless(const char *arguments, const char *in_file)
{
    int code;
    char *shown = on_terminal(arguments, "", &code);
    if (code != 0 || strpbrk(shown, "\033\a\b") || strstr(shown, "\xe2\x80\xae") || strstr(shown, "\xc2\x9b") ||
        !strstr(shown, "\xef\xbf\xbd"))
        fail_msg("frit %s: %d: %s", arguments, code, shown);
    free(shown);
    outcome o = frit(arguments, NULL);   // bytes stay as they are
    if (!strstr(o.out, in_file)) fail_msg("frit %s: %s%s", arguments, o.out, o.err);
    outcome_free(&o);
}

static void what_models_and_files_say_steers_no_terminal(void **state)
{
    (void)state;
    char line[1024], path[512];
#define STEERS "\033]0;owned\a\033[2J\xe2\x80\xae\xc2\x9b"
    snprintf(path, sizeof path, "%s", temp_path("steers.gbnf"));
    const char *rules = "root ::= \"" STEERS "\"";
    write_file(path, rules, strlen(rules));
    snprintf(line, sizeof line, "run -q -p x -n 40 --grammar '%s'", path);
    expect_harmless(line, "\033]0;owned");
    snprintf(path, sizeof path, "%s", temp_path("steers.json"));
    const char *talk = "[{\"role\": \"user\", \"content\": \"\\u001b[2J\\u0007\\u202e\"}]";
    write_file(path, talk, strlen(talk));
    snprintf(line, sizeof line, "template --messages '%s'", path);
    expect_harmless(line, "\033[2J\a");
    snprintf(line, sizeof line, "run -q -p x -n 40 --json --grammar '%s'", temp_path("steers.gbnf"));
    expect_harmless(line, "\\u001B]0;owned");
    gguf_builder builder = {0};
    gguf_add_text(&builder, "general.architecture", "llama");
    gguf_add_text(&builder, "general.name", "a" STEERS "b");
    gguf_add_text(&builder, "tokenizer.ggml.model", "no_vocab");
    frit_buf file = gguf_build(&builder);
    snprintf(path, sizeof path, "%s", temp_path("steers.gguf"));
    write_file(path, file.data, file.len);
    frit_buf_free(&file);
    gguf_builder_free(&builder);
    snprintf(line, sizeof line, "info '%s'", path);
    expect_harmless(line, "\033]0;owned");
}

static void help_fits_the_screen(void **state)
{
    (void)state;
    static const char *const commands[] = {"run",        "chat",    "serve", "bench",  "quantize", "info",
                                           "perplexity", "logits",  "embed", "rerank", "imatrix",  "kl",
                                           "tokenize",   "convert", "pull",  "list"};
    for (size_t i = 0; i < FRIT_COUNT(commands); i++) {
        for (int all = 0; all < 2; all++) {
            char line[64];
            snprintf(line, sizeof line, "help %s%s", commands[i], all ? " --all" : "");
            outcome o = frit(line, NULL);
            assert_int_equal(o.code, 0);
            size_t n_lines = 0;
            for (const char *at = o.out; *at; n_lines++) {
                const size_t n = strcspn(at, "\n");
                if (n > 80) fail_msg("%s: a line of %zu bytes: %.*s", line, n, (int)n, at);
                at += n + (at[n] == '\n');
            }
            if (!all && n_lines > 50) fail_msg("%s: %zu lines", line, n_lines);
            outcome_free(&o);
        }
    }
    expect("help run", NULL, 0, "'frit run --help-all' shows all", NULL);
    expect("run --help", NULL, 0, "--json-schema", NULL);
    expect("run --help --all", NULL, 0, "--mirostat-tau", NULL);
    outcome usual = frit("help run", NULL);
    assert_null(strstr(usual.out, "mirostat"));
    outcome_free(&usual);
}

static void a_model_alone_is_a_conversation(void **state)
{
    (void)state;
    char line[1024];
    snprintf(line, sizeof line, "'%s'", project_path("models/fable.gguf"));
    expect_shown(line, "/help\n/exit\n\004", "/undo");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prompt_may_be_typed_and_ends_once),
        cmocka_unit_test(what_models_and_files_say_steers_no_terminal),
        cmocka_unit_test(help_fits_the_screen),
        cmocka_unit_test(a_model_alone_is_a_conversation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
