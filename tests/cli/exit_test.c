// SPDX-License-Identifier: MIT
// The exit codes of all commands: one table, in the code, in help and in docs/cli.md. A mistake has the same code in
// each command.
#include "support/command_posix.h"

#include <sys/stat.h>
#include <unistd.h>

// Each command that reads a model, with the arguments before and after the model. OUT is a file that may be written.
static const struct {
    const char *name, *after;
    bool has_text, has_engine;   // options of models, of engines
} commands[] = {
    {"run", "-q -p x -n 1", true, true},
    {"chat", "-q -n 1", true, true},
    {"serve", "--port 0", true, true},
    {"info", "", true, false},
    {"bench", "-q -p 4 -n 0 -r 1 --no-probe", true, true},
    {"perplexity", "-q -f README.md -c 8 --windows 1", true, true},
    {"tokenize", "", true, false},
    {"detokenize", "1", true, false},
    {"template", "--messages MESSAGES", false, false},
    {"logits", "-q --ids 1 -o OUT", true, true},
    {"embed", "-q -p x", true, true},
    {"rerank", "-q --query x -f README.md", true, true},
    {"convert", "OUT.gguf", false, false},
    {"quantize", "OUT.gguf", false, false},
    {"imatrix", "OUT -q -f README.md -c 16 --windows 1", true, false},
    {"kernels", "-q -o OUT --gpu h100", false, false},
    {"kl", "README.md -q -f README.md -c 16 --windows 1", false, false},
};

static char out_path[512], messages_path[512];

// Replaces the words in capitals by paths.
static void fill(char *line, size_t size, const char *format)
{
    static const char *const words[] = {"OUT", "MESSAGES", "README.md"};
    const char *paths[] = {out_path, messages_path, FRIT_SOURCE_DIR "/README.md"};
    size_t n = 0;
    while (*format && n + 512 < size) {
        size_t w = 0;
        while (w < FRIT_COUNT(words) && strncmp(format, words[w], strlen(words[w])) != 0) w++;
        if (w == FRIT_COUNT(words)) {
            line[n++] = *format++;
        } else {
            n += (size_t)snprintf(line + n, size - n, "%s", paths[w]);
            format += strlen(words[w]);
        }
    }
    line[n] = 0;
}

static void expect_code(size_t i, const char *model, const char *more, int code, const char *sentence)
{
    char after[2048], line[4096];
    fill(after, sizeof after, commands[i].after);
    snprintf(line, sizeof line, "%s %s%s%s %s %s", commands[i].name, model[0] ? "'" : "", model, model[0] ? "'" : "",
             after, more);
    expect(line, "", code, NULL, sentence);
}

static bool has_server(void)
{
    outcome o = frit("serve --port 0 --no-such-option", NULL);
    const bool has = !strstr(o.err, "this build has no server");
    outcome_free(&o);
    return has;
}

static void a_bad_model_is_3_in_every_command(void **state)
{
    (void)state;
    char empty[512], half[512], text[512], folder[512];
    snprintf(empty, sizeof empty, "%s", temp_path("empty.gguf"));
    write_file(empty, "", 0);
    snprintf(text, sizeof text, "%s", temp_path("text.gguf"));
    write_file(text, "no model at all\n", 16);
    snprintf(half, sizeof half, "%s", temp_path("half.gguf"));
    size_t n;
    char *model = read_file(project_path("models/fable.gguf"), &n);
    write_file(half, model, n / 2);
    free(model);
    snprintf(folder, sizeof folder, "%s", temp_path("folder"));
    mkdir(folder, 0777);
    const char *models[] = {"/nonexistent.gguf", "/nonexistent/", "/dev/null", "/", folder, empty, half, text};
    for (size_t m = 0; m < FRIT_COUNT(models); m++) {
        for (size_t i = 0; i < FRIT_COUNT(commands); i++) {
            if (strcmp(commands[i].name, "serve") == 0 && !has_server()) continue;
            expect_code(i, models[m], "", 3, "frit: ");
        }
    }
    rmdir(folder);
}

static void a_bad_template_or_adapter_is_3_in_every_command(void **state)
{
    (void)state;
    char broken[512], empty[512], more[1024];
    snprintf(broken, sizeof broken, "%s", temp_path("broken.jinja"));
    write_file(broken, "a\n{% if", 7);
    snprintf(empty, sizeof empty, "%s", temp_path("empty.jinja"));
    write_file(empty, "", 0);
    const char *templates[] = {"/nonexistent.jinja", "/tmp", broken, empty};
    for (size_t t = 0; t < FRIT_COUNT(templates); t++) {
        snprintf(more, sizeof more, "--chat-template '%s'", templates[t]);
        for (size_t i = 0; i < FRIT_COUNT(commands); i++)
            if (commands[i].has_text) expect_code(i, "", more, 3, templates[t]);
    }
    for (size_t t = 0; t < FRIT_COUNT(templates) - 1; t++) {
        snprintf(more, sizeof more, "template --messages '%s' --template '%s'", messages_path, templates[t]);
        expect(more, NULL, 3, NULL, "frit: ");
    }
    char model[1024];   // a file that is a model, not an adapter
    snprintf(model, sizeof model, "--lora %s", project_path("models/fable.gguf"));
    const char *adapters[] = {"--lora /nonexistent.gguf", "--lora /dev/null", "--control-vector /nonexistent.gguf",
                              model};
    for (size_t a = 0; a < FRIT_COUNT(adapters); a++)
        for (size_t i = 0; i < FRIT_COUNT(commands); i++)
            if (commands[i].has_engine && strcmp(commands[i].name, "embed") != 0 &&
                strcmp(commands[i].name, "rerank") != 0)
                expect_code(i, "", adapters[a], 3, strchr(adapters[a], '/'));
}

