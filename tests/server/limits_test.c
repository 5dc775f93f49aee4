// SPDX-License-Identifier: MIT
// Limits for one caller: the queue, sessions, and the limits of its key.
#include "server/http/replay.h"
#include "server/api/responses_store.h"
#include "support/served_posix.h"
#include "support/tiny_model.h"

#include <string.h>
#include <unistd.h>

#define TEXT      "/v1/completions"
#define RESPONSES "/v1/responses"

static const char chat_template[] = "{% for m in messages %}{{ m.content }}{% endfor %}";
static const char brief[] = "{\"prompt\": \"b\", \"temperature\": 0, \"max_tokens\": 4}";

static const char *model(void)
{
    const tiny_options options = {.n_ctx = 12000, .chat_template = chat_template};
    static char path[1024];
    if (!path[0]) snprintf(path, sizeof path, "%s", tiny_model("limits.gguf", &options));
    return path;
}

static served serve_keys(const char *keys, const char *more)
{
    char options[2048];
    const char *path = temp_path("limits-keys");
    write_file(path, keys, strlen(keys));
    snprintf(options, sizeof options, "--threads 1 --logit-bias 2=-100 --api-key-file '%s' %s", path, more);
    return serve_with_long_events(model(), options);
}

static const char *header_of(const char *key, const char *more)
{
    static char header[256];
    snprintf(header, sizeof header, "Authorization: Bearer %s\r\n%s", key, more);
    return header;
}

static reply answer_to(const served *s, const char *key, const char *path, const char *body)
{
    return reply_to(s, "POST", path, header_of(key, ""), body);
}

static void expect_answer(const served *s, const char *key, const char *path, const char *body, int status,
                          const char *said)
{
    reply r = answer_to(s, key, path, body);
    if (r.status != status || (said && !strstr(r.body, said))) fail_msg("%s: %d %s", key, r.status, r.body);
    reply_free(&r);
}

// ---------------------------------------------------------------------------------------- queue and sessions

// 100 answers of 700 tokens with two sessions: others are answered while most of them wait.
static void expect_others_to_be_served(const served *s, const char *body)
{
    char bytes[64];
    const int many = send_request(s, "POST", TEXT, header_of("k1", ""), body);
    expect_health(s, "running", 2);
    for (int i = 0; i < 5; i++) expect_answer(s, "k2", TEXT, brief, 200, NULL);
    assert_int_equal(health(s, "waiting"), 0);   // further answers belong to a running request
    assert_int_equal(read_some(many, bytes, sizeof bytes, 1), 0);
    close(many);
    expect_health(s, "running", 0);
}

