// SPDX-License-Identifier: MIT
// Odd values of requests: zero bytes, numbers at the ends of their ranges, names of models, and unknown fields.
#include "support/served_posix.h"
#include "support/tiny_model.h"

#define CHAT "/v1/chat/completions"
#define TEXT "/v1/completions"

static served s, shared;   // of the running test; of the tests without a server of their own

static int start_server(void **state)
{
    (void)state;
    s = serve(tiny_model("tiny.gguf", &(tiny_options){0}), "--parallel 2 --threads 1 --alias one --alias two");
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    return stop_serving(&s, SIGTERM);
}

// Ends a test's own server, also if the test failed.
static int stop_own_server(void **state)
{
    const int code = stop_server(state);
    s = shared;
    return code;
}

static int start_strict_server(void **state)
{
    (void)state;
    shared = s;
    s = serve(tiny_model("strict.gguf", &(tiny_options){.n_ctx = 200}), "--threads 1 --strict-fields");
    return 0;
}

// Every alias is named.
static void check_names(void)
{
    reply r = post(&s, TEXT, "{\"prompt\": \"a\", \"model\": \"three\"}");
    if (!strstr(r.body, "The model 'three' does not exist; this server has 'one', 'two'.")) fail_msg("%s", r.body);
    reply_free(&r);
}

static void check_body(const char *path, const char *body, int status, const char *code)
{
    reply r = post(&s, path, body);
    if (r.status != status) fail_msg("%s %s: status %d, %s", path, body, r.status, r.body);
    if (code) check_problem(&r, status, code);
    reply_free(&r);
}

static void odd_values_are_taken(void **state)
{
    (void)state;
    check_body(TEXT, "{\"prompt\": \"a\\u0000b\", \"max_tokens\": 1}", 200, NULL);
    check_body(CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\\u0000b\"}], \"max_tokens\": 1}", 200,
               NULL);
    check_body(TEXT, "{\"prompt\": \"a\", \"max_tokens\": 1, \"seed\": 18446744073709551615}", 200, NULL);
    check_body(
        CHAT,
        "{\"seed\": 18446744073709551615, \"messages\": [{\"role\": \"user\", \"content\": \"\\\"seed\\\": 1\"}],"
        " \"max_tokens\": 1}",
        200, NULL);
    check_body(TEXT, "{\"prompt\": \"a\", \"seed\": 18446744073709551616}", 400, "invalid_value");
    check_body(TEXT, "{\"prompt\": \"a\", \"x\": 18446744073709551615}", 400, "invalid_json");
    check_body(TEXT, "{\"prompt\": \"a\", \"max_tokens\": 1, \"top_k\": -1}", 200, NULL);
    check_body(TEXT, "{\"prompt\": \"a\", \"top_k\": -2}", 400, "invalid_value");
    check_body(TEXT, "{\"prompt\": \"a\", \"stop\": \"a\\u0000\"}", 400, "invalid_value");
    check_body(TEXT, "{\"prompt\": \"a\", \"model\": \"two\\u0000\"}", 400, "invalid_value");
    check_body(TEXT, "{\"prompt\": \"a\", \"max_tokens\": 1, \"model\": \"two\"}", 200, NULL);
    check_body(TEXT, "{\"prompt\": \"a\", \"max_tokens\": 1, \"model\": \"tiny\"}", 200, NULL);
    check_body(TEXT, "{\"prompt\": \"a\", \"max_tokens\": 1, \"model\": \"three\"}", 404, "model_not_found");
    check_names();
    check_body(CHAT,
               "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"tool_calls\":"
               " [{\"id\": \"1\", \"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": \"{}\"}}]}]}",
               200, NULL);
    check_body(TEXT, "{\"prompt\": \"a\", \"use_beam_search\": true}", 400, "unsupported_parameter");
    check_body(TEXT, "{\"prompt\": \"a\", \"best_of\": 1, \"max_tokens\": 1, \"unheard_of\": 1}", 200, NULL);
    reply r = post(&s, TEXT, "{\"prompt\": \"a\", \"max_completion_tokens\": 3, \"logit_bias\": {\"2\": -100}}");
    json_t *json = reply_json(&r), *usage = json_object_get(json, "usage");
    assert_int_equal(json_integer_value(json_object_get(usage, "completion_tokens")), 3);
    json_decref(json);
    reply_free(&r);
    r = get(&s, "/v1/models");
    json = reply_json(&r);
    assert_int_equal(json_array_size(json_object_get(json, "data")), 2);
    json_decref(json);
    reply_free(&r);
}

static void too_long_contexts_have_one_code(void **state)
{
    (void)state;
    char *long_text = malloc(4000), body[5000];
    memset(long_text, 'a', 3000);
    long_text[3000] = 0;
    snprintf(body, sizeof body, "{\"prompt\": \"%s\"}", long_text);
    check_body(TEXT, body, 400, "context_length_exceeded");
    snprintf(body, sizeof body, "{\"messages\": [{\"role\": \"user\", \"content\": \"%s\"}]}", long_text);
    check_body(CHAT, body, 400, "context_length_exceeded");
    snprintf(body, sizeof body, "{\"input\": \"%s\"}", long_text);
    check_body("/v1/embeddings", body, 400, "context_length_exceeded");
    free(long_text);
}

static void unknown_fields_are_refused_where_that_is_asked_for(void **state)
{
    (void)state;
    check_body(TEXT, "{\"prompt\": \"a\", \"max_tokens\": 1, \"user\": \"me\", \"temperature\": 1, \"top_k\": 5}", 200,
               NULL);
    check_body(TEXT, "{\"prompt\": \"a\", \"unheard_of\": 1}", 400, "unknown_parameter");
    check_body(
        CHAT,
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"tool_choice\": \"auto\", \"max_tokens\": 1}", 200,
        NULL);
    check_body("/tokenize", "{\"content\": \"a\", \"contents\": \"b\"}", 400, "unknown_parameter");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_values_are_taken),
        cmocka_unit_test(too_long_contexts_have_one_code),
        cmocka_unit_test_setup_teardown(unknown_fields_are_refused_where_that_is_asked_for, start_strict_server,
                                        stop_own_server),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
