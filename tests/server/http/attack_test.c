// SPDX-License-Identifier: MIT
// Hostile clients: clients that send slowly or nothing, bodies that take long to read, many clients.
#include "support/served_posix.h"
#include "support/tiny_model.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TEXT "/v1/completions"
#define HOST "Host: localhost\r\n"
#define BODY "{\"prompt\": \"a\", \"max_tokens\": 1}"   // 32 bytes
#define NEXT "GET /health HTTP/1.1\r\n" HOST "\r\n"

// Time limit for events that must happen, also on a busy machine: only a failure takes this long. The deadlines of
// servers are longer, except where they are tested.
enum { PATIENCE_S = 60 };
#define PATIENT "--request-timeout 600 "

static served s, shared;   // of the running test; of the tests without a server of their own

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

// Ends a test's own server, also if the test failed.
static int stop_own_server(void **state)
{
    const int code = stop_server(state);
    s = shared;
    return code;
}

static int start_hasty_server(void **state)
{
    (void)state;
    shared = s;
    s = serve(tiny_model("hasty.gguf", &(tiny_options){0}), "--request-timeout 1 --threads 1");
    return 0;
}

static int start_small_server(void **state)
{
    (void)state;
    struct rlimit before, limit;
    getrlimit(RLIMIT_NOFILE, &before);
    limit = before;
    limit.rlim_cur = 64;
    setrlimit(RLIMIT_NOFILE, &limit);
    shared = s;
    s = serve(tiny_model("few.gguf", &(tiny_options){.n_ctx = 4000}), PATIENT "--parallel 1 --threads 1");
    setrlimit(RLIMIT_NOFILE, &before);
    return 0;
}

static int start_fable_server(void **state)
{
    (void)state;
    shared = s;
    s = serve(project_path("models/fable.gguf"), PATIENT "--threads 1 --ctx 512");
    return 0;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// ---------------------------------------------------------------------------------------- slow clients

static void heads_and_bodies_that_drip_are_ended(void **state)
{
    (void)state;
    static const char *const begins[] = {
        "GET /hea",
        "POST " TEXT " HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\n{",
        "",
    };
    for (size_t i = 0; i < FRIT_COUNT(begins); i++) {
        int fd = connect_to(&s);
        char answer[1024] = "";
        size_t n = 0;
        send_text(fd, begins[i]);
        const double start = seconds();
        bool ended = false;
        while (!ended && seconds() - start < PATIENCE_S) {   // a byte every 100 ms
            if (i < 2) send(fd, " ", 1, MSG_NOSIGNAL);
            nap(100);
            const ssize_t got = recv(fd, answer + n, sizeof answer - 1 - n, MSG_DONTWAIT);
            if (got > 0) n += (size_t)got;
            ended = got == 0 || (got < 0 && errno == ECONNRESET);
        }
        if (!ended) fail_msg("'%s' is waited for without end", begins[i]);
        assert_true(seconds() - start >= 1);
        if (!strstr(answer, " 408 ")) fail_msg("'%s' is answered: %s", begins[i], answer);
        close(fd);
    }
}

static void a_client_that_closed_its_sending_side_gets_its_answer(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "{\"prompt\": \"a\", \"max_tokens\": 40, \"logit_bias\": {\"2\": -100}}",
        "{\"prompt\": \"a\", \"max_tokens\": 40, \"stream\": true, \"logit_bias\": {\"2\": -100}}",
    };
    for (size_t i = 0; i < FRIT_COUNT(bodies); i++) {
        int fd = connect_to(&s);
        char *text = post_text(TEXT, "", bodies[i]);
        send_text(fd, text);
        shutdown(fd, SHUT_WR);
        char answer[32768];
        size_t n = 0;
        for (ssize_t got; n < sizeof answer - 1 && (got = recv(fd, answer + n, sizeof answer - 1 - n, 0)) > 0;)
            n += (size_t)got;
        answer[n] = 0;
        if (!strstr(answer, "HTTP/1.1 200 ") || !strstr(answer, "finish_reason\":\"length"))
            fail_msg("the answer is: %s", answer);
        free(text);
        close(fd);
    }
}

// ---------------------------------------------------------------------------------------- crowds

static void health_is_answered_whatever_else_is_going_on(void **state)
{
    (void)state;
    enum { N = 200 };
    int fds[N], answering = connect_to(&s);
    char *text = post_text(TEXT, "", "{\"prompt\": \"a\", \"max_tokens\": -1, \"logit_bias\": {\"2\": -100}}");
    send_text(answering, text);
    free(text);
    for (int i = 0; i < N; i++) {   // clients that send nothing, a part of a head, a part of a body, or are idle
        static const char *const begins[] = {"", "GET /hea",
                                             "POST " TEXT " HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\n{", NEXT};
        fds[i] = connect_to(&s);
        send(fds[i], begins[i % 4], strlen(begins[i % 4]), MSG_NOSIGNAL);
    }
    for (int i = 0; i < 10; i++) health(&s, "running");   // no connection is free before the deadlines
    for (int i = 0; i < N; i++) close(fds[i]);
    close(answering);
    expect_health(&s, "running", 0);
    reply r = post(&s, TEXT, BODY);   // once the server has seen the connections end
    for (const double start = seconds(); r.status == 503 && seconds() - start < PATIENCE_S; r = post(&s, TEXT, BODY)) {
        reply_free(&r);
        nap(100);
    }
    assert_int_equal(r.status, 200);
    reply_free(&r);
}

