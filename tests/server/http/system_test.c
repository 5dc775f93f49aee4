// SPDX-License-Identifier: MIT
// Faults of the system while the server runs: no memory, disks that fail or do not answer, changes of the wall clock
// (all by preload/faults.c), and ten thousand connections.
#include "support/faults.h"
#include "support/command_posix.h"
#include "support/events_posix.h"
#include "support/tiny_model.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT "/v1/completions"
#define BODY "{\"prompt\": \"ab\", \"temperature\": 0, \"max_tokens\": 6, \"ignore_eos\": true}"

static faults *shared;

static const char *model(void)
{
    static char path[1024];
    const tiny_options options = {.n_ctx = 4000, .chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"};
    if (!path[0]) snprintf(path, sizeof path, "%s", tiny_model("system.gguf", &options));
    return path;
}

// Servers that start after the call have faults.
static void prepare(void)
{
#ifdef FRIT_PRELOAD_FAULTS
    static char command[4096];
    static const faults none;
    char path[1024];
    snprintf(path, sizeof path, "%s", temp_path("faults"));
    write_file(path, (const char *)&none, sizeof none);
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(shared != MAP_FAILED);
    close(fd);
    snprintf(command, sizeof command, "env FRIT_TEST_FAULTS='%s' LD_PRELOAD='%s'", path, FRIT_PRELOAD_FAULTS);
    served_by = command;
#else
    skip_because("calls cannot be made to fail in this build");
#endif
}

static int finish(void **state)
{
    (void)state;
    served_by = "";
    if (shared) atomic_store(&shared->stall_opens, 0);
    if (shared) munmap(shared, sizeof *shared);
    shared = NULL;
    return 0;
}

// Returns the environment for a shell that starts a command.
static const char *exports(void)
{
    static char text[4096];
    snprintf(text, sizeof text, "export %s;", served_by + strlen("env "));
    return text;
}

// ---------------------------------------------------------------------------------------- memory

static const struct {
    const char *path, *body;
} requests[] = {
    {TEXT, BODY},
    {TEXT, "{\"prompt\": \"ab\", \"max_tokens\": 3, \"stream\": true, \"logprobs\": 2, \"n\": 2, \"echo\": true}"},
    {"/v1/chat/completions", "{\"messages\": [{\"role\": \"user\", \"content\": \"ab\"}], \"max_tokens\": 3, "
                             "\"stream\": true, \"stop\": [\"x\"]}"},
    {"/v1/messages",
     "{\"messages\": [{\"role\": \"user\", \"content\": \"ab\"}], \"max_tokens\": 3, \"stream\": true}"},
    {"/v1/responses", "{\"input\": \"ab\", \"max_output_tokens\": 3}"},
    {"/completion", "{\"prompt\": \"ab\", \"n_predict\": 3, \"regex\": \"[a-c]*\", \"return_tokens\": true}"},
    {"/api/chat", "{\"messages\": [{\"role\": \"user\", \"content\": \"ab\"}], \"options\": {\"num_predict\": 3}}"},
    {"/tokenize", "{\"content\": \"ab\"}"},
};

static void expect_same_answer(const served *s, const json_t *before, const char *path, long k)
{
    json_t *again = post_for(s, TEXT, BODY, 200);
    if (strcmp(text_in(again, "choices.0.text"), text_in(before, "choices.0.text")) != 0)
        fail_msg("after %s without its allocation %ld: another answer", path, k);
    json_decref(again);
}

// If one allocation of a request fails, the request may fail, with an error or the end of its connection. The server
// and the next request must not fail.
static void try_allocations(long of_http, long n_tries)
{
    prepare();
    atomic_store(&shared->of_http, of_http);
    served s = serve(model(), "--parallel 2 --threads 1");
    json_t *before = post_for(&s, TEXT, BODY, 200);
    for (size_t i = 0; i < FRIT_COUNT(requests); i++) {
        for (int warm = 0; warm < 2; warm++) {
            reply r = post(&s, requests[i].path, requests[i].body);
            assert_int_equal(r.status, 200);
            reply_free(&r);
        }
        const long first = atomic_load(&shared->n_allocations);
        reply r = post(&s, requests[i].path, requests[i].body);
        reply_free(&r);
        const long n = atomic_load(&shared->n_allocations) - first, stride = n / n_tries + 1;
        assert_true(n > 2);
        for (long k = 1; k <= n; k += stride) {
            atomic_store(&shared->fail_allocation, k);
            r = post(&s, requests[i].path, requests[i].body);
            // Without memory Jansson reports wrong JSON, or drops a member: status 400.
            if (r.status != 0 && r.status != 200 && r.status != 400 && r.status != 500 && r.status != 503)
                fail_msg("%s without its allocation %ld of %ld: %d %s", requests[i].path, k, n, r.status, r.body);
            atomic_store(&shared->fail_allocation, 0);
            reply_free(&r);
            expect_same_answer(&s, before, requests[i].path, k);
        }
    }
    assert_true(atomic_load(&shared->n_failed) > n_tries);
    expect_health(&s, "running", 0);
    expect_health(&s, "waiting", 0);
    json_decref(before);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void an_allocation_that_fails_ends_no_server(void **state)
{
    (void)state;
    try_allocations(0, 25);
}

// Fails each allocation of libmicrohttpd. A connection that libmicrohttpd loses would wait for its deadline.
static void an_allocation_that_fails_loses_no_connection(void **state)
{
    (void)state;
    try_allocations(1, 100);
}

// Memory may end at any size with which the program can be loaded.
static void memory_that_ends_is_an_error(void **state)
{
    (void)state;
    if (IS_SANITIZED) skip_because("sanitizers use memory of their own");
    enum { STEP = 4 << 10, MOST = 1 << 20 };   // KiB
    char before[64], arguments[2048];
    snprintf(arguments, sizeof arguments, "run '%s' -p ab -n 2 --temp 0 --threads 1",
             project_path("models/fable.gguf"));
    int code = 4, n_errors = 0;
    for (int kib = STEP; code != 0 && kib < MOST; kib += STEP) {
        snprintf(before, sizeof before, "ulimit -v %d;", kib);
        started s = start(before, arguments, "</dev/null");
        code = end(&s, 60);
        char *said = read_file(s.err, NULL);
        const bool is_ours = strncmp(said, "frit: ", 6) == 0;
        if (code > 4 && n_errors > 0) fail_msg("with %d KiB: %d, %s", kib, code, said);
        n_errors += code > 0 && is_ours;
        free(said);
    }
    assert_int_equal(code, 0);
    assert_true(n_errors > 0);
}

// Jansson writes past its buffer if memory ends within a body; the reserve of the server prevents it.
static void allocations_that_fail_again_and_again_end_no_server(void **state)
{
    (void)state;
    enum { ROUNDS = 30 };
    prepare();
    served s = serve(model(), "--parallel 2 --threads 1");
    json_t *before = post_for(&s, TEXT, BODY, 200);
    char *large = malloc(40000);
    int n = sprintf(large, "{\"max_tokens\": 1, \"prompt\": \"ab\", \"metadata\": {\"a\": [");
    for (int i = 0; i < 1500; i++) n += sprintf(large + n, "\"text %d\", ", i);
    sprintf(large + n, "1]}}");
    static const long each[] = {20, 7, 50, 3};
    for (size_t k = 0; k < FRIT_COUNT(each); k++) {
        atomic_store(&shared->fail_each, each[k]);
        for (int i = 0; i < ROUNDS; i++) {
            reply r = post(&s, TEXT, i % 2 ? large : BODY);
            reply_free(&r);
        }
        atomic_store(&shared->fail_each, 0);
        expect_same_answer(&s, before, TEXT, each[k]);
    }
    free(large);
    json_decref(before);
    assert_true(atomic_load(&shared->n_failed) > ROUNDS);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// Allocations fail while the machine is probed, a model is opened and its first tokens are picked.
static void an_allocation_that_fails_at_the_start_is_an_error(void **state)
{
    (void)state;
    enum { TRIES = 50 };
    prepare();
    char arguments[2048];
    snprintf(arguments, sizeof arguments, "run '%s' -p ab -n 2 --temp 0 --threads 1", model());
    long n = 0;
    for (long k = 0; k <= n; k += n / TRIES + 1) {
        atomic_store(&shared->fail_allocation, k);
        started s = start(exports(), arguments, "</dev/null");
        const int code = end(&s, 60);
        if (k == 0) n = atomic_load(&shared->n_allocations);
        if (k == 0) assert_int_equal(code, 0);
        atomic_store(&shared->fail_allocation, 0);
        size_t n_said;
        char *said = read_file(s.err, &n_said);
        if (code > 4 || (code > 0 && !strstr(said, "frit: ")))
            fail_msg("without allocation %ld of %ld: %d, %s", k, n, code, said);
        free(said);
    }
    assert_true(n > 100);
}

// ---------------------------------------------------------------------------------------- disks

static void a_disk_that_fails_loses_no_answer(void **state)
{
    (void)state;
    prepare();
    char options[4096], slots[1024];
    snprintf(slots, sizeof slots, "%s", temp_path("eio-slots"));
    assert_int_equal(mkdir(slots, 0700), 0);
    snprintf(options, sizeof options, "--parallel 1 --threads 1 --responses-dir '%s' --slot-save-path '%s'",
             temp_path("eio-responses"), slots);
    served s = serve(model(), options);
    for (int i = 0; i < 2; i++) {
        atomic_store(&shared->fail_writes, i == 0);
        json_t *json = post_for(&s, "/v1/responses", "{\"input\": \"ab\", \"max_output_tokens\": 3}", 200);
        assert_true(strlen(text_in(json, "id")) > 5);
        json_decref(json);
        reply r = post(&s, "/slots/0?action=save", "{\"filename\": \"one\"}");
        assert_int_equal(r.status, i == 0 ? 500 : 200);
        reply_free(&r);
        char path[1100];
        snprintf(path, sizeof path, "%s/one", slots);
        assert_int_equal(access(path, F_OK), i == 0 ? -1 : 0);   // no partial file is left
    }
    assert_true(atomic_load(&shared->n_failed) >= 2);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    assert_non_null(strstr(s.said, "eio-responses"));   // the warning
}

// A page of a mapped model that the disk cannot read raises SIGBUS: the process ends with an error. Without a mapping
// the start fails.
static void a_disk_that_gives_no_page_ends_the_server_with_a_sentence(void **state)
{
    (void)state;
    prepare();
    char pages[1100], arguments[2048];
    snprintf(pages, sizeof pages, "%s.pages", temp_path("faults"));
    atomic_store(&shared->copy_maps, 1);
    served s = serve(model(), "--parallel 1 --threads 1");
    json_decref(post_for(&s, TEXT, BODY, 200));
    assert_int_equal(truncate(pages, 0), 0);
    reply r = post(&s, TEXT, BODY);
    assert_int_equal(r.status, 0);
    reply_free(&r);
    assert_int_equal(stop_serving(&s, 0), 1);
    assert_non_null(strstr(s.said, "frit: a file of the model cannot be read any more"));
    atomic_store(&shared->copy_maps, 0);
    atomic_store(&shared->fail_reads, 1);
    snprintf(arguments, sizeof arguments, "run '%s' --no-mmap -p ab -n 2", model());
    started run = start(exports(), arguments, "</dev/null");
    assert_int_equal(end(&run, 60), 3);
    char *said = read_file(run.err, NULL);
    assert_non_null(strstr(said, "cannot be read: Input/output error"));
    free(said);
}

static void await_stall(long before)
{
    for (int i = 0; i < 6000 && atomic_load(&shared->n_stalled) == before; i++) nap(10);
    assert_true(atomic_load(&shared->n_stalled) > before);
}

// A disk that does not answer, like a network file system without its server: no signal handler runs in the thread.
static void a_start_that_waits_for_its_disk_ends_at_a_signal(void **state)
{
    (void)state;
    static const char *const commands[] = {"run '%s' -p ab -n 2", "info '%s'", "serve '%s' --port 0"};
    prepare();
    atomic_store(&shared->stall_opens, 1);
    for (size_t i = 0; i < FRIT_COUNT(commands); i++) {
        char arguments[2048];
        snprintf(arguments, sizeof arguments, commands[i], model());
        const long before = atomic_load(&shared->n_stalled);
        started s = start(exports(), arguments, "</dev/null");
        await_stall(before);
        assert_true(is_running(&s));
        kill(s.pid, SIGINT);
        assert_int_equal(end(&s, 30), 130);
    }
}

static int ask_model(const served *s, const char *name)
{
    char body[128];
    const long before = atomic_load(&shared->n_stalled);
    snprintf(body, sizeof body, "{\"model\": \"%s\", \"prompt\": \"ab\", \"max_tokens\": 3}", name);
    const int fd = send_post(s, TEXT, body);
    await_stall(before);
    return fd;
}

static void expect_status(int fd, int status)
{
    reply r = read_reply(fd);
    assert_int_equal(r.status, status);
    reply_free(&r);
    close(fd);
}

// A model that is loaded for a request waits for its disk alone, and the end of the server waits at most for --drain.
static void others_are_answered_while_a_disk_does_not_answer(void **state)
{
    (void)state;
    prepare();
    char options[4096];
    snprintf(options, sizeof options, "'two=%s' 'three=%s' --parallel 1 --threads 1 --drain 1", model(), model());
    served s = serve(model(), options);
    json_t *before = post_for(&s, TEXT, BODY, 200);
    atomic_store(&shared->stall_opens, 1);
    const int waits = ask_model(&s, "two");
    for (int i = 0; i < 3; i++) expect_same_answer(&s, before, "a model", 0);
    close(send_post(&s, TEXT, "{\"model\": \"two\", \"prompt\": \"ab\"}"));   // a client that does not wait for the
                                                                              // model
    expect_health(&s, "waiting", 1);
    atomic_store(&shared->stall_opens, 0);
    expect_status(waits, 200);
    atomic_store(&shared->stall_opens, 1);
    const int refused = ask_model(&s, "three");
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    assert_non_null(strstr(s.said, "ended without the model that was being loaded"));
    expect_status(refused, 503);
    json_decref(before);
}

// ---------------------------------------------------------------------------------------- clocks

// The worker waits for a client that does not read, and checks every 50 ms if it has left, independently of the wall
// clock. Other answers and the limits of keys work meanwhile.
static void a_clock_that_is_set_stops_nothing(void **state)
{
    (void)state;
    static const long offsets[] = {86400, -86400, 864000};
    prepare();
    served s = serve_with_long_events(model(), "--parallel 1 --threads 1 --context-shift --sse-ping 1");
    for (size_t i = 0; i < FRIT_COUNT(offsets); i++) {
        const int slow = send_post(&s, TEXT,
                                   "{\"prompt\": \"a\", \"max_tokens\": 100000000, \"ignore_eos\": true, "
                                   "\"stream\": true}");
        await_answer(slow);
        atomic_store(&shared->clock_offset, offsets[i]);
        nap(300);   // full by now on most machines; otherwise the test checks less
        assert_int_equal(health(&s, "running"), 1);
        close(slow);
        expect_health(&s, "running", 0);
        json_decref(post_for(&s, TEXT, BODY, 200));
    }
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// ---------------------------------------------------------------------------------------- connections

static int connect_from(const served *s, int i)
{
    const int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in from = {.sin_family = AF_INET},
                       to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->port)};
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)(1 + i % 8));   // one address may not have all connections
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (struct sockaddr *)&from, sizeof from) == 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

