// SPDX-License-Identifier: MIT
// Spans of requests, as a collector of OpenTelemetry receives them.
#include "server/http/http_client.h"
#include "server/ops/traces.h"
#include "support/events_posix.h"
#include "support/tiny_model.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define TEXT  "/v1/completions"
#define TRACE "0af7651916cd43dd8448eb211c80319c"

static int collector, collector_port;

static void listen_for_spans(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t n = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    collector = socket(AF_INET, SOCK_STREAM, 0);
    fcntl(collector, F_SETFD, FD_CLOEXEC);   // the server must not inherit it
    assert_int_equal(bind(collector, (struct sockaddr *)&address, n), 0);
    assert_int_equal(listen(collector, 5), 0);
    assert_int_equal(getsockname(collector, (struct sockaddr *)&address, &n), 0);
    collector_port = ntohs(address.sin_port);
}

static served serve_traced(void)
{
    char options[128];
    snprintf(options, sizeof options, "--threads 1 --otlp-endpoint http://127.0.0.1:%d", collector_port);
    return serve(tiny_model("traced.gguf", &(tiny_options){0}), options);
}

// Takes the spans of the next batch, and replies with this line.
static json_t *take_batch(const char *answer)
{
    struct pollfd news = {.fd = collector, .events = POLLIN};
    static char text[1 << 20];
    size_t n = 0, want = SIZE_MAX;
    assert_int_equal(poll(&news, 1, 60000), 1);
    const int fd = accept(collector, NULL, NULL);
    while (n < want) {
        const ssize_t got = recv(fd, text + n, sizeof text - 1 - n, 0);
        assert_true(got > 0);
        n += (size_t)got;
        text[n] = 0;
        const char *body = strstr(text, "\r\n\r\n"), *length = strstr(text, "Content-Length: ");
        if (body) want = (size_t)(body + 4 - text) + strtoul(length + 16, NULL, 10);
    }
    assert_memory_equal(text, "POST /v1/traces HTTP/1.1\r\n", 26);
    assert_non_null(strstr(text, "Content-Type: application/json\r\n"));
    send_text(fd, answer);
    close(fd);
    json_t *json = json_loads(strstr(text, "\r\n\r\n") + 4, 0, NULL);
    assert_non_null(json);
    json_t *spans = json_deep_copy(value_in(json, "resourceSpans.0.scopeSpans.0.spans"));
    json_decref(json);
    return spans;
}

static const json_t *attribute(const json_t *span, const char *key, const char *kind)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(span, "attributes"), i, item)
    {
        const json_t *value = json_object_get(json_object_get(item, "value"), kind);
        if (value && strcmp(json_string_value(json_object_get(item, "key")), key) == 0) return value;
    }
    fail_msg("no %s of %s", kind, key);
    return NULL;
}

static void expect_attribute(const json_t *span, const char *key, const char *kind, const char *want)
{
    assert_string_equal(json_string_value(attribute(span, key, kind)), want);
}

static void ask(const served *s, const char *headers, const char *body, int status)
{
    reply r = reply_to(s, "POST", TEXT, headers, body);
    assert_int_equal(r.status, status);
    reply_free(&r);
}

static const char brief[] = "{\"prompt\": [5, 6, 7], \"max_tokens\": 4, \"logit_bias\": {\"2\": -100}}";