// Connects as another client: on Linux all of 127.0.0.0/8 is this machine.
static int connect_from(const char *address)
{
    struct sockaddr_in from = {.sin_family = AF_INET};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s.port)};
    inet_pton(AF_INET, address, &from.sin_addr);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&from, sizeof from) != 0) {
        close(fd);
        skip_because("this machine does not have a second loopback address");
    }
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void check_reply(int fd, const char *text, int status, const char *code)
{
    send_text(fd, text);
    reply r = read_reply(fd);
    if (r.status != status) fail_msg("status %d, not %d: %s", r.status, status, r.body);
    if (code) check_problem(&r, status, code);
    reply_free(&r);
    close(fd);
}

// The server has 32 connections: 8 are reserved for /health, and one address may have three quarters of the others.
static void one_address_leaves_connections_to_others(void **state)
{
    (void)state;
    enum { N = 24, N_OF_ONE = 18 };
    struct pollfd polls[N];
    int n_refused = 0;
    close(connect_from("127.0.0.2"));
    for (int i = 0; i < N; i++) {
        polls[i] = (struct pollfd){.fd = connect_to(&s), .events = POLLIN};
        send_text(polls[i].fd, "POST " TEXT " HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\n{");
    }
    while (n_refused < N - N_OF_ONE && poll(polls, N, 1000 * PATIENCE_S) > 0)
        for (int i = 0; i < N; i++) {
            if (!polls[i].revents) continue;
            check_reply(polls[i].fd, "", 503, "too_many_connections");
            polls[i].fd = -1;
            n_refused++;
        }
    char *text = post_text(TEXT, "", BODY);
    check_reply(connect_to(&s), text, 503, "too_many_connections");
    check_reply(connect_from("127.0.0.2"), text, 200, NULL);
    check_reply(connect_to(&s), NEXT, 200, NULL);   // health
    assert_int_equal(poll(polls, N, 0), 0);
    assert_int_equal(n_refused, N - N_OF_ONE);
    free(text);
    for (int i = 0; i < N; i++)
        if (polls[i].fd >= 0) close(polls[i].fd);
}

// ---------------------------------------------------------------------------------------- bodies

static void begin_body(int fd, size_t n_announced, size_t n_sent)
{
    char head[256], bytes[1 << 16];
    memset(bytes, ' ', sizeof bytes);
    snprintf(head, sizeof head, "POST %s HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n", TEXT, n_announced);
    send_text(fd, head);
    for (size_t n; n_sent > 0; n_sent -= n) {
        n = n_sent < sizeof bytes ? n_sent : sizeof bytes;
        send_bytes(fd, bytes, n);
    }
}

// Posts until the reply has the status, because the server may still read the bodies of other clients.
static void post_until(int status, const char *code)
{
    reply r = post(&s, TEXT, BODY);
    for (const double start = seconds(); r.status != status && seconds() - start < PATIENCE_S;) {
        reply_free(&r);
        nap(10);
        r = post(&s, TEXT, BODY);
    }
    if (r.status != status) fail_msg("status %d, not %d: %s", r.status, status, r.body);
    if (code) check_problem(&r, status, code);
    if (code) assert_string_equal(reply_header(&r, "Retry-After"), "1");
    reply_free(&r);
}

// The memory of a body doubles as it grows: 8 bodies of more than 16 MiB use the 256 MiB of all bodies. Sockets buffer
// some bytes, so enough is sent that each body has 32 MiB before the next request.
static void all_bodies_share_a_budget(void **state)
{
    (void)state;
    enum { N = 8, MIB = 1 << 20 };
    int fds[N];
    for (int i = 0; i < N; i++) begin_body(fds[i] = connect_to(&s), 32 * MIB, 31 * MIB);
    post_until(503, "too_many_bodies");
    health(&s, "running");
    for (int i = 0; i < N; i++) close(fds[i]);
    post_until(200, NULL);
}

static void announced_bytes_take_nothing(void **state)
{
    (void)state;
    enum { N = 20, MIB = 1 << 20 };
    int fds[N];
    post_until(200, NULL);
    for (int i = 0; i < N; i++) begin_body(fds[i] = connect_to(&s), 32 * MIB, 1);
    for (int i = 0; i < 5; i++) {
        reply r = post(&s, TEXT, BODY);
        assert_int_equal(r.status, 200);
        reply_free(&r);
    }
    for (int i = 0; i < N; i++) close(fds[i]);
}

static long resident_kib(void)
{
    char path[64], line[256];
    long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)s.pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) sscanf(line, "VmRSS: %ld", &kib);
    if (file) fclose(file);
    return kib;
}

