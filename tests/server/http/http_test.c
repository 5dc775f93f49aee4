// SPDX-License-Identifier: MIT
// The server as an HTTP server: sizes, malformed requests, headers, connections, other sites, keys.
#include "support/served_posix.h"
#include "support/tiny_model.h"

#include <unistd.h>

#define CHAT "/v1/chat/completions"
#define TEXT "/v1/completions"

static served s;

static int start_server(void **state)
{
    (void)state;
    s = serve(tiny_model("tiny.gguf", &(tiny_options){0}), "--parallel 2 --threads 1 --cors http://page.example");
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    return stop_serving(&s, SIGTERM);
}

static void bodies_over_the_limit_are_refused(void **state)
{
    (void)state;
    int fd = connect_to(&s);   // the size is announced, so it is refused without reading
    send_text(fd, "POST " CHAT " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 33554433\r\n\r\n{");
    reply r = read_reply(fd);
    assert_int_equal(r.status, 413);
    reply_free(&r);
    close(fd);
    fd = connect_to(&s);   // in chunks: detected while reading, and the connection stays
    send_text(fd, "POST " CHAT " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
    size_t n = 1 << 20;
    char *chunk = malloc(n + 2);
    memset(chunk, ' ', n);
    memcpy(chunk + n, "\r\n", 2);
    for (int i = 0; i < 33; i++) {
        send_text(fd, "100000\r\n");
        send_bytes(fd, chunk, n + 2);
    }
    send_text(fd, "0\r\n\r\n");
    free(chunk);
    r = read_reply(fd);
    assert_int_equal(r.status, 413);
    reply_free(&r);
    send_text(fd, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    r = read_reply(fd);
    assert_int_equal(r.status, 200);
    reply_free(&r);
    close(fd);
}

static void broken_http_does_no_harm(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "nonsense\r\n\r\n",
        "GET\r\n\r\n",
        "GET /health HTTP/9.9\r\n\r\n",
        "POST " TEXT " HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        "POST " TEXT " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        "POST " TEXT " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "POST " TEXT " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"prompt\"",
        "GET /\0\x01\x02 HTTP/1.1\r\n\r\n",
    };
    for (size_t i = 0; i < FRIT_COUNT(texts); i++) {
        int fd = connect_to(&s);
        send_text(fd, texts[i]);
        char bytes[256];
        read_some(fd, bytes, sizeof bytes, 100);
        close(fd);
    }
    int fd = connect_to(&s);   // a header of 1 MB
    char *header = malloc(1 << 20);
    memset(header, 'a', 1 << 20);
    send_text(fd, "GET /health HTTP/1.1\r\nHost: localhost\r\nX: ");
    send_bytes(fd, header, 1 << 20);
    char bytes[256] = {0};
    read_some(fd, bytes, sizeof bytes - 1, 5000);
    assert_null(strstr(bytes, " 200 "));
    free(header);
    close(fd);
    expect_health(&s, "running", 0);
}

// ---------------------------------------------------------------------------------------- headers

static reply ask_with(const char *method, const char *path, const char *headers)
{
    char text[2048];
    snprintf(text, sizeof text, "%s %s HTTP/1.1\r\n%s\r\n", method, path, headers);
    return reply_to_text(&s, text);
}

static void expect_header(const char *method, const char *path, const char *headers, int status, const char *name,
                          const char *value)
{
    reply r = ask_with(method, path, headers);
    const char *found = reply_header(&r, name);
    bool good = r.status == status && (value ? found && strcmp(found, value) == 0 : !found);
    if (!good) fail_msg("%s %s %s: status %d, %s: %s", method, path, headers, r.status, name, found ? found : "-");
    reply_free(&r);
}

static void request_ids_come_back(void **state)
{
    (void)state;
    expect_header("GET", "/health", "Host: localhost\r\nX-Request-Id: my-id\r\n", 200, "X-Request-Id", "my-id");
    expect_header("GET", "/nothing", "Host: localhost\r\nX-Request-Id: my-id\r\n", 404, "X-Request-Id", "my-id");
    reply r = ask_with("GET", "/health", "Host: localhost\r\n");
    assert_memory_equal(reply_header(&r, "X-Request-Id"), "req-", 4);
    reply_free(&r);
}

static void requests_on_one_connection_follow_each_other(void **state)
{
    (void)state;
    int fd = connect_to(&s);
    char *stream_request = post_text(TEXT, "", "{\"prompt\": \"a\", \"stream\": true, \"max_tokens\": 5}");
    char both[4096];
    snprintf(both, sizeof both, "%sGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n%s", stream_request, stream_request);
    send_text(fd, both);
    for (int i = 0; i < 3; i++) {
        reply r = read_reply(fd);
        assert_int_equal(r.status, 200);
        assert_true(r.complete);
        assert_int_equal(strstr(r.body, "[DONE]") != NULL, i != 1);
        reply_free(&r);
    }
    free(stream_request);
    close(fd);
}

static void other_sites_and_other_names_are_turned_away(void **state)
{
    (void)state;
    const char *allow = "Access-Control-Allow-Origin";
    expect_header("GET", "/health", "Host: evil.example\r\n", 403, allow, NULL);
    expect_header("GET", "/health", "Host: 127.0.0.1.evil.example\r\n", 403, allow, NULL);
    expect_header("GET", "/health", "Host: localhost:80\r\n", 200, allow, NULL);
    expect_header("GET", "/health", "Host: [::1]:80\r\n", 200, allow, NULL);
    expect_header("GET", "/health", "Host: localhost\r\nOrigin: http://evil.example\r\n", 403, allow, NULL);
    expect_header("GET", "/health", "Host: localhost\r\nOrigin: null\r\n", 403, allow, NULL);
    expect_header("GET", "/health", "Host: localhost:1\r\nOrigin: http://localhost:1\r\n", 200, allow, NULL);
    const char *page =
        "Host: localhost\r\nOrigin: http://page.example\r\nAccess-Control-Request-Headers: x-stainless-os\r\n";
    expect_header("GET", "/health", page, 200, allow, "http://page.example");
    expect_header("OPTIONS", CHAT, page, 204, "Access-Control-Allow-Headers", "x-stainless-os");
    expect_header("OPTIONS", CHAT, "Host: localhost\r\n", 405, "Allow", "POST");
    // The path belongs to POST /models/load, not to GET /v1/models/*.
    expect_header("GET", "/models/load", "Host: localhost\r\n", 405, "Allow", "POST");
    expect_header("HEAD", "/v1/models", "Host: localhost\r\nConnection: close\r\n", 200, "Content-Type",
                  "application/json");
}

static void keys_are_asked_for_everywhere_but_for_health(void **state)
{
    (void)state;
    served open_server = s;
    const tiny_options options = {.no_tensors = false};
    s = serve(tiny_model("keyed.gguf", &options), "--api-key first --api-key second --alias 'the/name' --threads 1");
    const char *with = "WWW-Authenticate";
    expect_header("GET", "/health", "Host: localhost\r\n", 200, with, NULL);
    expect_header("GET", "/v1/models", "Host: localhost\r\n", 401, with, "Bearer");
    expect_header("GET", "/nothing", "Host: localhost\r\n", 401, with, "Bearer");
    expect_header("GET", "/v1/models", "Host: localhost\r\nAuthorization: Bearer wrong\r\n", 401, with, "Bearer");
    expect_header("GET", "/v1/models", "Host: localhost\r\nAuthorization: Bearer \r\n", 401, with, "Bearer");
    expect_header("GET", "/v1/models", "Host: localhost\r\nAuthorization: Bearer firstfirst\r\n", 401, with, "Bearer");
    expect_header("GET", "/v1/models", "Host: localhost\r\nAuthorization: Basic first\r\n", 401, with, "Bearer");
    expect_header("GET", "/v1/models", "Host: localhost\r\nAuthorization: Bearer first\r\n", 200, with, NULL);
    expect_header("GET", "/v1/models/the%2Fname", "Host: localhost\r\nX-Api-Key: second\r\n", 200, with, NULL);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    s = open_server;
}

// Returns the cached tokens of a prompt, for a caller with this header and this salt in the body.
static int cached_tokens(const char *headers, const char *salt)
{
    char body[256];
    snprintf(body, sizeof body, "{\"prompt\": \"all that begin like this\", \"max_tokens\": 1%s%s}",
             *salt ? ", \"cache_salt\": " : "", salt);
    char *request = post_text(TEXT, headers, body);
    int fd = connect_to(&s);
    send_text(fd, request);
    reply r = read_reply(fd);
    assert_int_equal(r.status, 200);
    json_t *json = reply_json(&r), *usage = json_object_get(json, "usage");
    const json_t *details = json_object_get(usage, "prompt_tokens_details");
    const int n = (int)json_integer_value(json_object_get(details, "cached_tokens"));
    const int n_prompt = (int)json_integer_value(json_object_get(usage, "prompt_tokens"));
    assert_true(n == 0 || n == n_prompt - 1);
    json_decref(json);
    reply_free(&r);
    free(request);
    close(fd);
    return n;
}

static void callers_share_prompts_by_key_and_salt(void **state)
{
    (void)state;
    served open_server = s;
    s = serve(tiny_model("keyed.gguf", &(tiny_options){0}),
              "--api-key first --api-key second --threads 1 --parallel 3");
    const char *first = "X-Api-Key: first\r\n", *second = "Authorization: Bearer second\r\n";
    assert_int_equal(cached_tokens(first, ""), 0);
    assert_int_equal(cached_tokens(second, ""), 0);
    assert_true(cached_tokens(first, "") > 0);
    assert_int_equal(cached_tokens(first, "\"x\""), 0);
    assert_int_equal(cached_tokens(second, "\"x\""), 0);
    assert_true(cached_tokens(second, "\"x\"") > 0);
    assert_true(cached_tokens(second, "null") > 0);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    s = open_server;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callers_share_prompts_by_key_and_salt),
        cmocka_unit_test(bodies_over_the_limit_are_refused),
        cmocka_unit_test(broken_http_does_no_harm),
        cmocka_unit_test(request_ids_come_back),
        cmocka_unit_test(requests_on_one_connection_follow_each_other),
        cmocka_unit_test(other_sites_and_other_names_are_turned_away),
        cmocka_unit_test(keys_are_asked_for_everywhere_but_for_health),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
