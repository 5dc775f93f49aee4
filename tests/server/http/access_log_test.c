// SPDX-License-Identifier: MIT
// The access log: a line for each request, without its texts.
#include "support/events_posix.h"
#include "support/tool_model.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void ask(const served *s, const char *text, int status)
{
    reply r = reply_to_text(s, text);
    assert_int_equal(r.status, status);
    reply_free(&r);
}

static void each_request_has_a_line_without_its_text(void **state)
{
    (void)state;
    char options[512], text[8192];
    const char *model = temp_path("scripted.gguf"), *path = temp_path("access.log");
    tool_model(model);
    static const char keys[] = "second = k2\n";
    write_file(temp_path("log-keys"), keys, sizeof keys - 1);
    snprintf(options, sizeof options,
             "--parallel 2 --threads 1 --temp 0 --api-key k1 --api-key-file '%s' --access-log '%s'",
             temp_path("log-keys"), path);
    served s = serve(model, options);
    char *body = post_text("/v1/chat/completions", "Authorization: Bearer k2\r\nX-Request-Id: mine-1\r\n",
                           "{\"messages\": [{\"role\": \"user\", \"content\": \"weather\"}]}");
    ask(&s, body, 200);
    ask(&s, "GET /hidden-path?secret=1 HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: k1\r\n\r\n", 404);
    ask(&s, "GET /v1/models/hidden-name HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: hidden-key\r\n\r\n", 401);
    free(body);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);   // all requests are over then, and their lines written
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    const size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = 0;
    assert_null(strstr(text, "weather"));
    assert_null(strstr(text, "hidden-name"));
    assert_null(strstr(text, "hidden-key"));
    assert_null(strstr(text, "secret"));
    const json_t *chat = NULL, *missing = NULL, *refused = NULL;
    json_t *lines = json_array();
    for (char *line = text; *line; line = strchr(line, '\n') + 1) {
        json_t *json = json_loads(line, JSON_DISABLE_EOF_CHECK, NULL);
        if (!json || !strchr(line, '\n')) fail_msg("no line of JSON: %s", line);
        json_array_append_new(lines, json);
        const json_int_t status = json_integer_value(value_in(json, "status"));
        *(status == 200 ? &chat : status == 404 ? &missing : &refused) = json;
    }
    assert_int_equal(json_array_size(lines), 3);
    expect_text_in(chat, "id", "mine-1");
    expect_text_in(chat, "method", "POST");
    expect_text_in(chat, "path", "/v1/chat/completions");
    expect_text_in(chat, "key", "second");
    assert_true(json_is_false(value_in(chat, "aborted")));
    assert_true(json_integer_value(value_in(chat, "prompt_tokens")) > 10);
    assert_true(json_integer_value(value_in(chat, "answer_tokens")) > 5);
    assert_true(json_real_value(value_in(chat, "ms")) > 0);
    expect_text_in(missing, "path", "/hidden-path");   // without the query
    expect_text_in(missing, "method", "GET");
    expect_text_in(missing, "code", "not_found");
    assert_memory_equal(json_string_value(value_in(missing, "key")), "key:", 4);
    expect_text_in(refused, "path", "/v1/models/*");
    expect_text_in(refused, "code", "invalid_api_key");
    assert_true(json_is_null(value_in(refused, "key")));
    json_decref(lines);
}

static void a_file_that_cannot_be_opened_ends_the_server(void **state)
{
    (void)state;
    char arguments[512], said[1024];
    const char *model = temp_path("scripted.gguf");
    tool_model(model);
    snprintf(arguments, sizeof arguments, "'%s' --port 0 --access-log '%s/none/log'", model, model);
    assert_int_not_equal(serve_and_fail(arguments, said, sizeof said), 0);
    assert_non_null(strstr(said, "--access-log"));
    assert_non_null(strstr(said, "cannot be opened"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_request_has_a_line_without_its_text),
        cmocka_unit_test(a_file_that_cannot_be_opened_ends_the_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
