// SPDX-License-Identifier: MIT
// Clients that leave, read slowly or are many; signals, damaged models, addresses.
#include "support/served_posix.h"
#include "support/tiny_model.h"

#include <sys/socket.h>
#include <unistd.h>

#define TEXT "/v1/completions"

enum { LONG_CTX = 12000 };

// An answer that never ends, for servers with context shifts.
static const char endless[] = "{\"prompt\": \"a\", \"temperature\": 0, \"max_tokens\": 100000000, \"logit_bias\": "
                              "{\"2\": -100}, \"stream\": true}";
static const char endless_whole[] =
    "{\"prompt\": \"a\", \"temperature\": 0, \"max_tokens\": 100000000, \"logit_bias\": {\"2\": -100}}";
static const char brief[] = "{\"prompt\": \"b\", \"temperature\": 0, \"max_tokens\": 8, \"logit_bias\": {\"2\": -100}}";

static const char *model(void)
{
    static char path[1024];
    const tiny_options options = {.n_ctx = LONG_CTX};
    if (!path[0]) snprintf(path, sizeof path, "%s", tiny_model("long.gguf", &options));
    return path;
}

static void expect_brief_answer(const served *s)
{
    reply r = post(s, TEXT, brief);
    if (r.status != 200) fail_msg("status %d: %s", r.status, r.body);
    reply_free(&r);
}

// ---------------------------------------------------------------------------------------- clients that leave

