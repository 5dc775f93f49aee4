// SPDX-License-Identifier: MIT
// Hostile heads: heads that proxies interpret differently, broken heads and chunks, and refusals before the body.
#include "support/served_posix.h"
#include "support/tiny_model.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define TEXT "/v1/completions"
#define HOST "Host: localhost\r\n"
#define BODY "{\"prompt\": \"a\", \"max_tokens\": 1}"   // 32 bytes
#define NEXT "GET /health HTTP/1.1\r\n" HOST "\r\n"

// Time limit for events that must happen, also on a busy machine: only a failure takes this long. The deadlines of
// servers are longer, except where they are tested.
enum { PATIENCE_S = 60 };
#define PATIENT "--request-timeout 600 "

static served s;

static int start_server(void **state)
{
    (void)state;
    s = serve(tiny_model("tiny.gguf", &(tiny_options){0}), PATIENT "--parallel 2 --threads 1");
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    return stop_serving(&s, SIGTERM);
}

// Waits for the end of the connection; returns false if it stays open.
static bool has_ended(int fd)
{
    char bytes[4096];
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    while (poll(&readable, 1, 1000 * PATIENCE_S) == 1) {
        const ssize_t n = recv(fd, bytes, sizeof bytes, 0);
        if (n == 0 || (n < 0 && errno == ECONNRESET)) return true;
    }
    return false;
}

static const struct {
    const char *text;
    int status;
} heads[] = {
    {"POST " TEXT " HTTP/1.1\r\n" HOST "Content-Length: 32\r\nContent-Length: 32\r\n\r\n" BODY, 400},
    {"POST " TEXT " HTTP/1.1\r\n" HOST "Content-Length: 32\r\nContent-Length: 0\r\n\r\n" BODY, 400},
    {"POST " TEXT " HTTP/1.1\r\n" HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {"POST " TEXT " HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     400},
    {"POST " TEXT " HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400},
    {"POST " TEXT " HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n", 400},
    {"POST " TEXT " HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {"POST " TEXT " HTTP/1.1\r\n" HOST "Content-Length : 33\r\n\r\n" BODY, 400},
    {"POST " TEXT " HTTP/1.1\r\n" HOST "Content-Length: +33\r\n\r\n" BODY, 400},
    {"POST " TEXT " HTTP/1.1\r\n" HOST "Content-Length: 32, 33\r\n\r\n" BODY, 400},
    {"POST " TEXT " HTTP/1.1\r\n" HOST "Content-Length: 0x21\r\n\r\n" BODY, 400},
    {"POST " TEXT " HTTP/1.1\r\n" HOST "Content-Length: -5\r\n\r\n", 400},
    {"GET /health HTTP/1.1\r\n" HOST "Host: other\r\n\r\n", 400},
    {"GET /health HTTP/1.1\r\n" HOST HOST "\r\n", 400},
    {"GET /health HTTP/1.1\r\n\r\n", 400},
    {"GET /health HTTP/1.1\r\nHost: local host\r\n\r\n", 400},
};

// Sends a second request at once, which must not be answered.
static void check_head(int fd, const char *text, int status)
{
    char both[2048];
    snprintf(both, sizeof both, "%s%s", text, NEXT);
    send_text(fd, both);
    reply r = read_reply(fd);
    if (r.status != status) fail_msg("status %d for:\n%s", r.status, text);
    check_problem(&r, status, "invalid_http");
    reply_free(&r);
    if (!has_ended(fd)) fail_msg("the connection stays open after:\n%s", text);
    close(fd);
}

static void heads_with_two_meanings_are_refused_and_end_the_connection(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(heads); i++) check_head(connect_to(&s), heads[i].text, heads[i].status);
}

// libmicrohttpd reads these heads, and refuses some with its own texts.
static void so_are_those_of_later_requests(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(heads); i++) {
        int fd = connect_to(&s);
        send_text(fd, NEXT);
        reply first = read_reply(fd);
        assert_int_equal(first.status, 200);
        reply_free(&first);
        char both[2048];
        snprintf(both, sizeof both, "%s%s", heads[i].text, NEXT);
        send_text(fd, both);
        reply r = read_reply(fd);
        if (r.status < 400 || r.status > 499) fail_msg("status %d for:\n%s", r.status, heads[i].text);
        reply_free(&r);
        if (!has_ended(fd)) fail_msg("the connection stays open after:\n%s", heads[i].text);
        close(fd);
    }
}

// A client that closed its sending side is answered immediately: waiting for it would block the accept thread.
static void a_client_that_leaves_within_its_head_is_gone_at_once(void **state)
{
    (void)state;
    const int fd = connect_to(&s);
    send_text(fd, "POST " TEXT " HTTP/1.1\r\nHost: local");
    nap(200);   // time for the server to read it
    shutdown(fd, SHUT_WR);
    reply r = read_reply(fd);
    check_problem(&r, 400, "invalid_http");
    reply_free(&r);
    assert_true(has_ended(fd));
    close(fd);
}

// libmicrohttpd refuses broken chunks itself, with its own texts.
static void broken_chunks_are_refused_and_end_the_connection(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "zz\r\n",
        "-1\r\n{}\r\n0\r\n\r\n",
        "2\r\n{}XX0\r\n\r\n",
        "fffffffffffffffff\r\n{}",
    };
    for (size_t i = 0; i < 2 * FRIT_COUNT(bodies); i++) {
        const char *body = bodies[i / 2];
        const int fd = connect_to(&s);
        if (i % 2) {   // a later request of a connection
            send_text(fd, NEXT);
            reply first = read_reply(fd);
            assert_int_equal(first.status, 200);
            reply_free(&first);
        }
        char text[1024];
        snprintf(text, sizeof text, "POST %s HTTP/1.1\r\n%sTransfer-Encoding: chunked\r\n\r\n%s", TEXT, HOST, body);
        send_text(fd, text);
        reply r = read_reply(fd);
        if (r.status != 400 && r.status != 413) fail_msg("status %d for chunks: %s", r.status, body);
        reply_free(&r);
        if (!has_ended(fd)) fail_msg("the connection stays open after chunks: %s", body);
        close(fd);
    }
    assert_int_equal(health(&s, "running"), 0);
}

static void broken_heads_get_json(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int status;
    } cases[] = {
        {"nonsense\r\n\r\n", 400},
        {"GET /health\r\n\r\n", 400},
        {"GET  /health HTTP/1.1\r\n" HOST "\r\n", 400},
        {"GET /health HTTP/2.0\r\n" HOST "\r\n", 505},
        {"GET /health HTTP/1.1\r\n" HOST "no colon\r\n\r\n", 400},
        {"GET /health HTTP/1.1\r\n" HOST " folded: x\r\n\r\n", 400},
        {"GET /health HTTP/1.1\r\n" HOST "A\x01: x\r\n\r\n", 400},
        {"GET /health HTTP/1.1\n"
         "Host: localhost\n\n",
         400},
    };
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        int fd = connect_to(&s);
        send_text(fd, cases[i].text);
        reply r = read_reply(fd);
        if (r.status != cases[i].status) fail_msg("status %d for:\n%s", r.status, cases[i].text);
        check_problem(&r, cases[i].status, "invalid_http");
        reply_free(&r);
        close(fd);
    }
    int fd = connect_to(&s);
    char large[20000];
    snprintf(large, sizeof large, "GET /health HTTP/1.1\r\n" HOST "X: %017000d\r\n\r\n", 1);
    send_text(fd, large);
    reply r = read_reply(fd);
    check_problem(&r, 431, "headers_too_large");
    reply_free(&r);
    close(fd);
    for (int n = 255; n <= 256; n++) {   // beside Host
        int at = sprintf(large, "GET /health HTTP/1.1\r\n" HOST);
        for (int i = 0; i < n; i++) at += sprintf(large + at, "X%d: y\r\n", i);
        sprintf(large + at, "\r\n");
        fd = connect_to(&s);
        send_text(fd, large);
        r = read_reply(fd);
        if (n == 255)
            assert_int_equal(r.status, 200);
        else
            check_problem(&r, 431, "headers_too_large");
        reply_free(&r);
        close(fd);
    }
}

