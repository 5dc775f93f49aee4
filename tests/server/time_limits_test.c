// SPDX-License-Identifier: MIT
// Time limits of answers and idle connections.
#include "support/served_posix.h"
#include "support/tiny_model.h"

#include <poll.h>
#include <unistd.h>

#define TEXT   "/v1/completions"
#define NO_END "\"temperature\": 0, \"logit_bias\": {\"2\": -100}"

enum { LONG_CTX = 200000, LONG_PROMPT = 150000 };

static served s;

static int start_server(void **state)
{
    (void)state;
    const tiny_options options = {.n_ctx = LONG_CTX};
    s = serve(tiny_model("limits.gguf", &options),
              "--threads 1 --parallel 2 --batch 1 --answer-timeout 1 --idle-timeout 1");
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    return stop_serving(&s, SIGTERM);
}

static json_int_t int_at(const json_t *json, const char *name)
{
    return json_integer_value(json_object_get(json_object_get(json, "usage"), name));
}

static void expect_finish(const json_t *json, size_t choice, const char *finish)
{
    const json_t *found = json_array_get(json_object_get(json, "choices"), choice);
    assert_string_equal(json_string_value(json_object_get(found, "finish_reason")), finish);
}

static void an_answer_ends_with_what_there_is(void **state)
{
    (void)state;
    reply r = post(&s, TEXT, "{\"prompt\": \"a\", \"max_tokens\": -1, \"n\": 2, " NO_END "}");
    assert_int_equal(r.status, 200);
    json_t *json = reply_json(&r);
    expect_finish(json, 0, "length");
    expect_finish(json, 1, "length");
    assert_in_range(int_at(json, "completion_tokens"), 2, 2 * (LONG_CTX - 1000));
    json_decref(json);
    reply_free(&r);
    r = post(&s, TEXT, "{\"prompt\": \"a\", \"max_tokens\": -1, \"stream\": true, " NO_END "}");
    assert_int_equal(r.status, 200);
    assert_non_null(strstr(r.body, "\"finish_reason\":\"length\""));
    assert_non_null(strstr(r.body, "data: [DONE]"));
    reply_free(&r);
    expect_health(&s, "running", 0);
}

// The time limit passes before the first token.
static void a_prompt_counts(void **state)
{
    (void)state;
    char *body = malloc(8 * LONG_PROMPT);
    size_t n = (size_t)sprintf(body, "{\"max_tokens\": 5, " NO_END ", \"prompt\": [5");
    for (int i = 1; i < LONG_PROMPT; i++) n += (size_t)sprintf(body + n, ",%d", 4 + i % 26);
    strcpy(body + n, "]}");
    reply r = post(&s, TEXT, body);
    free(body);
    if (r.status != 200) fail_msg("%d: %s", r.status, r.body);
    json_t *json = reply_json(&r);
    expect_finish(json, 0, "length");
    assert_int_equal(int_at(json, "completion_tokens"), 0);
    assert_int_equal(int_at(json, "prompt_tokens"), LONG_PROMPT);
    json_decref(json);
    reply_free(&r);
    r = post(&s, TEXT, "{\"prompt\": \"a\", \"max_tokens\": 3, " NO_END "}");   // the session works as before
    json = reply_json(&r);
    assert_int_equal(int_at(json, "completion_tokens"), 3);
    json_decref(json);
    reply_free(&r);
}

static void an_idle_connection_is_closed(void **state)
{
    (void)state;
    const int fd = connect_to(&s);
    send_text(fd, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    reply r = read_reply(fd);
    assert_int_equal(r.status, 200);
    reply_free(&r);
    struct pollfd end = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&end, 1, 30000), 1);
    char byte;
    assert_int_equal(read(fd, &byte, 1), 0);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_ends_with_what_there_is),
        cmocka_unit_test(a_prompt_counts),
        cmocka_unit_test(an_idle_connection_is_closed),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