static size_t resident_kib(pid_t pid)
{
    char path[64], line[256];
    size_t kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) sscanf(line, "VmRSS: %zu", &kib);
    if (file) fclose(file);
    return kib;
}

// Half a million log-probabilities are objects of JSON while the answer is written.
static void the_memory_of_a_large_answer_goes_back(void **state)
{
    (void)state;
    enum { N = 2000, MOST_KIB = 64 << 10 };
    if (IS_SANITIZED) skip_because("sanitizers have a malloc of their own");
#ifndef __GLIBC__
    skip_because("other allocators than glibc's are not told to give memory back");
#endif
    served s = serve(tiny_model("large.gguf", &(tiny_options){.n_ctx = 2048}), "--parallel 1 --threads 1");
    char body[2 * N + 256];
    int n = sprintf(body, "{\"max_tokens\": 1, \"prompt_logprobs\": 20, \"n\": 12, \"prompt\": [9");
    for (int i = 1; i < N; i++) n += sprintf(body + n, ",9");
    sprintf(body + n, "]}");
    json_decref(post_for(&s, TEXT, BODY, 200));
    const size_t before = resident_kib(s.pid);
    if (before == 0) skip_because("needs Linux");
    reply r = post(&s, TEXT, body);
    assert_int_equal(r.status, 200);
    reply_free(&r);
    size_t kib = resident_kib(s.pid);
    for (int i = 0; i < 1000 && kib > before + MOST_KIB; i++, kib = resident_kib(s.pid)) nap(10);
    print_message("memory: %zu KiB, then %zu KiB\n", before, kib);
    assert_true(kib <= before + MOST_KIB);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// More connections than the limit: the newest ones replace silent ones. Requests are answered meanwhile, and the memory
// of connections is returned, or bounded by their limit.
static void ten_thousand_connections_leave_room_for_requests(void **state)
{
    (void)state;
    enum { N = 10000 };
    struct rlimit before, many;
    getrlimit(RLIMIT_NOFILE, &before);
    many = before;
    many.rlim_cur = many.rlim_max;
    if (many.rlim_max < N + 1000) skip_because("fewer descriptors than connections");
    if (access("/proc/self/status", R_OK) != 0) skip_because("needs Linux");
    setrlimit(RLIMIT_NOFILE, &many);
    served s = serve(model(), "--parallel 1 --threads 1");
    json_t *expected = post_for(&s, TEXT, BODY, 200);
    const size_t first = resident_kib(s.pid);
    int *fds = malloc(N * sizeof *fds);
    for (int i = 0; i < N; i++) {
        fds[i] = connect_from(&s, i);
        if (fds[i] >= 0 && i % 2) send_text(fds[i], "POST " TEXT " HTTP/1.1\r\nHost: local");   // a head without an end
        if (i % 1000 == 999) assert_int_equal(health(&s, "running"), 0);
    }
    json_t *json = post_for(&s, TEXT, BODY, 200);
    assert_string_equal(text_in(json, "choices.0.text"), text_in(expected, "choices.0.text"));
    const size_t most = resident_kib(s.pid);
    for (int i = 0; i < N; i++)
        if (fds[i] >= 0) close(fds[i]);
    free(fds);
    assert_true(most < first + 4096 * 80);   // 64 KiB for each connection
    json_decref(json);
    json = post_for(&s, TEXT, BODY, 200);
    json_decref(json);
    json_decref(expected);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    setrlimit(RLIMIT_NOFILE, &before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_memory_of_a_large_answer_goes_back),
        cmocka_unit_test(ten_thousand_connections_leave_room_for_requests),
        cmocka_unit_test_teardown(an_allocation_that_fails_ends_no_server, finish),
        cmocka_unit_test_teardown(an_allocation_that_fails_loses_no_connection, finish),
        cmocka_unit_test_teardown(allocations_that_fail_again_and_again_end_no_server, finish),
        cmocka_unit_test(memory_that_ends_is_an_error),
        cmocka_unit_test_teardown(an_allocation_that_fails_at_the_start_is_an_error, finish),
        cmocka_unit_test_teardown(a_disk_that_fails_loses_no_answer, finish),
        cmocka_unit_test_teardown(a_disk_that_gives_no_page_ends_the_server_with_a_sentence, finish),
        cmocka_unit_test_teardown(a_start_that_waits_for_its_disk_ends_at_a_signal, finish),
        cmocka_unit_test_teardown(others_are_answered_while_a_disk_does_not_answer, finish),
        cmocka_unit_test_teardown(a_clock_that_is_set_stops_nothing, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