static void a_request_is_a_span(void **state)
{
    (void)state;
    served s = serve_traced();
    ask(&s, "X-Request-Id: mine\r\ntraceparent: 00-" TRACE "-b7ad6b7169203331-01\r\n", brief, 200);
    json_t *spans = take_batch("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(json_array_size(spans), 1);
    const json_t *span = json_array_get(spans, 0);
    expect_text_in(span, "traceId", TRACE);
    expect_text_in(span, "parentSpanId", "b7ad6b7169203331");
    expect_text_in(span, "name", "text_completion traced");
    expect_int_in(span, "kind", 2);
    expect_int_in(span, "status.code", 0);
    assert_int_equal(strlen(json_string_value(value_in(span, "spanId"))), 16);
    const char *start = json_string_value(value_in(span, "startTimeUnixNano"));
    const char *end = json_string_value(value_in(span, "endTimeUnixNano"));
    assert_true(strtoull(start, NULL, 10) < strtoull(end, NULL, 10));
    expect_attribute(span, "gen_ai.operation.name", "stringValue", "text_completion");
    expect_attribute(span, "gen_ai.request.model", "stringValue", "traced");
    expect_attribute(span, "gen_ai.request.id", "stringValue", "mine");
    expect_attribute(span, "http.route", "stringValue", TEXT);
    expect_attribute(span, "http.response.status_code", "intValue", "200");
    expect_attribute(span, "gen_ai.usage.input_tokens", "intValue", "3");
    expect_attribute(span, "gen_ai.usage.output_tokens", "intValue", "4");
    assert_true(json_real_value(attribute(span, "gen_ai.latency.time_to_first_token", "doubleValue")) > 0);
    json_decref(spans);
    // A request that must not be recorded, one with a wrong traceparent, and one that fails.
    ask(&s, "traceparent: 00-" TRACE "-b7ad6b7169203331-00\r\n", brief, 200);
    ask(&s, "traceparent: 00-00000000000000000000000000000000-b7ad6b7169203331-01\r\n", "{", 400);
    spans = take_batch("HTTP/1.1 503 Later\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(json_array_size(spans), 1);
    span = json_array_get(spans, 0);
    assert_string_not_equal(json_string_value(value_in(span, "traceId")), TRACE);
    assert_null(json_object_get(span, "parentSpanId"));
    expect_attribute(span, "error.type", "stringValue", "400");
    json_decref(spans);
    // Waiting spans are sent at the end.
    ask(&s, "", brief, 200);
    kill(s.pid, SIGTERM);
    spans = take_batch("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(json_array_size(spans), 1);
    json_decref(spans);
    assert_int_equal(stop_serving(&s, 0), 0);
}

static bool metrics_have(const served *s, const char *line)
{
    reply r = get(s, "/metrics");
    const bool has = strstr(r.body, line) != NULL;
    reply_free(&r);
    return has;
}

static void what_the_collector_does_not_take_is_counted(void **state)
{
    (void)state;
    served s = serve_traced();
    close(collector);
    for (int i = 0; i < 3; i++) ask(&s, "", brief, 200);
    bool dropped = false;
    for (int i = 0; i < 3000 && !dropped; i++) {
        dropped = metrics_have(&s, "\nfrit_spans_dropped_total 3\n");
        if (!dropped) nap(10);
    }
    assert_true(dropped);
    assert_true(metrics_have(&s, "\nfrit_spans_sent_total 0\n"));
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// ---------------------------------------------------------------------------------------- texts

static void broken_parents_begin_a_trace(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool has_parent, is_wanted;
    } rows[] = {
        {"00-" TRACE "-b7ad6b7169203331-01", true, true},
        {"00-" TRACE "-b7ad6b7169203331-00", true, false},
        {"00-" TRACE "-b7ad6b7169203331-03", true, true},
        {"cc-" TRACE "-b7ad6b7169203331-01-more", true, true},
        {"00-" TRACE "-b7ad6b7169203331-01-more", false, true},
        {"cc-" TRACE "-b7ad6b7169203331-01more", false, true},
        {"ff-" TRACE "-b7ad6b7169203331-01", false, true},
        {"00-" TRACE "-0000000000000000-01", false, true},
        {"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", false, true},
        {"00-" TRACE "-b7ad6b7169203331-0", false, true},
        {"00-" TRACE "-b7ad6b7169203331-0x", false, true},
        {"", false, true},
        {NULL, false, true},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        server_trace trace;
        server_trace_read(rows[i].text, &trace);
        if (trace.has_parent != rows[i].has_parent || trace.is_wanted != rows[i].is_wanted)
            fail_msg("%s", rows[i].text);
    }
}

static void addresses_are_http(void **state)
{
    (void)state;
    static const struct {
        const char *url, *host, *port, *path;   // host NULL: refused
    } rows[] = {
        {"http://a", "a", "1", "/p"},
        {"http://a/", "a", "1", "/p"},
        {"http://a:99/b/c?d", "a", "99", "/b/c?d"},
        {"http://[::1]:99", "::1", "99", "/p"},
        {"http://[::1]/x", "::1", "1", "/x"},
        {"https://a", NULL, NULL, NULL},
        {"a:4318", NULL, NULL, NULL},
        {"http://", NULL, NULL, NULL},
        {"http://:5", NULL, NULL, NULL},
        {"http://a:", NULL, NULL, NULL},
        {"http://a:x", NULL, NULL, NULL},
        {"http://a:123456", NULL, NULL, NULL},
        {"http://a:1:2", NULL, NULL, NULL},
        {"http://[::1", NULL, NULL, NULL},
        {"http://[::1]x", NULL, NULL, NULL},
        {"http://user@a", NULL, NULL, NULL},
        {"http://a\r\nb", NULL, NULL, NULL},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        server_target target;
        server_problem problem;
        const bool good = server_target_parse("option", rows[i].url, "1", "/p", &target, &problem);
        if (good != (rows[i].host != NULL)) fail_msg("%s", rows[i].url);
        if (!good) continue;
        assert_string_equal(target.host, rows[i].host);
        assert_string_equal(target.port, rows[i].port);
        assert_string_equal(target.path, rows[i].path);
    }
}

int main(void)
{
    listen_for_spans();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_parents_begin_a_trace),
        cmocka_unit_test(addresses_are_http),
        cmocka_unit_test(a_request_is_a_span),
        cmocka_unit_test(what_the_collector_does_not_take_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