static void what_the_headers_decide_is_answered_before_the_body(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        int status;
        const char *code;
    } cases[] = {
        {"POST /nothing HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 9\r\n\r\n", 404, "not_found"},
        {"POST " TEXT " HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n", 413,
         "body_too_large"},
        {"POST " TEXT " HTTP/1.1\r\n" HOST "Expect: magic\r\nContent-Length: 9\r\n\r\n", 417, "expectation_failed"},
        {"GET /health%00.txt HTTP/1.1\r\n" HOST "\r\n", 404, "not_found"},
        {"POST " TEXT " HTTP/1.1\r\n" HOST "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\nxy", 415,
         "unsupported_encoding"},
    };
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        int fd = connect_to(&s);
        send_text(fd, cases[i].head);
        reply r = read_reply(fd);
        check_problem(&r, cases[i].status, cases[i].code);
        reply_free(&r);
        close(fd);
    }
    int fd = connect_to(&s);   // a valid one is asked for its body
    send_text(fd, "POST " TEXT " HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 32\r\n\r\n");
    char bytes[256] = "";
    read_some(fd, bytes, sizeof bytes - 1, 1000 * PATIENCE_S);
    assert_non_null(strstr(bytes, "100 Continue"));
    send_text(fd, BODY);
    reply r = read_reply(fd);
    assert_int_equal(r.status, 200);
    reply_free(&r);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_with_two_meanings_are_refused_and_end_the_connection),
        cmocka_unit_test(so_are_those_of_later_requests),
        cmocka_unit_test(a_client_that_leaves_within_its_head_is_gone_at_once),
        cmocka_unit_test(broken_chunks_are_refused_and_end_the_connection),
        cmocka_unit_test(broken_heads_get_json),
        cmocka_unit_test(what_the_headers_decide_is_answered_before_the_body),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