static void a_client_that_leaves_frees_its_session(void **state)
{
    (void)state;
    served s = serve(model(), "--parallel 1 --max-queue 1 --threads 1 --context-shift");
    int fd = send_post(&s, TEXT, endless);   // while it streams
    await_bytes(fd);
    close(fd);
    expect_health(&s, "running", 0);

    fd = send_post(&s, TEXT, endless_whole);   // before anything has been sent to it
    expect_health(&s, "running", 1);
    close(fd);
    expect_health(&s, "running", 0);

    fd = send_post(&s, TEXT, endless);   // after it closed its sending side, which alone does not end the answer
    await_bytes(fd);
    shutdown(fd, SHUT_WR);
    await_bytes(fd);
    assert_int_equal(health(&s, "running"), 1);
    close(fd);
    expect_health(&s, "running", 0);

    fd = send_post(&s, TEXT, endless_whole);   // by a reset
    expect_health(&s, "running", 1);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
    close(fd);
    expect_health(&s, "running", 0);
    expect_brief_answer(&s);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void a_client_that_leaves_while_its_prompt_runs_frees_its_session(void **state)
{
    (void)state;
    enum { N_PROMPT = 4000 };
    served s = serve(model(), "--parallel 1 --threads 1 --batch 4");
    char *body = malloc(8 * N_PROMPT);
    strcpy(body, "{\"max_tokens\": 1, \"prompt\": [5");
    size_t n = strlen(body);
    for (int i = 1; i < N_PROMPT; i++) n += (size_t)sprintf(body + n, ",%d", 4 + i % 26);
    strcpy(body + n, "]}");
    int fd = send_post(&s, TEXT, body);
    expect_health(&s, "running", 1);
    close(fd);
    expect_health(&s, "running", 0);
    // The cache has the part of the prompt that ran, which is not the whole prompt.
    reply r = post(&s, TEXT, body);
    assert_int_equal(r.status, 200);
    json_t *json = reply_json(&r), *usage = json_object_get(json, "usage");
    json_t *details = json_object_get(usage, "prompt_tokens_details");
    assert_int_equal(json_integer_value(json_object_get(usage, "prompt_tokens")), N_PROMPT);
    assert_in_range(json_integer_value(json_object_get(details, "cached_tokens")), 4, N_PROMPT - 8);
    json_decref(json);
    reply_free(&r);
    free(body);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void a_waiting_client_that_leaves_does_not_touch_the_running_one(void **state)
{
    (void)state;
    served s = serve(model(), "--parallel 1 --max-queue 2 --threads 1 --context-shift");
    int running = send_post(&s, TEXT, endless);
    await_bytes(running);
    int waiting = send_post(&s, TEXT, endless), behind = send_post(&s, TEXT, brief);
    expect_health(&s, "waiting", 2);
    close(waiting);
    expect_health(&s, "waiting", 1);
    assert_int_equal(health(&s, "running"), 1);
    await_bytes(running);
    close(running);
    reply r = read_reply(behind);   // it gets the session now
    assert_int_equal(r.status, 200);
    reply_free(&r);
    close(behind);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// ---------------------------------------------------------------------------------------- crowds

static void a_full_queue_says_when_to_come_back(void **state)
{
    (void)state;
    served s = serve(model(), "--parallel 1 --max-queue 1 --threads 1 --context-shift");
    int running = send_post(&s, TEXT, endless);
    await_bytes(running);
    int waiting = send_post(&s, TEXT, brief);
    expect_health(&s, "waiting", 1);
    reply r = post(&s, TEXT, brief);
    assert_int_equal(r.status, 429);
    assert_in_range(atoi(reply_header(&r, "Retry-After")), 1, 60);
    assert_non_null(strstr(r.body, "\"type\":\"rate_limit_error\""));
    assert_non_null(strstr(r.body, "\"code\":\"queue_full\""));
    reply_free(&r);
    close(running);
    r = read_reply(waiting);
    assert_int_equal(r.status, 200);
    reply_free(&r);
    close(waiting);
    expect_brief_answer(&s);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void a_client_that_does_not_read_stops_only_itself(void **state)
{
    (void)state;
    served s = serve_with_long_events(model(), "--parallel 2 --threads 1");
    const char *body = "{\"prompt\": \"a\", \"temperature\": 0, \"max_tokens\": 2000, \"logit_bias\": {\"2\": -100}, "
                       "\"stream\": true}";
    const char *body_whole =
        "{\"prompt\": \"a\", \"temperature\": 0, \"max_tokens\": 2000, \"logit_bias\": {\"2\": -100}}";
    int slow = send_post(&s, TEXT, body);
    await_bytes(slow);
    for (int i = 0; i < 2; i++) {
        reply r = post(&s, TEXT, body_whole);
        assert_int_equal(r.status, 200);
        reply_free(&r);
    }
    assert_int_equal(health(&s, "running"), 1);   // it would have finished by now, but waits for its client
    assert_true(read_until(slow, "[DONE]") > (size_t)2000 / 4 * SERVED_LONG_NAME);
    expect_health(&s, "running", 0);
    close(slow);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void many_idle_connections_do_not_stop_a_request(void **state)
{
    (void)state;
    served s = serve(model(), "--parallel 1 --threads 1");
    int fds[400];
    for (size_t i = 0; i < FRIT_COUNT(fds); i++) {
        fds[i] = connect_to(&s);
        if (i % 2) send_text(fds[i], "POST " TEXT " HTTP/1.1\r\nHost: local");   // headers that never end
    }
    expect_brief_answer(&s);
    for (size_t i = 0; i < FRIT_COUNT(fds); i++) close(fds[i]);
    expect_brief_answer(&s);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// ---------------------------------------------------------------------------------------- signals

static void a_signal_ends_an_idle_server(void **state)
{
    (void)state;
    static const int signals[] = {SIGTERM, SIGINT};
    for (size_t i = 0; i < FRIT_COUNT(signals); i++) {
        served s = serve(model(), "--threads 1");
        int idle = connect_to(&s);
        assert_int_equal(stop_serving(&s, signals[i]), 0);
        close(idle);
    }
}

static void a_signal_lets_streams_finish(void **state)
{
    (void)state;
    served s = serve_with_long_events(model(), "--parallel 1 --max-queue 1 --drain 600 --threads 1");
    int running = send_post(&s, TEXT,
                            "{\"prompt\": \"a\", \"temperature\": 0, \"max_tokens\": 1000, "
                            "\"logit_bias\": {\"2\": -100}, \"stream\": true}");   // waits for its client
    int kept = connect_to(&s);
    send_text(kept, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    reply r = read_reply(kept);
    reply_free(&r);
    expect_health(&s, "running", 1);
    int waiting = send_post(&s, TEXT, brief);
    expect_health(&s, "waiting", 1);
    kill(s.pid, SIGTERM);
    r = read_reply(waiting);   // it had not started
    assert_int_equal(r.status, 503);
    assert_non_null(reply_header(&r, "Retry-After"));
    reply_free(&r);
    send_text(kept, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    r = read_reply(kept);
    assert_int_equal(r.status, 503);
    reply_free(&r);
    r = read_reply(running);
    assert_int_equal(r.status, 200);
    assert_true(r.complete);
    assert_non_null(strstr(r.body, "\"finish_reason\":\"length\""));
    assert_non_null(strstr(r.body, "data: [DONE]\n\n"));
    reply_free(&r);
    close(running), close(waiting), close(kept);
    assert_int_equal(stop_serving(&s, 0), 0);
}

// Checks that the stream ends with an error event, without [DONE].
static void expect_cut_stream(int fd)
{
    reply r = read_reply(fd);
    assert_int_equal(r.status, 200);
    assert_true(r.complete);
    assert_non_null(strstr(r.body, "data: {\"error\":{\"message\":\"the server is shutting down\""));
    assert_null(strstr(r.body, "[DONE]"));
    reply_free(&r);
    close(fd);
}

// Begins a stream and ends the server.
static int begin_and_end(const served *s)
{
    const int fd = send_post(s, TEXT, endless);
    await_answer(fd);
    kill(s->pid, SIGTERM);
    return fd;
}

static void the_deadline_and_a_second_signal_cut_streams(void **state)
{
    (void)state;
    served s = serve(model(), "--drain 0 --threads 1 --context-shift");
    expect_cut_stream(begin_and_end(&s));
    assert_int_equal(stop_serving(&s, 0), 0);

    s = serve(model(), "--drain 1000 --threads 1 --context-shift");
    const int kept = connect_to(&s);
    const int fd = begin_and_end(&s);
    for (bool ends = false; !ends;) {   // until the server has seen the first signal, possibly while it answers
        send_text(kept, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
        reply r = read_reply(kept);
        assert_true(r.status == 200 || r.status == 503);
        const char *connection = reply_header(&r, "Connection");
        ends = r.status == 503 || (connection && strcmp(connection, "close") == 0);
        reply_free(&r);
    }
    close(kept);
    kill(s.pid, SIGTERM);
    expect_cut_stream(fd);
    assert_int_equal(stop_serving(&s, 0), 0);
}

// ---------------------------------------------------------------------------------------- models and addresses

static void a_damaged_model_gives_an_error_that_is_not_retried(void **state)
{
    (void)state;
    const tiny_options options = {.damaged = "output.weight"};
    served s = serve(tiny_model("damaged.gguf", &options), "--threads 1");
    for (int i = 0; i < 2; i++) {
        reply r = post(&s, TEXT, i == 0 ? brief : endless);
        assert_int_equal(r.status, 500);
        assert_string_equal(reply_header(&r, "X-Should-Retry"), "false");
        assert_non_null(strstr(r.body, "not finite"));
        reply_free(&r);
    }
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void addresses_are_checked_before_anyone_can_connect(void **state)
{
    (void)state;
    char arguments[2048], said[4096];
    snprintf(arguments, sizeof arguments, "'%s' --host 0.0.0.0 --port 0", model());
    assert_int_equal(serve_and_fail(arguments, said, sizeof said), 2);
    assert_non_null(strstr(said, "--api-key"));
    snprintf(arguments, sizeof arguments, "'%s' --host no.such.host.invalid --port 0", model());
    assert_int_equal(serve_and_fail(arguments, said, sizeof said), 2);
    snprintf(arguments, sizeof arguments, "'%s' --api-key ''", model());
    assert_int_equal(serve_and_fail(arguments, said, sizeof said), 2);
    assert_non_null(strstr(said, "empty"));
    served s = serve(model(), "--host 0.0.0.0 --no-auth --threads 1");
    expect_brief_answer(&s);
    snprintf(arguments, sizeof arguments, "'%s' --port %d", model(), s.port);
    assert_int_equal(serve_and_fail(arguments, said, sizeof said), 1);
    assert_non_null(strstr(said, "cannot listen"));
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void origins_that_no_browser_sends_end_the_start(void **state)
{
    (void)state;
    static const char *const bad[] = {"chat.example",
                                      "https://chat.example/",
                                      "https://",
                                      "://chat.example",
                                      "https://chat.example/page",
                                      "https://a.example https://b.example",
                                      ""};
    char arguments[2048], said[4096];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(arguments, sizeof arguments, "'%s' --port 0 --threads 1 --cors '%s'", model(), bad[i]);
        assert_int_equal(serve_and_fail(arguments, said, sizeof said), 2);
        assert_non_null(strstr(said, "expected * or an origin"));
    }
    served s =
        serve(model(), "--threads 1 --cors http://localhost:3000 --cors app://obsidian.md --cors null --cors '*'");
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// ---------------------------------------------------------------------------------------- after a restart

static int cached_tokens(const served *s)
{
    static const char body[] =
        "{\"prompt\": \"abcdefgh abcdefgh abcdefgh abcdefgh abcdefgh abcdefgh abcdefgh abcdefgh\", "
        "\"temperature\": 0, \"max_tokens\": 2}";
    reply r = post(s, TEXT, body);
    assert_int_equal(r.status, 200);
    json_t *json = reply_json(&r);
    const json_t *details = json_object_get(json_object_get(json, "usage"), "prompt_tokens_details");
    const int n = (int)json_integer_value(json_object_get(details, "cached_tokens"));
    json_decref(json);
    reply_free(&r);
    return n;
}

static void a_restart_finds_its_prompts(void **state)
{
    (void)state;
    char options[1200];
    snprintf(options, sizeof options, "--parallel 2 --threads 1 --ctx 256 --prefix-cache-disk %s:1G",
             temp_path("prompts"));
    for (int start = 0; start < 2; start++) {
        served s = serve(model(), options);
        const int n = cached_tokens(&s);
        if (start == 0) assert_int_equal(n, 0);
        if (start == 1) assert_true(n >= 64 && n % 32 == 0);   // whole pages
        assert_true(cached_tokens(&s) > n);
        assert_int_equal(stop_serving(&s, SIGTERM), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_that_leaves_frees_its_session),
        cmocka_unit_test(a_client_that_leaves_while_its_prompt_runs_frees_its_session),
        cmocka_unit_test(a_waiting_client_that_leaves_does_not_touch_the_running_one),
        cmocka_unit_test(a_full_queue_says_when_to_come_back),
        cmocka_unit_test(a_client_that_does_not_read_stops_only_itself),
        cmocka_unit_test(many_idle_connections_do_not_stop_a_request),
        cmocka_unit_test(a_signal_ends_an_idle_server),
        cmocka_unit_test(a_signal_lets_streams_finish),
        cmocka_unit_test(the_deadline_and_a_second_signal_cut_streams),
        cmocka_unit_test(a_damaged_model_gives_an_error_that_is_not_retried),
        cmocka_unit_test(addresses_are_checked_before_anyone_can_connect),
        cmocka_unit_test(origins_that_no_browser_sends_end_the_start),
        cmocka_unit_test(a_restart_finds_its_prompts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
