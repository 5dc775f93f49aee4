// SPDX-License-Identifier: MIT
// Keys of a server: reloading, replies at limits, order among keys, and what answers cost.
#include "server/http/key_file.h"

#include <unistd.h>

#define TEXT "/v1/completions"

static const char brief[] = "{\"prompt\": \"b\", \"temperature\": 0, \"max_tokens\": 8, \"logit_bias\": {\"2\": -100}}";
static const char endless[] =
    "{\"prompt\": \"a\", \"temperature\": 0, \"max_tokens\": -1, \"logit_bias\": {\"2\": -100}, \"stream\": true}";

// A long name makes events long, so that an endless stream that is not read exceeds all buffers.
static served serve_keys(const char *text, const char *more)
{
    char options[12000], name[8001];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    write_keys(text);
    snprintf(options, sizeof options, "--threads 1 --alias %s --api-key-file '%s' %s", name, key_path(), more);
    return serve(model(), options);
}

static int ask(const served *s, const char *key, const char *path, const char *body)
{
    char header[256];
    snprintf(header, sizeof header, "Authorization: Bearer %s\r\n", key);
    return send_request(s, "POST", path, header, body);
}

static reply answer_to(const served *s, const char *key, const char *path, const char *body)
{
    const int fd = ask(s, key, path, body);
    const reply r = read_reply(fd);
    close(fd);
    return r;
}

static void expect_status(const served *s, const char *key, int status)
{
    reply r = answer_to(s, key, TEXT, brief);
    if (r.status != status) fail_msg("%s: %d, not %d: %s", key, r.status, status, r.body);
    reply_free(&r);
}