// A completion of n bytes of one character.
static char *long_request(size_t n, char c, const char *path, const char *field)
{
    char *text = malloc(n + 512);
    const int head = sprintf(text, "POST %s HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n{\"%s\": \"", path,
                             n + strlen(field) + 8, field);
    memset(text + head, c, n);
    strcpy(text + head + n, "\"}");
    return text;
}

// Processor time of the server in seconds; on systems that do not report it, wall-clock time.
static double used_seconds(void)
{
    clockid_t clock = CLOCK_MONOTONIC;
#if defined _POSIX_CPUTIME && _POSIX_CPUTIME >= 0
    assert_int_equal(clock_getcpuclockid(s.pid, &clock), 0);
#endif
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// The time that the server uses, from 4 bodies of 8 MiB of spaces in a field to their refusal.
static double cost_of_spaces(const char *field, const char *code)
{
    enum { N_CLIENTS = 4, N_BYTES = 8 << 20 };
    int fds[N_CLIENTS];
    const double before = used_seconds();
    char *text = long_request(N_BYTES, ' ', TEXT, field);
    for (int i = 0; i < N_CLIENTS; i++) {
        fds[i] = connect_to(&s);
        send_text(fds[i], text);
        health(&s, "running");
    }
    for (int i = 0; i < N_CLIENTS; i++) {
        reply r = read_reply(fds[i]);
        check_problem(&r, 400, code);
        reply_free(&r);
        close(fds[i]);
    }
    free(text);
    return used_seconds() - before;
}

// Parsing JSON takes a small part of the time and memory of tokenizing.
static void texts_that_cannot_fit_are_refused_before_they_are_read(void **state)
{
    (void)state;
    const long before = resident_kib();
    const double json = cost_of_spaces("user", "missing_required_parameter");
    const double all = cost_of_spaces("prompt", "context_length_exceeded");
    print_message("4 x 8 MiB of spaces: %.2f s of processor time as a field that is ignored, %.2f s as a prompt\n",
                  json, all);
    assert_true(all < 5 * json);
    long kib = resident_kib();
    for (const double start = seconds();
         FRIT_TEST_STRIDE == 1 && kib > before + (24 << 10) && seconds() - start < PATIENCE_S;) {
        nap(10);
        kib = resident_kib();
    }
    print_message("memory: %ld KiB, then %ld KiB\n", before, kib);
    if (before > 0 && FRIT_TEST_STRIDE == 1) assert_true(kib <= before + (24 << 10));
}

// Two threads tokenize long texts, so a third long text waits. Short requests are answered before all of them.
static void others_are_answered_while_long_texts_are_tokenized(void **state)
{
    (void)state;
    enum { N_LONG = 3, N_BYTES = 4 << 20, N_OTHERS = 5 };   // long enough for slow machines with sanitizers
    int streaming = connect_to(&s);
    char bytes[1024],
        *text = post_text(
            TEXT, "",
            "{\"prompt\": \"a\", \"max_tokens\": -1, \"stream\": true, \"logit_bias\": {\"1\": -100, \"4\": -100}}");
    send_text(streaming, text);
    free(text);
    assert_true(read_some(streaming, bytes, sizeof bytes, 1000 * PATIENCE_S) > 0);
    struct pollfd polls[N_LONG];
    text = long_request(N_BYTES, ' ', "/tokenize", "content");
    for (int i = 0; i < N_LONG; i++) {
        polls[i] = (struct pollfd){.fd = connect_to(&s), .events = POLLIN};
        send_text(polls[i].fd, text);
    }
    free(text);
    for (int i = 0; i < N_OTHERS; i++) {
        reply r = post(&s, TEXT, BODY);
        assert_int_equal(r.status, 200);
        reply_free(&r);
        health(&s, "running");
        assert_true(read_some(streaming, bytes, sizeof bytes, 1000 * PATIENCE_S) > 0);
        if (poll(polls, N_LONG, 0) != 0) fail_msg("%d of %d others were answered before a long text", i, N_OTHERS);
    }
    for (int i = 1; i < N_LONG; i++) close(polls[i].fd);
    close(streaming);
    reply r = read_reply(polls[0].fd);
    assert_int_equal(r.status, 200);
    json_t *json = reply_json(&r);
    assert_true(json_integer_value(json_object_get(json, "count")) > N_BYTES / 1000);
    json_decref(json);
    reply_free(&r);
    close(polls[0].fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(heads_and_bodies_that_drip_are_ended, start_hasty_server, stop_own_server),
        cmocka_unit_test(a_client_that_closed_its_sending_side_gets_its_answer),
        cmocka_unit_test_setup_teardown(health_is_answered_whatever_else_is_going_on, start_small_server,
                                        stop_own_server),
        cmocka_unit_test_setup_teardown(one_address_leaves_connections_to_others, start_small_server, stop_own_server),
        cmocka_unit_test(all_bodies_share_a_budget),
        cmocka_unit_test(announced_bytes_take_nothing),
        cmocka_unit_test_setup_teardown(others_are_answered_while_long_texts_are_tokenized, start_fable_server,
                                        stop_own_server),
        cmocka_unit_test_setup_teardown(texts_that_cannot_fit_are_refused_before_they_are_read, start_fable_server,
                                        stop_own_server),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