static void wrong_options_are_2_in_every_command(void **state)
{
    (void)state;
    char model[512];
    snprintf(model, sizeof model, "%s", project_path("models/fable.gguf"));
    for (size_t i = 0; i < FRIT_COUNT(commands); i++) {
        expect_code(i, "", "--no-such-option", 2, "no option '--no-such-option'");
        expect_code(i, "", "-Z", 2, "no option '-Z'");
        expect_code(i, "", "--model", 2, "--model: needs a value");
        const bool converts = strstr("convert quantize", commands[i].name);
        if (commands[i].has_text || converts) expect_code(i, converts ? model : "", "--type q9", 2, "'q9'");
        if (!commands[i].has_engine) continue;
        expect_code(i, "", "-t 100000000", 2, "threads");
        expect_code(i, "", "-t x", 2, "threads");
        expect_code(i, "", "-ctk q9", 2, "'q9'");
        expect_code(i, "", "--cpu pentium", 2, "pentium");
    }
    expect("frobnicate", NULL, 2, NULL, "no command 'frobnicate'");
    expect("help frobnicate", NULL, 2, NULL, "no command 'frobnicate'");
    expect("completions tcsh", NULL, 2, NULL, "no shell 'tcsh'");
}

static void a_file_of_text_that_cannot_be_read_is_1(void **state)
{
    (void)state;
    const char *lines[] = {
        "run -f %s",   "perplexity -f %s",       "tokenize -f %s", "tokenize --compare %s",
        "embed -f %s", "template --messages %s", "chat --load %s", "perplexity --kl-divergence --kl-divergence-base %s",
    };
    const char *paths[] = {"/nonexistent", "/tmp"};
    for (size_t i = 0; i < FRIT_COUNT(lines); i++) {
        for (size_t p = 0; p < FRIT_COUNT(paths); p++) {
            char line[256];
            const int n = (int)(strstr(lines[i], "%s") - lines[i]);
            snprintf(line, sizeof line, "%.*s%s", n, lines[i], paths[p]);
            expect(line, "", 1, NULL, paths[p]);
        }
    }
}

static void too_little_memory_is_4(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(commands); i++)
        if (commands[i].has_engine && strcmp(commands[i].name, "bench") != 0 &&
            strcmp(commands[i].name, "perplexity") != 0)
            expect_code(i, "", "-c 134217728", 4, "134217728 tokens");
    expect("bench -q -p 4 -n 0 -d 10000000 -npl 4096 -r 1 --no-probe", NULL, 4, NULL, "10000004 tokens");
}

static void help_and_docs_tell_every_code(void **state)
{
    (void)state;
    outcome codes = frit("help exit-codes", NULL), overview = frit("help", NULL), man = frit("help --man", NULL);
    char *document = read_file(FRIT_SOURCE_DIR "/docs/cli.md", NULL), *save = NULL;
    int n = 0;
    assert_non_null(strstr(man.out, codes.out));
    for (const char *line = overview.out; *line; line += strcspn(line, "\n") + 1)
        if (strcspn(line, "\n") > 80) fail_msg("frit help is wider than 80 columns: %s", line);
    for (char *line = strtok_r(codes.out, "\n", &save); line; line = strtok_r(NULL, "\n", &save), n++) {
        char row[512];
        snprintf(row, sizeof row, "| %d | %s |", (int)strtol(line, NULL, 10), line + 7);
        if (!strstr(document, row)) fail_msg("not in docs/cli.md: %s", row);
        snprintf(row, sizeof row, "\n%.40s", line);   // a line of frit help may be broken after that
        if (!strstr(overview.out, row)) fail_msg("not in frit help: %s", row);
    }
    assert_int_equal(n, 9);
    free(document);
    outcome_free(&codes);
    outcome_free(&overview);
    outcome_free(&man);
}

static void the_table_has_every_command(void **state)
{
    (void)state;
    outcome o = frit("help", NULL);
    const char *at = strstr(o.out, "Commands:\n");
    for (at = strchr(at, '\n') + 1; *at == ' '; at = strchr(at, '\n') + 1) {
        char name[32] = "";
        assert_int_equal(sscanf(at, "%31s", name), 1);
        static const char *const without[] = {"help", "completions", "pull", "list", "show", "rm"};   // no model file
        bool found = false;
        for (size_t i = 0; i < FRIT_COUNT(without); i++) found = found || strcmp(without[i], name) == 0;
        for (size_t i = 0; i < FRIT_COUNT(commands); i++) found = found || strcmp(commands[i].name, name) == 0;
        if (!found) fail_msg("frit %s is not in the table", name);
    }
    outcome_free(&o);
}

int main(void)
{
    snprintf(out_path, sizeof out_path, "%s", temp_path("out-file"));
    snprintf(messages_path, sizeof messages_path, "%s", temp_path("messages.json"));
    const char *messages = "[{\"role\": \"user\", \"content\": \"Hello\"}]";
    write_file(messages_path, messages, strlen(messages));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_model_is_3_in_every_command),
        cmocka_unit_test(a_bad_template_or_adapter_is_3_in_every_command),
        cmocka_unit_test(wrong_options_are_2_in_every_command),
        cmocka_unit_test(a_file_of_text_that_cannot_be_read_is_1),
        cmocka_unit_test(too_little_memory_is_4),
        cmocka_unit_test(help_and_docs_tell_every_code),
        cmocka_unit_test(the_table_has_every_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