static void many_answers_leave_queue_and_sessions_to_others(void **state)
{
    (void)state;
    static const char *const keys[] = {"k1\nk2\n", "k1\nk2 weight=1\n"};
    static const char many[] = "{\"prompt\": \"a\", \"max_tokens\": 700, \"n\": 100}";
    for (size_t i = 0; i < FRIT_COUNT(keys); i++) {
        served s = serve_keys(keys[i], "--parallel 2 --max-queue 1");
        expect_others_to_be_served(&s, many);
        assert_int_equal(stop_serving(&s, SIGTERM), 0);
    }
    served s = serve(model(), "--threads 1 --logit-bias 2=-100 --parallel 2 --max-queue 1");   // all are one caller
    expect_others_to_be_served(&s, many);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void many_prompts_leave_the_queue_to_others(void **state)
{
    (void)state;
    char many[2048] = "{\"max_tokens\": 700, \"prompt\": [\"a\"";
    for (int i = 0; i < 99; i++) strcat(many, ", \"b\"");
    strcat(many, "]}");
    served s = serve_keys("k1\nk2\n", "--parallel 2 --max-queue 1");
    expect_others_to_be_served(&s, many);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// A key that has filled the queue does not exclude other keys.
static void a_full_queue_takes_one_request_of_a_key_that_has_none(void **state)
{
    (void)state;
    static const char endless[] = "{\"prompt\": \"a\", \"max_tokens\": -1, \"stream\": true}";
    served s = serve_keys("k1\nk2\n", "--parallel 1 --max-queue 2");
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = send_request(&s, "POST", TEXT, header_of("k1", ""), endless);
        expect_health(&s, i == 0 ? "running" : "waiting", i == 0 ? 1 : i);
    }
    expect_answer(&s, "k1", TEXT, brief, 429, "queue_full");
    const int other = send_request(&s, "POST", TEXT, header_of("k2", ""), brief);
    expect_health(&s, "waiting", 3);
    expect_answer(&s, "k2", TEXT, brief, 429, "queue_full");
    close(fds[0]);
    reply r = read_reply(other);
    assert_int_equal(r.status, 200);
    reply_free(&r);
    for (int i = 1; i < 3; i++) close(fds[i]);
    close(other);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// ---------------------------------------------------------------------------------------- limits of a key

static char *id_of(const reply *r)
{
    json_t *json = reply_json(r);
    char *id = strdup(json_string_value(json_object_get(json, "id")));
    json_decref(json);
    return id;
}

static void expect_active(const served *s, const char *key, int n)
{
    char line[128];
    snprintf(line, sizeof line, "frit_key_requests_active{key=\"one\"} %d\n", n);
    for (int i = 0; i < 500; i++) {
        reply r = reply_to(s, "GET", "/metrics", header_of(key, ""), "");
        const bool found = strstr(r.body, line) != NULL;
        reply_free(&r);
        if (found) return;
        nap(10);
    }
    fail_msg("the metrics do not say: %s", line);
}

static void a_background_response_counts_until_it_ends(void **state)
{
    (void)state;
    char path[256];
    served s = serve_keys("one = k1 concurrent=1\nk2\n", "--parallel 2");
    reply r = answer_to(&s, "k1", RESPONSES, "{\"input\": \"a\", \"max_output_tokens\": 9000, \"background\": true}");
    assert_int_equal(r.status, 200);
    char *id = id_of(&r);
    reply_free(&r);
    expect_active(&s, "k2", 1);
    for (int i = 0; i < 3; i++) {
        expect_answer(&s, "k1", RESPONSES, "{\"input\": \"a\", \"background\": true}", 429,
                      "concurrency_limit_exceeded");
        expect_answer(&s, "k1", TEXT, brief, 429, "concurrency_limit_exceeded");
    }
    snprintf(path, sizeof path, RESPONSES "/%s/cancel", id);
    expect_answer(&s, "k1", path, "", 200, NULL);
    expect_active(&s, "k2", 0);
    expect_answer(&s, "k1", TEXT, brief, 200, NULL);
    free(id);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void a_stream_that_its_client_left_counts_until_it_ends(void **state)
{
    (void)state;
    static const char endless[] = "{\"prompt\": \"a\", \"max_tokens\": -1, \"stream\": true}";
    served s = serve_keys("one = k1 concurrent=1\nk2\n", "--parallel 2");
    const int fd = send_request(&s, "POST", TEXT, header_of("k1", "X-Conversation-Id: a\r\n"), endless);
    await_answer(fd);
    close(fd);
    for (int i = 0; i < 3; i++) {
        expect_answer(&s, "k1", TEXT, brief, 429, "concurrency_limit_exceeded");
        nap(50);
    }
    expect_active(&s, "k2", 1);
    reply r = reply_to(&s, "DELETE", "/v1/stream/a", header_of("k1", ""), "");
    assert_true(r.status == 200 || r.status == 204);
    reply_free(&r);
    expect_active(&s, "k2", 0);
    expect_answer(&s, "k1", TEXT, brief, 200, NULL);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// Each request reserves the tokens that it may need, so no more requests begin than the limit allows.
static void a_burst_does_not_exceed_the_tokens_of_a_key(void **state)
{
    (void)state;
    int n_taken[2] = {0};
    served s = serve_keys("one = k1 tokens=1000/day\nfour = k4 tokens=1000/day\nk2\n", "--parallel 8");
    for (int i = 0; i < 20; i++) {
        reply r =
            answer_to(&s, "k1", RESPONSES, "{\"input\": \"a\", \"max_output_tokens\": 9000, \"background\": true}");
        n_taken[0] += r.status == 200;
        if (r.status != 200) assert_non_null(strstr(r.body, "token_limit_exceeded"));
        reply_free(&r);
    }
    assert_int_equal(n_taken[0], 1);
    int fds[8];
    for (int i = 0; i < 8; i++)   // with a prompt of three tokens, which is reserved too, five requests need all of
                                  // them
        fds[i] = send_request(&s, "POST", TEXT, header_of("k4", ""), "{\"prompt\": [5, 6, 7], \"max_tokens\": 230}");
    for (int i = 0; i < 8; i++) {
        reply r = read_reply(fds[i]);
        n_taken[1] += r.status == 200;
        reply_free(&r);
        close(fds[i]);
    }
    assert_in_range(n_taken[1], 4, 5);   // the fifth one uses the rest of the tokens
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// Unused reserved tokens are free for the next request.
static void tokens_that_were_not_needed_come_back(void **state)
{
    (void)state;
    served s = serve_keys("one = k1 tokens=1000/day\n", "--parallel 2");
    for (int i = 0; i < 10; i++)
        expect_answer(&s, "k1", TEXT, "{\"prompt\": \"a\", \"max_tokens\": 9000, \"stop\": [\"a\", \"e\", \" \"]}", 200,
                      NULL);
    for (int i = 0; i < 3; i++)   // nor tokens reserved by a request that was refused or whose client left
        expect_answer(&s, "k1", TEXT, "{\"prompt\": \"a\", \"max_tokens\": 9000, \"regex\": \"(\"}", 400, NULL);
    for (int i = 0; i < 3; i++) {
        const int fd = send_request(&s, "POST", TEXT, header_of("k1", ""), "{\"prompt\": \"a\", \"max_tokens\": 5000}");
        close(fd);
    }
    int status = 429;
    for (int i = 0; i < 500 && status == 429; i++) {   // the connection is seen to be closed a moment later
        reply r = answer_to(&s, "k1", TEXT, brief);
        status = r.status;
        reply_free(&r);
        nap(10);
    }
    assert_int_equal(status, 200);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void all_prompts_of_a_request_are_charged(void **state)
{
    (void)state;
    served s = serve_keys("one = k1\n", "");
    expect_answer(&s, "k1", TEXT, "{\"prompt\": [[5, 6, 7], [5, 6, 7, 8], [9]], \"max_tokens\": 1, \"n\": 2}", 200,
                  NULL);
    reply r = reply_to(&s, "GET", "/metrics", header_of("k1", ""), "");
    if (!strstr(r.body, "frit_key_tokens_total{key=\"one\",kind=\"prompt\"} 8\n")) fail_msg("%s", r.body);
    reply_free(&r);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// ---------------------------------------------------------------------------------------- bodies and responses

// Bodies that stall may use most of the memory for bodies, but a part is left to other keys.
static void bodies_of_one_key_leave_room_for_others(void **state)
{
    (void)state;
    enum { N = 7, BYTES = (16 << 20) + 4096, SAID = 32 << 20 };   // buffers have 32 MiB
    int fds[N];
    char head[256], *bytes = malloc(BYTES);
    memset(bytes, ' ', BYTES);
    served s = serve_keys("k1\nk2\n", "");
    snprintf(head, sizeof head,
             "POST " TEXT " HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: k1\r\nContent-Length: %d\r\n\r\n", SAID);
    for (int i = 0; i < N; i++) {
        fds[i] = connect_to(&s);
        send_text(fds[i], head);
        send_bytes(fds[i], bytes, BYTES);
    }
    expect_answer(&s, "k2", TEXT, brief, 200, NULL);
    for (int i = 0; i < N; i++) close(fds[i]);
    free(bytes);
    int status = 503;
    for (int i = 0; i < 500 && status == 503; i++, nap(10)) {
        reply r = answer_to(&s, "k1", TEXT, brief);
        status = r.status;
        reply_free(&r);
    }
    assert_int_equal(status, 200);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static bool put_response(server_store *store, size_t key, int i)
{
    char id[32];
    snprintf(id, sizeof id, "r%zu-%d", key, i);
    server_stored stored = {strdup("{}"), strdup("[]"), strdup("{}")};
    return server_store_put(store, id, key, &stored);
}

static bool has_response(server_store *store, size_t key, int i)
{
    char id[32];
    server_stored stored;
    snprintf(id, sizeof id, "r%zu-%d", key, i);
    const bool found = server_store_get(store, id, key, &stored);
    server_stored_deinit(&stored);
    return found;
}

static void responses_of_one_key_leave_those_of_others(void **state)
{
    (void)state;
    enum { N = 3 * SERVER_MAX_STORED };
    server_store *store;
    server_problem problem;
    assert_true(server_store_new(&store, &(server_store_options){0}, &problem));
    for (int i = 0; i < 5; i++) assert_true(put_response(store, 1, i));
    for (int i = 0; i < N; i++) assert_true(put_response(store, 2, i));
    for (int i = 0; i < 5; i++) assert_true(has_response(store, 1, i));
    assert_true(has_response(store, 2, N - 1));
    assert_false(has_response(store, 2, 0));
    for (int i = 5; i < N; i++) assert_true(put_response(store, 1, i));   // both have half of them in the end
    int n[2] = {0};
    for (int i = 0; i < N; i++) n[0] += has_response(store, 1, i), n[1] += has_response(store, 2, i);
    assert_in_range(n[0], SERVER_MAX_STORED / 2 - 1, SERVER_MAX_STORED / 2 + 1);
    assert_int_equal(n[0] + n[1], SERVER_MAX_STORED);
    server_store_free(store);
}

static bool has_stream(server_replays *replays, size_t key, int i)
{
    char name[32];
    snprintf(name, sizeof name, "s%d", i);
    server_replay *replay = server_replays_find(replays, name, key);
    server_replay_unref(replay);
    return replay != NULL;
}

static void put_stream(server_replays *replays, size_t key, int i)
{
    char name[32];
    snprintf(name, sizeof name, "s%d", i);
    server_replay *replay = server_replay_new(replays, name, key, "text/event-stream");
    assert_true(server_replay_put(replay, "data", 4));
    server_replay_publish(replay);
    server_replay_end(replay);
    server_replay_unref(replay);
}

static void streams_of_one_key_leave_those_of_others(void **state)
{
    (void)state;
    enum { N = 2 * SERVER_MAX_REPLAYS };
    server_replays *replays = server_replays_new();
    for (int i = 0; i < 3; i++) put_stream(replays, 1, i);
    for (int i = 0; i < N; i++) put_stream(replays, 2, i);
    for (int i = 0; i < 3; i++) assert_true(has_stream(replays, 1, i));
    assert_true(has_stream(replays, 2, N - 1));
    assert_true(has_stream(replays, 2, N - 200));
    assert_false(has_stream(replays, 2, 0));
    server_replays_free(replays);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_answers_leave_queue_and_sessions_to_others),
        cmocka_unit_test(many_prompts_leave_the_queue_to_others),
        cmocka_unit_test(a_full_queue_takes_one_request_of_a_key_that_has_none),
        cmocka_unit_test(a_background_response_counts_until_it_ends),
        cmocka_unit_test(a_stream_that_its_client_left_counts_until_it_ends),
        cmocka_unit_test(a_burst_does_not_exceed_the_tokens_of_a_key),
        cmocka_unit_test(tokens_that_were_not_needed_come_back),
        cmocka_unit_test(all_prompts_of_a_request_are_charged),
        cmocka_unit_test(bodies_of_one_key_leave_room_for_others),
        cmocka_unit_test(responses_of_one_key_leave_those_of_others),
        cmocka_unit_test(streams_of_one_key_leave_those_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
