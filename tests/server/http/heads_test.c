// SPDX-License-Identifier: MIT
// Later requests of a connection, HEAD of streams, bodies without an end.
#include "support/served_posix.h"
#include "support/tiny_model.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINE "POST /tokenize HTTP/1.1\r\nHost: localhost\r\n"
#define REST "Content-Length: 16\r\nConnection: close\r\n\r\n{\"content\":\"hi\"}"
#define GOOD LINE "Content-Length: 16\r\n\r\n{\"content\":\"hi\"}"

static served s;

static int start_server(void **state)
{
    (void)state;
    s = serve(tiny_model("heads.gguf", &(tiny_options){.n_ctx = 12000}), "--parallel 2 --threads 1");
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    return stop_serving(&s, SIGTERM);
}

// Returns the status of the reply to the last request; 0: the connection ended before it.
static int status_of(const char *bytes, size_t n, int n_requests)
{
    const int fd = connect_to(&s);
    int status = 0;
    send_bytes(fd, bytes, n);
    shutdown(fd, SHUT_WR);
    for (int i = 0; i < n_requests; i++) {
        reply r = read_reply(fd);
        status = r.status;
        reply_free(&r);
    }
    reply more = read_reply(fd);   // nothing comes after it
    assert_int_equal(more.status, 0);
    reply_free(&more);
    close(fd);
    return status;
}

static void later_heads_are_checked_as_the_first(void **state)
{
    (void)state;
    static char many[300 * 6 + 1], large[60001];
    for (int i = 0; i < 300; i++) memcpy(many + 6 * i, "A: b\r\n", 6);
    memset(large, 'b', sizeof large - 1);
    const struct {
        const char *name, *head;   // a '@' is a byte 0
        int status, later;
    } rows[] = {
        {"good", LINE REST, 200, 200},
        {"spaces around a value", LINE "X:  \t a b \r\n" REST, 200, 200},
        {"an empty value", LINE "X:\r\n" REST, 200, 200},
        {"HTTP/1.0", "POST /tokenize HTTP/1.0\r\n" REST, 200, 200},
        {"arguments", "POST /tokenize?a=b&c=%20d HTTP/1.1\r\nHost: localhost\r\n" REST, 200, 200},
        {"escapes", "POST /%74okenize HTTP/1.1\r\nHost: localhost\r\nCookie: a=b; c=d\r\n" REST, 200, 200},
        {"bare CR", LINE "X: a\rY: b\r\n" REST, 400, 400},
        {"a bare LF", LINE "X: a\nY: b\r\n" REST, 400, 400},
        {"a first line that ends with LF", "POST /tokenize HTTP/1.1\nHost: localhost\r\n" REST, 400, 400},
        {"an empty line of LF", LINE "Content-Length: 16\r\nConnection: close\r\n\n{\"content\":\"hi\"}", 400, 400},
        {"a zero", LINE "X: a@b\r\n" REST, 400, 400},
        {"a zero in a name", LINE "X@: b\r\n" REST, 400, 400},
        {"CR CR", LINE "X: a\r\rZ: b\r\n" REST, 400, 400},
        {"a control character", LINE "X: a\x01\r\n" REST, 400, 400},
        {"a line that continues", LINE "X: a\r\n b: c\r\n" REST, 400, 400},
        {"HTTP/1.7", "POST /tokenize HTTP/1.7\r\nHost: localhost\r\n" REST, 400, 505},
        {"two spaces", "POST  /tokenize HTTP/1.1\r\nHost: localhost\r\n" REST, 400, 400},
        {"no Host", "POST /tokenize HTTP/1.1\r\n" REST, 400, 400},
        {"two Hosts", LINE "Host: localhost\r\n" REST, 400, 400},
        {"a length twice", LINE "Content-Length: 16\r\n" REST, 400, 400},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        char text[1024];
        const int n = snprintf(text, sizeof text, "%s%s", GOOD, rows[i].head);
        for (int k = 0; k < n; k++)
            if (text[k] == '@') text[k] = 0;
        const size_t n_good = strlen(GOOD);
        const int first = status_of(text + n_good, (size_t)n - n_good, 1), later = status_of(text, (size_t)n, 2);
        if (first != rows[i].status && !(first == 505 && rows[i].later == 505))
            fail_msg("%s: %d, not %d", rows[i].name, first, rows[i].status);
        if (later != rows[i].later) fail_msg("%s, later: %d, not %d", rows[i].name, later, rows[i].later);
    }
    for (int i = 0; i < 2; i++) {
        char *text = malloc(80000);
        const int n =
            snprintf(text, 80000, "%s%s%s%s%s%s", GOOD, LINE, i ? "X: " : "", i ? large : many, i ? "\r\n" : "", REST);
        assert_int_equal(status_of(text, (size_t)n, 2), 431);
        free(text);
    }
}

