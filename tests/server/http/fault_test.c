// SPDX-License-Identifier: MIT
// The faults of docs/dev/testing.md: any value of any field, depth, paths, injected headers, clients that leave in each
// phase beside others, signals, descriptors, full devices.
#include "support/events_posix.h"
#include "support/tiny_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define TEXT "/v1/completions"

enum { LONG_CTX = 4000 };

static const char *model(void)
{
    static char path[1024];
    const tiny_options options = {.n_ctx = LONG_CTX,
                                  .chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"};
    if (!path[0]) snprintf(path, sizeof path, "%s", tiny_model("faults.gguf", &options));
    return path;
}

// ---------------------------------------------------------------------------------------- values

// Sends one request on a connection that stays open; returns the status.
static int post_on(int *fd, const served *s, const char *path, const char *body)
{
    char *text = post_text(path, "", body);
    if (*fd < 0) *fd = connect_to(s);
    send_text(*fd, text);
    reply r = read_reply(*fd);
    const char *connection = r.status ? reply_header(&r, "Connection") : "close";
    if (!r.status || (connection && strcmp(connection, "close") == 0)) {
        close(*fd);
        *fd = -1;
    }
    const int status = r.status;
    reply_free(&r);
    free(text);
    return status;
}

// A short valid request in each protocol.
static json_t *good_body(void)
{
    return json_pack("{s:s, s:s, s:s, s:[{s:s, s:s}], s:i, s:i, s:i, s:{s:i}, s:b, s:s, s:[s], s:s, s:[i], s:b}",
                     "prompt", "ab", "input", "ab", "content", "ab", "messages", "role", "user", "content", "ab",
                     "max_tokens", 1, "n_predict", 1, "max_output_tokens", 1, "options", "num_predict", 1, "stream", 0,
                     "query", "a", "documents", "b", "input_prefix", "a", "tokens", 5, "raw", 1);
}

static const char *const odd[] = {
    "-1", "0", "9223372036854775807", "1e308", "\"x\"", "true", "[]", "{}", "[null]", "\"\\u0000\"",
};

// Takes the fields from the server's own description.
static void any_value_of_any_field_is_taken_or_refused(void **state)
{
    (void)state;
    served s = serve(model(), "--parallel 2 --threads 1 --ctx 64 --max-queue 256");
    reply r = get(&s, "/openapi.json");
    json_t *document = reply_json(&r), *path_item, *good = good_body();
    reply_free(&r);
    const char *path, *name;
    json_t *property;
    int fd = -1, n = 0;
    json_object_foreach(json_object_get(document, "paths"), path, path_item)
    {
        const json_t *properties = value_in(path_item, "post.requestBody.content.application/json.schema.properties");
        json_object_foreach((json_t *)properties, name, property)
        {
            for (size_t i = 0; i < FRIT_COUNT(odd); i++, n++) {
                json_t *body = json_copy(good);
                json_object_set_new(body, name, json_loads(odd[i], JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL));
                char *text = json_dumps(body, 0);
                const int status = post_on(&fd, &s, path, text);
                if (status < 200 || status >= 500) fail_msg("%s %s: %d", path, text, status);
                free(text);
                json_decref(body);
            }
        }
    }
    assert_true(n > 3000);
    if (fd >= 0) close(fd);
    json_decref(good);
    json_decref(document);
    expect_health(&s, "running", 0);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static char *nested(const char *before, const char *open, const char *close, size_t depth, const char *after)
{
    char *text = malloc(strlen(before) + depth * (strlen(open) + strlen(close)) + strlen(after) + 2), *at = text;
    at += sprintf(at, "%s", before);
    for (size_t i = 0; i < depth; i++) at += sprintf(at, "%s", open);
    *at++ = '1';
    for (size_t i = 0; i < depth; i++) at += sprintf(at, "%s", close);
    sprintf(at, "%s", after);
    return text;
}

static void a_grammar_that_the_model_cannot_write_is_refused(void **state)
{
    (void)state;
    served s = serve(model(), "--threads 1 --ctx 64");
    static const char *const rows[] = {"\"regex\": \"\\u0000\"", "\"json_schema\": {\"enum\": [17]}",
                                       "\"grammar\": \"root ::= \\\"a\\\" \\\"!\\\"\""};
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        char body[256];
        snprintf(body, sizeof body, "{\"prompt\": \"a\", %s}", rows[i]);
        json_t *json = post_for(&s, TEXT, body, 400);
        assert_memory_equal(text_in(json, "error.message"), "no token is left", 16);
        json_decref(json);
    }
    json_decref(post_for(&s, TEXT, "{\"prompt\": \"a\", \"max_tokens\": 1}", 200));
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void depth_is_refused_on_every_path(void **state)
{
    (void)state;
    static const struct {
        const char *before, *open, *close, *after;
    } shapes[] = {
        {"", "[", "]", ""},
        {"{\"prompt\": \"a\", \"max_tokens\": 1, \"x\": ", "{\"a\":", "}", "}"},
        {"{\"prompt\": \"a\", \"max_tokens\": 1, \"json_schema\": ", "{\"not\":", "}", "}"},
        {"{\"prompt\": \"a\", \"max_tokens\": 1, \"regex\": \"", "(", ")", "\"}"},
        {"{\"prompt\": \"a\", \"max_tokens\": 1, \"grammar\": \"root ::= ", "(", ")", "\"}"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"max_tokens\": 1, \"tools\": [{\"type\": "
         "\"function\", "
         "\"function\": {\"name\": \"f\", \"parameters\": ",
         "{\"items\":", "}", "}}]}"},
    };
    served s = serve(model(), "--threads 1 --ctx 64");
    reply r = get(&s, "/openapi.json");
    json_t *document = reply_json(&r), *path_item;
    const char *path;
    reply_free(&r);
    json_object_foreach(json_object_get(document, "paths"), path, path_item)
    {
        if (!json_object_get(path_item, "post") || strchr(path, '{')) continue;
        for (size_t i = 0; i < FRIT_COUNT(shapes); i++) {
            char *body = nested(shapes[i].before, shapes[i].open, shapes[i].close, 10000, shapes[i].after);
            r = post(&s, path, body);
            const bool is_text = strstr(shapes[i].before, "\"grammar\"") || strstr(shapes[i].before, "\"regex\"");
            if (r.status < 200 || r.status >= 500 || (!is_text && r.status < 400))
                fail_msg("%s, %.80s: %d %s", path, body, r.status, r.body);
            reply_free(&r);
            free(body);
        }
    }
    json_decref(document);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// ---------------------------------------------------------------------------------------- heads

static void no_path_leads_out_of_its_place(void **state)
{
    (void)state;
    static const char *const places[] = {"/v1/responses/", "/v1/models/", "/v1/stream/"};
    static const char *const rests[] = {
        "../../../../etc/passwd",
        "..%2f..%2f..%2fetc%2fpasswd",
        "%2e%2e/%2e%2e/etc/passwd",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "..",
        "..%00",
        "a%00b",
        "..%5c..%5cx",
        "%c0%ae%c0%ae%2fx",
        "secret.response",
        "secret",
    };
    static const char *const methods[] = {"GET", "DELETE", "POST"};
    char options[1200], text[16384], name[9000];
    snprintf(options, sizeof options, "--threads 1 --responses-dir '%s'", temp_path("kept"));
    served s = serve(model(), options);
    FILE *file = fopen(temp_path("secret.response"), "w");   // outside the folder
    fprintf(file, "frit-response 1 0 5000000000 2 2 2 0000000000000000\n{}[]{}");
    fclose(file);
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = 0;
    for (size_t m = 0; m < FRIT_COUNT(methods); m++) {
        for (size_t i = 0; i < FRIT_COUNT(places) * (FRIT_COUNT(rests) + 1); i++) {
            const size_t k = i % (FRIT_COUNT(rests) + 1);
            const char *place = places[i / (FRIT_COUNT(rests) + 1)], *rest = k < FRIT_COUNT(rests) ? rests[k] : name;
            snprintf(text, sizeof text, "%s %s%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", methods[m],
                     place, rest);
            reply r = reply_to_text(&s, text);
            const bool is_stream = strcmp(place, "/v1/stream/") == 0 && strcmp(methods[m], "DELETE") == 0;
            if ((r.status < 400 && !is_stream) || r.status >= 500 || strstr(r.body, "root:"))
                fail_msg("%.100s: %d %.200s", text, r.status, r.body);
            reply_free(&r);
        }
    }
    assert_int_equal(access(temp_path("secret.response"), F_OK), 0);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// Text of a request that the server copies to a header cannot begin another header.
static void nothing_repeated_makes_a_header(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "GET /health HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: a\rSet-Cookie: evil=1\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: a\nSet-Cookie: evil=1\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: a%0d%0aSet-Cookie: evil=1\r\n\r\n",
        "GET /v1/stream/a%0d%0aSet-Cookie:%20evil=1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /v1/responses/a%0d%0aSet-Cookie:%20evil=1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /nothing%0d%0aSet-Cookie:%20evil=1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nX-Conversation-Id: a%0d%0aSet-Cookie: evil=1\r\n"
        "Content-Length: 53\r\n\r\n{\"prompt\": \"a\", \"max_tokens\": 1, \"stream\": true, \"n\":1}",
        "OPTIONS /v1/completions HTTP/1.1\r\nHost: localhost\r\nOrigin: http://a.example\r\n"
        "Access-Control-Request-Headers: a%0d%0aSet-Cookie: evil=1\r\n\r\n",
    };
    served s = serve(model(), "--threads 1 --cors http://a.example");
    for (size_t i = 0; i < FRIT_COUNT(heads); i++) {
        reply r = reply_to_text(&s, heads[i]);
        assert_int_not_equal(r.status, 0);
        const char *cookie = reply_header(&r, "Set-Cookie");
        if (cookie) fail_msg("%s: Set-Cookie: %s", heads[i], cookie);
        reply_free(&r);
    }
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// ---------------------------------------------------------------------------------------- clients that leave

#define ENDLESS "\"temperature\": 0, \"max_tokens\": -1, \"ignore_eos\": true, \"stream\": true}"

static char long_prompt[20000];

// Sends a request, or a part of it, and leaves.
static void leave_in(const served *s, const char *phase)
{
    char *text = post_text(TEXT, "", strcmp(phase, "prefill") == 0 ? long_prompt : "{\"prompt\": \"c\", " ENDLESS);
    char bytes[64];
    const int fd = connect_to(s);
    const size_t n = strlen(text);
    send_bytes(fd, text, strcmp(phase, "head") == 0 ? 20 : strcmp(phase, "body") == 0 ? n - 5 : n);
    if (strcmp(phase, "half-close") == 0) shutdown(fd, SHUT_WR);
    if (strcmp(phase, "decode") == 0) read_some(fd, bytes, sizeof bytes, 30000);
    if (strcmp(phase, "reset") == 0)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
    close(fd);
    free(text);
}

static char *text_of(const reply *r)
{
    char *said = calloc(1, r->n_body + 1);
    for (const char *at = strstr(r->body, "data: {"); at; at = strstr(at + 1, "data: {")) {
        json_t *json = json_loadb(at + 6, strcspn(at, "\n") - 6, 0, NULL);
        strcat(said, text_in(json, "choices.0.text"));
        json_decref(json);
    }
    return said;
}

#define LONG_ANSWER "{\"prompt\": \"ab\", \"temperature\": 0, \"max_tokens\": 700, \"ignore_eos\": true"

static int begin_stream(const served *s)
{
    const int fd = send_post(s, TEXT, LONG_ANSWER ", \"stream\": true}");
    await_answer(fd);
    return fd;
}

static void a_client_that_leaves_in_any_phase_changes_no_other_answer(void **state)
{
    (void)state;
    static const char *const phases[] = {"head", "body", "at once", "prefill", "decode", "half-close", "reset"};
    served s = serve(model(), "--parallel 2 --threads 1 --batch 8 --no-prefix-cache");
    int n = sprintf(long_prompt, "{\"prompt\": [5");
    for (int i = 1; i < 1500; i++) n += sprintf(long_prompt + n, ",%d", 4 + i % 26);
    sprintf(long_prompt + n, "], " ENDLESS);
    json_t *alone = post_for(&s, TEXT, LONG_ANSWER "}", 200);
    for (size_t i = 0; i < FRIT_COUNT(phases); i++) {
        const int fd = begin_stream(&s);
        leave_in(&s, phases[i]);
        reply r = read_reply(fd);
        close(fd);
        assert_int_equal(r.status, 200);
        assert_true(r.complete);
        char *said = text_of(&r);
        assert_int_equal(strlen(said), strlen(text_in(alone, "choices.0.text")));
        assert_string_equal(said, text_in(alone, "choices.0.text"));
        free(said);
        reply_free(&r);
        expect_health(&s, "running", 0);
    }
    reply metrics = get(&s, "/metrics");
    const char *use = strstr(metrics.body, "vllm:kv_cache_usage_perc{");
    assert_non_null(use);
    assert_true(strtod(strchr(use, ' '), NULL) <= 0);
    reply_free(&metrics);
    json_decref(alone);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// ---------------------------------------------------------------------------------------- the process

static void a_stopped_server_continues_its_streams(void **state)
{
    (void)state;
    served s = serve(model(), "--parallel 1 --threads 1");
    json_t *alone = post_for(&s, TEXT, LONG_ANSWER "}", 200);
    const int fd = begin_stream(&s);
    kill(s.pid, SIGSTOP);
    nap(200);
    kill(s.pid, SIGCONT);
    kill(s.pid, SIGPIPE);
    reply r = read_reply(fd);
    close(fd);
    assert_int_equal(r.status, 200);
    char *said = text_of(&r);
    assert_string_equal(said, text_in(alone, "choices.0.text"));
    free(said);
    reply_free(&r);
    json_decref(alone);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static long cpu_ticks(pid_t pid)
{
    char path[64], text[1024] = "";
    long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file) return -1;
    if (fgets(text, sizeof text, file)) {
        const char *at = strrchr(text, ')');
        if (at) sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system);
    }
    fclose(file);
    return user + system;
}

// More connections than descriptors: some are refused, the server does not loop, and later ones are served.
static void without_descriptors_the_server_rests_and_recovers(void **state)
{
    (void)state;
    enum { N = 120 };
    struct rlimit before, few;
    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = 64;
    (void)model();
    setrlimit(RLIMIT_NOFILE, &few);
    served s = serve(model(), "--parallel 1 --threads 1");
    setrlimit(RLIMIT_NOFILE, &before);
    int fds[N];
    for (int i = 0; i < N; i++) fds[i] = connect_to(&s);
    nap(100);
    const long first = cpu_ticks(s.pid);
    nap(1000);
    const long used = cpu_ticks(s.pid) - first;
    if (first >= 0) assert_true(used < sysconf(_SC_CLK_TCK) / 4);
    for (int i = 0; i < N; i++) close(fds[i]);
    int status = 0;
    for (int i = 0; i < 100 && status != 200; i++) {
        reply r = post(&s, TEXT, "{\"prompt\": \"a\", \"max_tokens\": 1}");
        status = r.status;
        reply_free(&r);
        if (status != 200) nap(50);
    }
    assert_int_equal(status, 200);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void a_log_that_cannot_be_written_stops_nothing(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0) skip_because("there is no /dev/full");
    served s = serve(model(), "--parallel 1 --threads 1 --access-log /dev/full");
    for (int i = 0; i < 3; i++) json_decref(post_for(&s, TEXT, "{\"prompt\": \"a\", \"max_tokens\": 1}", 200));
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_value_of_any_field_is_taken_or_refused),
        cmocka_unit_test(a_grammar_that_the_model_cannot_write_is_refused),
        cmocka_unit_test(depth_is_refused_on_every_path),
        cmocka_unit_test(no_path_leads_out_of_its_place),
        cmocka_unit_test(nothing_repeated_makes_a_header),
        cmocka_unit_test(a_client_that_leaves_in_any_phase_changes_no_other_answer),
        cmocka_unit_test(a_stopped_server_continues_its_streams),
        cmocka_unit_test(without_descriptors_the_server_rests_and_recovers),
        cmocka_unit_test(a_log_that_cannot_be_written_stops_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