static void a_hangup_reads_the_file_again(void **state)
{
    (void)state;
    served s = serve_keys("one = k1\ntwo = sha256:" ABC "\n", "--api-key fixed");
    expect_status(&s, "k1", 200);
    expect_status(&s, "abc", 200);
    expect_status(&s, "fixed", 200);
    expect_status(&s, ABC, 401);
    write_keys("one = k1 k4\n");
    kill(s.pid, SIGHUP);
    expect_said(&s, "SIGHUP: keys as before: --api-key-file");
    expect_status(&s, "k1", 200);
    expect_status(&s, "abc", 200);
    write_keys("one = k3\n");
    kill(s.pid, SIGHUP);
    expect_said(&s, "SIGHUP: keys that are known now: 2");
    expect_status(&s, "k1", 401);
    expect_status(&s, "abc", 401);
    expect_status(&s, "k3", 200);
    expect_status(&s, "fixed", 200);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void a_hangup_without_a_file_ends_nothing(void **state)
{
    (void)state;
    served s = serve(model(), "--threads 1");
    kill(s.pid, SIGHUP);
    expect_said(&s, "there is nothing to read again");
    expect_status(&s, "any", 200);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void a_server_does_not_start_with_a_bad_file(void **state)
{
    (void)state;
    char arguments[4096], said[4096];
    write_keys("k1 rate=fast\n");
    snprintf(arguments, sizeof arguments, "'%s' --port 0 --api-key-file '%s'", model(), key_path());
    assert_int_equal(serve_and_fail(arguments, said, sizeof said), 2);
    assert_non_null(strstr(said, "line 1: rate=fast: expected N/s"));
}

static void limits_are_told_in_each_protocol(void **state)
{
    (void)state;
    served s = serve_keys("k1 concurrent=1\nk2\n", "--parallel 2");
    const int running = ask(&s, "k1", TEXT, endless);
    expect_health(&s, "running", 1);
    static const struct {
        const char *path, *shape;
    } rows[] = {
        {TEXT, "\"type\":\"rate_limit_error\",\"param\":null,\"code\":\"concurrency_limit_exceeded\"}"},
        {"/v1/messages", "\"error\":{\"type\":\"rate_limit_error\""},
        {"/api/chat", "{\"error\":\"this key may have 1 requests at once"},
        {"/v1/embeddings", "concurrency_limit_exceeded"},
        {"/tokenize", "concurrency_limit_exceeded"},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        reply r = answer_to(&s, "k1", rows[i].path, "{}");
        assert_int_equal(r.status, 429);
        assert_string_equal(reply_header(&r, "Retry-After"), "1");
        if (!strstr(r.body, rows[i].shape)) fail_msg("%s: %s", rows[i].path, r.body);
        reply_free(&r);
    }
    expect_status(&s, "k2", 200);
    close(running);
    expect_health(&s, "running", 0);
    int status = 429;
    for (int i = 0; i < 1000 && status == 429; i++) {   // the connection is seen to be closed a moment later
        reply r = answer_to(&s, "k1", TEXT, brief);
        status = r.status;
        reply_free(&r);
        if (status == 429) nap(10);
    }
    assert_int_equal(status, 200);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void expect_header(const reply *r, const char *name, const char *value)
{
    const char *found = reply_header(r, name);
    if (!found || strcmp(found, value) != 0) fail_msg("%s is %s, not %s", name, found ? found : "missing", value);
}

static void what_is_left_of_limits_is_in_headers(void **state)
{
    (void)state;
    served s = serve_keys("k1 rate=3/day tokens=1000/day\nk2 concurrent=9\n", "--parallel 2");
    reply r = answer_to(&s, "k1", TEXT, brief);
    assert_int_equal(r.status, 200);
    expect_header(&r, "X-RateLimit-Limit-Requests", "3");
    expect_header(&r, "X-RateLimit-Remaining-Requests", "2");
    expect_header(&r, "X-RateLimit-Limit-Tokens", "1000");
    const int left = atoi(reply_header(&r, "X-RateLimit-Remaining-Tokens"));
    assert_in_range(left, 980, 992);   // 8 of the answer, and the prompt
    assert_in_range(atoi(reply_header(&r, "X-RateLimit-Reset-Requests")), 28000, 28800);
    reply_free(&r);
    for (int i = 0; i < 3; i++) {
        r = answer_to(&s, "k1", TEXT, brief);
        if (i < 2) assert_int_equal(r.status, 200);
        expect_header(&r, "X-RateLimit-Remaining-Requests", i == 0 ? "1" : "0");
        if (i < 2) reply_free(&r);
    }
    assert_int_equal(r.status, 429);
    reply_free(&r);
    r = answer_to(&s, "k2", TEXT, brief);
    assert_int_equal(r.status, 200);
    assert_null(reply_header(&r, "X-RateLimit-Limit-Requests"));
    assert_null(reply_header(&r, "X-RateLimit-Limit-Tokens"));
    reply_free(&r);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// With one session used by `running`, `before` waits; then `brief_body` of another key arrives and is answered first.
static void expect_overtaking(const char *lines, const char *key, const char *before, const char *brief_body)
{
    served s = serve_keys(lines, "--parallel 1");
    const int running = ask(&s, "k1", TEXT, endless);
    expect_health(&s, "running", 1);
    const int waiting = ask(&s, "k1", TEXT, before);
    expect_health(&s, "waiting", 1);
    const int overtaking = ask(&s, key, TEXT, brief_body);
    expect_health(&s, "waiting", 2);
    close(running);
    reply r = read_reply(overtaking);
    assert_int_equal(r.status, 200);
    reply_free(&r);
    expect_health(&s, "waiting", 0);
    expect_health(&s, "running", 1);   // no client reads the answer, so it does not end
    close(waiting);
    close(overtaking);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void one_request_does_not_wait_for_many_of_another(void **state)
{
    (void)state;
    expect_overtaking("k1\nk2\n", "k2", endless, brief);
}

static void urgent_requests_go_first(void **state)
{
    (void)state;
    static const char patient[] = "{\"prompt\": \"a\", \"temperature\": 0, \"max_tokens\": -1, \"stream\": true, "
                                  "\"logit_bias\": {\"2\": -100}, \"priority\": 7}";
    expect_overtaking("k1 priority=5\n", "k1", patient, brief);
    served s = serve_keys("k1 priority=5\n", "");
    static const struct {
        const char *priority;
        int status;
    } rows[] = {{"5", 200}, {"1000000", 200}, {"4", 400}, {"\"high\"", 400}, {"5.5", 400}, {"1e9", 400}, {"null", 200}};
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        char body[128];
        snprintf(body, sizeof body, "{\"prompt\": \"a\", \"max_tokens\": 1, \"priority\": %s}", rows[i].priority);
        reply r = answer_to(&s, "k1", TEXT, body);
        if (r.status != rows[i].status) fail_msg("%s: %d %s", rows[i].priority, r.status, r.body);
        if (r.status == 400) assert_non_null(strstr(r.body, "\"param\":\"priority\""));
        reply_free(&r);
    }
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void tokens_of_answers_are_charged(void **state)
{
    (void)state;
    served s = serve_keys("k1 tokens=9/day\nk2\n", "");
    expect_status(&s, "k1", 200);   // a prompt and 8 tokens
    reply r = answer_to(&s, "k1", TEXT, brief);
    assert_int_equal(r.status, 429);
    assert_non_null(strstr(r.body, "token_limit_exceeded"));
    assert_true(atoi(reply_header(&r, "Retry-After")) > 1000);
    reply_free(&r);
    r = answer_to(&s, "k2", "/v1/embeddings", "{\"input\": \"abc\"}");
    assert_int_equal(r.status, 200);
    reply_free(&r);
    const int fd = connect_to(&s);
    send_text(fd, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: k2\r\n\r\n");
    r = read_reply(fd);
    if (!strstr(r.body, "kind=\"answer\"} 8\n")) fail_msg("%d %.3000s", r.status, r.body);
    assert_null(strstr(r.body, "kind=\"prompt\"} 0\n"));   // both keys have used some
    assert_non_null(strstr(r.body, "reason=\"tokens\"} 1\n"));
    reply_free(&r);
    close(fd);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hangup_reads_the_file_again),
        cmocka_unit_test(a_hangup_without_a_file_ends_nothing),
        cmocka_unit_test(a_server_does_not_start_with_a_bad_file),
        cmocka_unit_test(limits_are_told_in_each_protocol),
        cmocka_unit_test(what_is_left_of_limits_is_in_headers),
        cmocka_unit_test(one_request_does_not_wait_for_many_of_another),
        cmocka_unit_test(urgent_requests_go_first),
        cmocka_unit_test(tokens_of_answers_are_charged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
