// SPDX-License-Identifier: MIT
// frit serve --config: the lines of a file, their precedence, and errors.
#include "frit/cli/config.h"
#include "support/events_posix.h"
#include "support/tiny_model.h"

#include <unistd.h>

static const char *model(int which)
{
    static char paths[3][1024];
    char name[16];
    const tiny_options options = {.n_ctx = 512, .seed = (uint64_t)which + 1};
    snprintf(name, sizeof name, "c%d.gguf", which);
    if (!paths[which][0]) snprintf(paths[which], sizeof paths[which], "%s", tiny_model(name, &options));
    return paths[which];
}

// ---------------------------------------------------------------------------------------- lines

static bool parse(cli_config *config, const char *text, size_t n, int *line, char sentence[256])
{
    char *copy = malloc(n + 1);
    memcpy(copy, text, n);
    copy[n] = 0;
    return cli_config_parse(config, copy, n, line, sentence);
}

static void lines_are_sections_keys_and_values(void **state)
{
    (void)state;
    static const char text[] = "\xef\xbb\xbf# first\n\n port = 80\t# a port\r\nname=a b # c\nkey = a#b\nempty =\n"
                               "quoted = \" a # b \" # c\nequal = a=b\n[ one ] # d\n\tpath = /x y/z\n[two]\nlast = 1";
    static const struct {
        const char *section, *key, *value;
        int line;
    } want[] = {{NULL, "port", "80", 3}, {NULL, "name", "a b", 4},       {NULL, "key", "a#b", 5},
                {NULL, "empty", "", 6},  {NULL, "quoted", " a # b ", 7}, {NULL, "equal", "a=b", 8},
                {"one", NULL, NULL, 9},  {"one", "path", "/x y/z", 10},  {"two", NULL, NULL, 11},
                {"two", "last", "1", 12}};
    cli_config config;
    int line;
    char sentence[256];
    assert_true(parse(&config, text, sizeof text - 1, &line, sentence));
    assert_int_equal(config.n, FRIT_COUNT(want));
    for (size_t i = 0; i < config.n; i++) {
        const cli_config_entry *e = &config.items[i];
        assert_int_equal(e->line, want[i].line);
        assert_true(!e->section == !want[i].section && !e->key == !want[i].key);
        if (e->section) assert_string_equal(e->section, want[i].section);
        if (e->key) assert_string_equal(e->key, want[i].key);
        if (e->key) assert_string_equal(e->value, want[i].value);
    }
    cli_config_free(&config);
}

static void bad_lines_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
        int line;
    } rows[] = {{"a = 1\nport 80\n", "found 'port 80', expected KEY = VALUE", 2},
                {"= 5", "found '= 5'", 1},
                {"a # b = 5", "found 'a # b = 5'", 1},
                {"[a\n", "found '[a'", 1},
                {"[a] b\n", "found '[a] b'", 1},
                {"\n[ ]\n", "name is empty", 2},
                {"[a]\nx = 1\n[b]\n[a]\n", "section [a] began on line 1", 4},
                {"a = \"b\n", "ends the value \"b", 1},
                {"a = \"b\" c\n", "found 'c' after", 1},
                {"a = b\x01\n", "control character 1", 1},
                {"a = b\rc\n", "control character 13", 1}};
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        cli_config config;
        int line = 0;
        char sentence[256] = "";
        if (parse(&config, rows[i].text, strlen(rows[i].text), &line, sentence)) fail_msg("taken: %s", rows[i].text);
        if (!strstr(sentence, rows[i].part)) fail_msg("%s: %s", rows[i].text, sentence);
        assert_int_equal(line, rows[i].line);
        cli_config_free(&config);
    }
    cli_config config;
    int line;
    char sentence[256];
    assert_false(parse(&config, "a = b\0c\n", 8, &line, sentence));
    assert_non_null(strstr(sentence, "control character 0"));
    cli_config_free(&config);
}

// ---------------------------------------------------------------------------------------- options

static const char *file_of(const char *text)
{
    static char path[1024];
    if (!path[0]) snprintf(path, sizeof path, "%s", temp_path("serve.conf"));
    write_file(path, text, strlen(text));
    return path;
}

static int number_in(const served *s, const char *path, const char *name)
{
    reply r = get(s, path);
    if (r.status != 200) fail_msg("%s: %s", path, r.body);
    json_t *json = reply_json(&r);
    const int n = (int)json_integer_value(value_in(json, name));
    json_decref(json);
    reply_free(&r);
    return n;
}

static served serve_with(const char *arguments)
{
    char all[4096];
    snprintf(all, sizeof all, "--port 0 %s", arguments);
    return serve_arguments(all);
}