static void too_many_arguments_are_refused_with_an_answer(void **state)
{
    (void)state;
    char *text = malloc(15000);
    int n = sprintf(text, "GET /health?");
    for (int i = 0; i < 3000; i++) n += sprintf(text + n, "a=b&");
    n += sprintf(text + n, " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_int_equal(status_of(text, (size_t)n, 1), 414);
    free(text);
}

// Each answer has one head.
static void head_of_a_stream_has_no_body(void **state)
{
    (void)state;
    static const char endless[] =
        "{\"prompt\": \"a\", \"max_tokens\": -1, \"logit_bias\": {\"2\": -100}, \"stream\": true}";
    const int stream = send_request(&s, "POST", "/v1/completions", "X-Conversation-Id: h1\r\n", endless);
    await_answer(stream);
    const int fd = connect_to(&s);
    send_text(fd, "HEAD /v1/stream/h1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
                  "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    char text[4096] = "";
    for (size_t n = 0, got = 1; got > 0; n += got) got = read_some(fd, text + n, sizeof text - 1 - n, 5000);
    assert_memory_equal(text, "HTTP/1.1 200", 12);
    const char *end = strstr(text, "\r\n\r\n");
    assert_non_null(end);
    if (strncmp(end + 4, "HTTP/1.1 200", 12) != 0) fail_msg("%s", text);
    assert_non_null(strstr(text, "text/event-stream"));
    close(fd);
    close(stream);
    reply r = reply_to(&s, "DELETE", "/v1/stream/h1", "", "");
    reply_free(&r);
    expect_health(&s, "running", 0);
}

static void a_refused_body_without_an_end_is_not_read_for_ever(void **state)
{
    (void)state;
    enum { CHUNK = 1 << 20, MOST = 200 };
    char *chunk = malloc(CHUNK + 32);
    const int n = sprintf(chunk, "%x\r\n", CHUNK);
    memset(chunk + n, 'x', CHUNK);
    memcpy(chunk + n + CHUNK, "\r\n", 2);
    static const char *const heads[] = {"POST /nowhere HTTP/1.1\r\nHost: localhost\r\n",
                                        "GET /livez HTTP/1.1\r\nHost: localhost\r\n",
                                        "POST /tokenize HTTP/1.1\r\nHost: localhost\r\n"};
    for (size_t i = 0; i < FRIT_COUNT(heads); i++) {
        const int fd = connect_to(&s);
        send_text(fd, heads[i]);
        send_text(fd, "Transfer-Encoding: chunked\r\n\r\n");
        int n_sent = 0;
        for (bool open = true; open && n_sent < MOST; n_sent++) {
            size_t at = 0;
            while (open && at < (size_t)n + CHUNK + 2) {
                const ssize_t sent = send(fd, chunk + at, (size_t)n + CHUNK + 2 - at, MSG_NOSIGNAL);
                open = sent > 0;
                if (open) at += (size_t)sent;
            }
        }
        close(fd);
        if (n_sent >= MOST) fail_msg("%s took %d MiB", heads[i], n_sent);
    }
    free(chunk);
    expect_health(&s, "running", 0);
}

static void pages_of_other_sites_change_nothing_without_an_origin(void **state)
{
    (void)state;
    static const struct {
        const char *method, *site, *mode;
        int status;
    } rows[] = {{"POST", "cross-site", "no-cors", 403},
                {"POST", "same-site", "no-cors", 403},
                {"POST", "cross-site", "navigate", 403},
                {"POST", "same-origin", "cors", 200},
                {"POST", "none", "navigate", 200}};
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        char headers[200];
        snprintf(headers, sizeof headers, "Sec-Fetch-Site: %s\r\nSec-Fetch-Mode: %s\r\n", rows[i].site, rows[i].mode);
        reply r = reply_to(&s, rows[i].method, "/tokenize", headers, "{\"content\": \"a\"}");
        if (r.status != rows[i].status) fail_msg("%s: %d %s", headers, r.status, r.body);
        reply_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_heads_are_checked_as_the_first),
        cmocka_unit_test(too_many_arguments_are_refused_with_an_answer),
        cmocka_unit_test(head_of_a_stream_has_no_body),
        cmocka_unit_test(a_refused_body_without_an_end_is_not_read_for_ever),
        cmocka_unit_test(pages_of_other_sites_change_nothing_without_an_origin),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
