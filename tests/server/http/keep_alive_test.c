// SPDX-License-Identifier: MIT
// Keep-alive comments and progress of streams before their first token.
#include "support/events_posix.h"
#include "support/tiny_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONG_CTX = 8000 };

static const char *model(void)
{
    static char path[1024];
    const tiny_options options = {.n_ctx = LONG_CTX,
                                  .chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"};
    if (!path[0]) snprintf(path, sizeof path, "%s", tiny_model("waits.gguf", &options));
    return path;
}

// Starts a server with one session. The model's long name makes events so long that a client that does not read keeps
// the session.
static served serve_one(void)
{
    return serve_with_long_events(model(), "--parallel 1 --max-queue 16 --threads 1 --drain 0 --sse-ping 1");
}

// Takes the session and keeps it, by reading only the first bytes of its answer.
static int occupy(const served *s)
{
    const int fd =
        send_post(s, "/v1/completions",
                  "{\"prompt\": \"a\", \"max_tokens\": -1, \"logit_bias\": {\"2\": -100}, \"stream\": true}");
    await_bytes(fd);
    return fd;
}

static const struct {
    const char *path, *body, *sign, *error;
} protocols[] = {
    {"/v1/completions", "{\"prompt\": \"b\", \"max_tokens\": 2, \"logit_bias\": {\"2\": -100}, \"stream\": true}",
     "\r\n: keep-alive\n\n", "data: {\"error\":{\"message\":\"the server is shutting down\""},
    {"/v1/chat/completions",
     "{\"messages\": [{\"role\": \"user\", \"content\": \"b\"}], \"max_tokens\": 2, \"stream\": true}",
     "\r\n: keep-alive\n\n", "data: {\"error\":{\"message\":\"the server is shutting down\""},
    {"/v1/messages", "{\"messages\": [{\"role\": \"user\", \"content\": \"b\"}], \"max_tokens\": 2, \"stream\": true}",
     "event: ping\ndata: {\"type\":\"ping\"}\n\n", "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":"},
    {"/v1/responses", "{\"input\": \"b\", \"max_output_tokens\": 2, \"stream\": true}", "\r\n: keep-alive\n\n",
     "event: response.failed\ndata: {"},
    {"/completion", "{\"prompt\": \"b\", \"n_predict\": 2, \"stream\": true}", "\r\n: keep-alive\n\n",
     "data: {\"error\":{\"message\":\"the server is shutting down\""},
    {"/api/generate", "{\"prompt\": \"b\", \"raw\": true, \"options\": {\"num_predict\": 2}}", "\"response\":\"\"",
     "{\"error\":\"the server is shutting down\"}\n"},
};

static void a_stream_that_waits_says_that_it_lives(void **state)
{
    (void)state;
    served s = serve_one();
    const int busy = occupy(&s);
    static char said[4 * SERVED_LONG_NAME];
    int fds[FRIT_COUNT(protocols)];
    for (size_t i = 0; i < FRIT_COUNT(protocols); i++) fds[i] = send_post(&s, protocols[i].path, protocols[i].body);
    const int silent = send_post(&s, "/completion",
                                 "{\"prompt\": \"b\", \"n_predict\": 2, \"stream\": true, \"sse_ping_interval\": -1}");
    const int whole = send_post(&s, "/completion", "{\"prompt\": \"b\", \"n_predict\": 2, \"sse_ping_interval\": 1}");
    for (size_t i = 0; i < FRIT_COUNT(protocols); i++) {
        await_text(fds[i], protocols[i].sign, said, sizeof said);
        assert_memory_equal(said, "HTTP/1.1 200 ", 13);
    }
    // An invalid request gets its status, even while others wait.
    reply r = post(&s, "/v1/completions", "{\"prompt\": \"b\", \"stream\": true, \"temperature\": -1}");
    assert_int_equal(r.status, 400);
    reply_free(&r);
    // After a keep-alive comment, failures are events of the stream; before it, they have a status.
    kill(s.pid, SIGTERM);
    for (size_t i = 0; i < FRIT_COUNT(protocols); i++) {
        await_text(fds[i], protocols[i].error, said, sizeof said);
        assert_null(strstr(said, "[DONE]"));
        close(fds[i]);
    }
    r = read_reply(silent);
    assert_int_equal(r.status, 503);
    reply_free(&r);
    r = read_reply(whole);
    assert_int_equal(r.status, 503);
    reply_free(&r);
    close(silent), close(whole), close(busy);
    assert_int_equal(stop_serving(&s, 0), 0);
}

static void an_answer_follows_the_comments(void **state)
{
    (void)state;
    served s = serve_one();
    const int busy = occupy(&s);
    static char said[8 * SERVED_LONG_NAME];
    const int fd = send_post(&s, "/v1/completions", protocols[0].body);
    await_text(fd, ": keep-alive\n\n", said, sizeof said);
    close(busy);
    await_text(fd, "data: [DONE]\n\n", said, sizeof said);
    assert_non_null(strstr(said, "\"finish_reason\":\"length\""));
    close(fd);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// Checks that progress grows from event to event, up to the whole prompt.
static json_int_t expect_progress(const json_t *events, json_int_t n_prompt, json_int_t n_steps)
{
    json_int_t done = -1, n = 0, cached = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *told = json_object_get(json_object_get(json_array_get(events, i), "data"), "prompt_progress");
        if (!told) continue;
        const json_int_t now = json_integer_value(json_object_get(told, "processed"));
        assert_int_equal(json_integer_value(json_object_get(told, "total")), n_prompt);
        assert_true(json_is_integer(json_object_get(told, "time_ms")));
        cached = json_integer_value(json_object_get(told, "cache"));
        assert_true(now > done && now >= cached);
        done = now;
        n++;
    }
    assert_int_equal(done, n_prompt);
    assert_true(n >= n_steps);
    return cached;
}

static void progress_is_told_on_request(void **state)
{
    (void)state;
    served s = serve(model(), "--parallel 1 --threads 1 --batch 16");
    char ids[1024] = "5";
    for (int i = 1; i < 160; i++) sprintf(ids + strlen(ids), ",%d", 4 + i % 26);
    char body[2048];
    static const char *const paths[] = {"/completion", "/v1/completions"};
    for (size_t i = 0; i < FRIT_COUNT(paths); i++) {
        snprintf(body, sizeof body,
                 "{\"prompt\": [%s], \"n_predict\": 2, \"max_tokens\": 2, \"stream\": true, \"return_progress\": %s}",
                 ids, "true");
        reply r = post(&s, paths[i], body);
        assert_int_equal(r.status, 200);
        char *end = strstr(r.body, "data: [DONE]\n\n");
        if (end) r.n_body = (size_t)(end - r.body), *end = 0;
        json_t *events = read_events(&r);
        const json_int_t cached = expect_progress(events, 160, i == 0 ? 10 : 1);
        assert_int_equal(cached > 100, i > 0);   // the second request finds the prompt
        json_decref(events);
        reply_free(&r);
    }
    // The role of a chat comes first. Without the field there is no progress.
    reply r =
        post(&s, "/v1/chat/completions",
             "{\"messages\": [{\"role\": \"user\", \"content\": \"b c d\"}], \"max_tokens\": 2, \"stream\": true, "
             "\"return_progress\": true}");
    assert_int_equal(r.status, 200);
    const char *role = strstr(r.body, "\"role\":\"assistant\""), *told = strstr(r.body, "prompt_progress");
    assert_true(role && told && role < told);
    assert_null(strstr(role + 1, "\"role\":\"assistant\""));
    reply_free(&r);
    r = post(&s, "/completion", "{\"prompt\": \"a\", \"n_predict\": 2, \"stream\": true}");
    assert_null(strstr(r.body, "prompt_progress"));
    reply_free(&r);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_that_waits_says_that_it_lives),
        cmocka_unit_test(an_answer_follows_the_comments),
        cmocka_unit_test(progress_is_told_on_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