static void sections_are_models_with_options_of_their_own(void **state)
{
    (void)state;
    char text[4096], arguments[2048];
    snprintf(text, sizeof text,
             "# two models\nthreads = 1\nparallel = 3\nctx = 128\ntop-k = 7\n[small]\npath = %s\nctx = 64\n"
             "[large]\npath = \"%s\"\nparallel = 2\nalias = big\nalias = huge\ntemp = 0.5\n",
             model(0), model(1));
    snprintf(arguments, sizeof arguments, "--config '%s'", file_of(text));
    served s = serve_with(arguments);
    json_decref(post_for(&s, "/v1/completions", "{\"model\": \"huge\", \"prompt\": \"a\", \"max_tokens\": 1}", 200));
    assert_int_equal(number_in(&s, "/props", "total_slots"), 3);
    assert_int_equal(number_in(&s, "/props?model=small", "default_generation_settings.n_ctx"), 64);
    assert_int_equal(number_in(&s, "/props?model=big", "total_slots"), 2);
    assert_int_equal(number_in(&s, "/props?model=big", "default_generation_settings.n_ctx"), 128);
    assert_int_equal(number_in(&s, "/props?model=big", "default_generation_settings.params.top_k"), 7);
    reply r = get(&s, "/props?model=big");
    assert_non_null(strstr(r.body, "\"temperature\":0.5"));
    reply_free(&r);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void the_command_line_goes_before_the_file(void **state)
{
    (void)state;
    char text[4096], arguments[3072];
    snprintf(text, sizeof text, "threads = 1\nctx = 128\nparallel = 3\nalias = x\n[c0]\nctx = 32\ntop-k = 5\n");
    snprintf(arguments, sizeof arguments, "'%s' --config '%s' --ctx 96 --alias y", model(0), file_of(text));
    served s = serve_with(arguments);
    assert_int_equal(number_in(&s, "/props", "default_generation_settings.n_ctx"), 96);
    assert_int_equal(number_in(&s, "/props", "default_generation_settings.params.top_k"), 5);
    assert_int_equal(number_in(&s, "/props", "total_slots"), 3);
    json_decref(post_for(&s, "/v1/completions", "{\"model\": \"x\", \"prompt\": \"a\", \"max_tokens\": 1}", 404));
    json_decref(post_for(&s, "/v1/completions", "{\"model\": \"y\", \"prompt\": \"a\", \"max_tokens\": 1}", 200));
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void mistakes_name_file_line_and_key(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } rows[] = {
        {"a = 1\n", "line 1: no option 'a'"},
        {"port = 1\npparallel = 2\n", "line 2: no option 'pparallel'; did you mean 'parallel'?"},
        {"port = abc\n", "line 1: option port"},
        {"port = 99999\n", "line 1: option port"},
        {"port =\n", "line 1: option port"},
        {"strict-fields = maybe\n", "line 1: option strict-fields"},
        {"access-log =\n", "line 1: --access-log: the name is empty"},
        {"port = 1\nport = 2\n", "line 2: 'port' was given on line 1 already"},
        {"config = other\n", "line 1: a config file cannot name another one"},
        {"[a]\nport = 80\n", "line 2: 'port' holds for the whole server"},
        {"[a]\nmodel = b\n", "line 2: 'model' holds for the whole server"},
        {"[a]\nctx = 64\n", "line 1: section [a] has no path of a model"},
        {"[a]\npath =\n", "line 2: the path is empty"},
        {"[a]\npath = b\npath = c\n", "line 3: 'path' was given already"},
        {"[a]\npath = /nowhere.gguf\n[b]\npath = x\n", "'/nowhere.gguf' does not exist"},
        {"port 80\n", "line 1: found 'port 80', expected KEY = VALUE"},
        {"path = x\n", "line 1: no option 'path'"},
    };
    char arguments[2048], said[8192];
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        snprintf(arguments, sizeof arguments, "--port 0 --config '%s'", file_of(rows[i].text));
        if (strstr(rows[i].text, "port")) snprintf(arguments, sizeof arguments, "--config '%s'", file_of(rows[i].text));
        const int code = serve_and_fail(arguments, said, sizeof said);
        if ((code != 2 && code != 3) || !strstr(said, rows[i].part)) fail_msg("%s: %d %s", rows[i].text, code, said);
    }
    assert_int_equal(serve_and_fail("--config /nowhere/serve.conf", said, sizeof said), 1);
    assert_non_null(strstr(said, "/nowhere/serve.conf: No such file"));
    assert_int_equal(serve_and_fail("--config /dev/zero", said, sizeof said), 2);
    assert_non_null(strstr(said, "more than 1048576 bytes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_sections_keys_and_values),
        cmocka_unit_test(bad_lines_are_named),
        cmocka_unit_test(sections_are_models_with_options_of_their_own),
        cmocka_unit_test(the_command_line_goes_before_the_file),
        cmocka_unit_test(mistakes_name_file_line_and_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
