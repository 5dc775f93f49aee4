// SPDX-License-Identifier: MIT
// frit bench --requests: an engine in its own process, and servers that refuse, break off, fall silent or do not count.
#include "frit/bench/load.h"

#include "support/command_posix.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

// ---------------------------------------------------------------------------------------- a server

// The answer of the fake server to a request. The server's list of models says that the vocabulary has 500 tokens.
typedef struct behaviour {
    const char *status;   // "200 OK"
    const char *body;     // after the head
    double pause_s;       // between its bytes, or before its end if `is_silent`
    bool is_silent;       // says nothing more after the body, for pause_s
    bool is_whole;        // closes the connection as announced; false: breaks off
} behaviour;

typedef struct fake {
    int listener, port;
    pthread_t thread;
    behaviour does[16];   // of one request after the other; the last one for all others
    int n_does;
    _Atomic int n_requests;
    char bodies[8][8192];   // of the first requests
} fake;

static void send_all(int to, const char *bytes, size_t n, double pause)
{
    for (size_t i = 0; i < n && pause > 0; i++) {
        if (send(to, bytes + i, 1, MSG_NOSIGNAL) != 1) return;
        pause_s(pause);
    }
    if (pause <= 0 && n > 0) (void)!send(to, bytes, n, MSG_NOSIGNAL);
}

static size_t read_request(int from, char *request, size_t size)
{
    size_t n = 0, n_body = 0;
    const char *head_end = NULL;
    while (n + 1 < size && !(head_end && n >= (size_t)(head_end + 4 - request) + n_body)) {
        const ssize_t got = recv(from, request + n, size - 1 - n, 0);
        if (got <= 0) return 0;
        n += (size_t)got;
        request[n] = 0;
        head_end = strstr(request, "\r\n\r\n");
        const char *length = strstr(request, "Content-Length: ");
        if (length) n_body = strtoul(length + 16, NULL, 10);
    }
    return n;
}

static void answer(fake *f, int connection)
{
    static const char models[] = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
                                 "{\"data\":[{\"id\":\"first\",\"meta\":{\"n_vocab\":500}},{\"id\":\"other\"}]}";
    char request[65536], head[256];
    if (read_request(connection, request, sizeof request) == 0) return;
    if (strncmp(request, "GET /v1/models ", 15) == 0) {
        send_all(connection, models, sizeof models - 1, 0);
        return;
    }
    const int k = f->n_requests++;
    const behaviour *b = &f->does[k < f->n_does ? k : f->n_does - 1];
    if (k < 8) snprintf(f->bodies[k], sizeof f->bodies[k], "%.8000s", strstr(request, "\r\n\r\n") + 4);
    // A body that is shorter than announced is one that broke off.
    const size_t n = strlen(b->body), n_announced = b->is_whole && !b->is_silent ? n : n + 1000;
    snprintf(head, sizeof head, "HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n", b->status,
             n_announced);
    if (b->status[0]) send_all(connection, head, strlen(head), 0);
    send_all(connection, b->body, n, b->is_silent ? 0 : b->pause_s);
    if (b->is_silent) pause_s(b->pause_s);
}

static void *run_fake(void *ctx)
{
    fake *f = ctx;
    for (int connection; (connection = accept(f->listener, NULL, NULL)) >= 0; close(connection)) answer(f, connection);
    return NULL;
}

static void start_fake(fake *f)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    f->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(bind(f->listener, (struct sockaddr *)&at, n) == 0 && listen(f->listener, 16) == 0 &&
                getsockname(f->listener, (struct sockaddr *)&at, &n) == 0);
    f->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&f->thread, NULL, run_fake, f), 0);
}

static void stop_fake(fake *f)
{
    shutdown(f->listener, SHUT_RDWR);
    pthread_join(f->thread, NULL);
    close(f->listener);
}

#define EVENT(text) "data: {\"choices\":[{\"text\":\"" text "\",\"finish_reason\":null}]}\n\n"
#define LAST        "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\n"
#define USAGE(n)    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":" #n "}}\n\n"
#define DONE        "data: [DONE]\n\n"

static const behaviour good = {"200 OK", EVENT("a") EVENT("b") LAST USAGE(4) DONE, .is_whole = true};

static bool has_curl(void)
{
    outcome o = frit("bench --requests 1 --url http://127.0.0.1:1", NULL);
    const bool has = !strstr(o.err, "without libcurl");
    outcome_free(&o);
    return has;
}

// The object of a measurement of `frit bench --json`.
static json_t *measured(const outcome *o)
{
    json_t *list = json_loads(o->out, 0, NULL), *first = json_incref(json_array_get(list, 0));
    json_decref(list);
    if (!first) fail_msg("no measurement:\n%s\n%s", o->out, o->err);
    return first;
}

static double number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_number(value)) fail_msg("%s is missing", name);
    return json_number_value(value);
}

static json_t *ask(fake *f, const char *options, int code)
{
    char arguments[512];
    start_fake(f);
    snprintf(arguments, sizeof arguments,
             "bench -q --json --url http://127.0.0.1:%d/v1/ --in 8 --out 4 --concurrency 1 %s", f->port, options);
    outcome o = frit(arguments, NULL);
    stop_fake(f);
    if (o.code != code) fail_msg("code %d, expected %d:\n%s", o.code, code, o.err);
    json_t *object = measured(&o);
    outcome_free(&o);
    return object;
}

// ---------------------------------------------------------------------------------------- tests

static void a_server_is_sent_the_requests_of_the_seed(void **state)
{
    (void)state;
    if (!has_curl()) skip_because("this build has no libcurl");
    fake f = {.does = {good}, .n_does = 1};
    json_t *m = ask(&f, "--requests 3 --shared-prefix 2 --seed 5", 0);
    assert_int_equal(number(m, "completed"), 3);
    assert_int_equal(number(m, "total_input_tokens"), 27);
    assert_int_equal(number(m, "total_output_tokens"), 12);
    assert_string_equal(json_string_value(json_object_get(m, "tokens_counted_by")), "usage");
    assert_string_equal(json_string_value(json_object_get(m, "model_id")), "first");
    json_decref(m);
    const load_case load = {.n_in = 8, .n_shared = 2, .n_vocab = 500, .seed = 5};
    for (int i = 0; i < 3; i++) {
        frit_token tokens[8];
        load_case_prompt(&load, i, tokens);
        json_t *sent = json_loads(f.bodies[i], 0, NULL), *prompt = json_object_get(sent, "prompt");
        assert_int_equal(json_array_size(prompt), 8);
        for (size_t k = 0; k < 8; k++) assert_int_equal(json_integer_value(json_array_get(prompt, k)), tokens[k]);
        assert_int_equal(number(sent, "max_tokens"), 4);
        assert_true(json_is_true(json_object_get(sent, "stream")) && json_is_true(json_object_get(sent, "ignore_eos")));
        json_decref(sent);
    }
}

static void fields_of_requests_can_be_changed(void **state)
{
    (void)state;
    if (!has_curl()) skip_because("this build has no libcurl");
    fake f = {.does = {good}, .n_does = 1};
    json_t *m = ask(&f, "--requests 1 --model other --body '{\"ignore_eos\": null, \"min_tokens\": 4}'", 0);
    assert_string_equal(json_string_value(json_object_get(m, "model_id")), "other");
    json_decref(m);
    json_t *sent = json_loads(f.bodies[0], 0, NULL);
    assert_string_equal(json_string_value(json_object_get(sent, "model")), "other");
    assert_null(json_object_get(sent, "ignore_eos"));
    assert_int_equal(number(sent, "min_tokens"), 4);
    json_decref(sent);
    fake g = {.does = {good}, .n_does = 1};
    m = ask(&g, "--requests 1 --text", 0);
    json_decref(m);
    sent = json_loads(g.bodies[0], 0, NULL);
    const char *prompt = json_string_value(json_object_get(sent, "prompt"));
    assert_non_null(prompt);
    int n_spaces = 0;
    for (const char *at = prompt; *at; at++) n_spaces += *at == ' ';
    assert_int_equal(n_spaces, 7);   // eight words
    json_decref(sent);
}

static void failures_are_counted_by_kind(void **state)
{
    (void)state;
    if (!has_curl()) skip_because("this build has no libcurl");
    static const char *const kinds[] = {"HTTP 429",           "HTTP 500",          "connection lost",
                                        "stream ended early", "event is not JSON", "error in the stream"};
    fake f = {.does = {good,
                       {"429 Too Many Requests", "{\"error\":{\"message\":\"the queue is full\"}}", .is_whole = true},
                       {"500 No", "<html>no</html>", .is_whole = true},
                       {"200 OK", EVENT("a"), .is_whole = false},
                       {"", "", .is_whole = false},
                       {"200 OK", EVENT("a"), .is_whole = true},
                       {"200 OK", "data: {\"choices\":[{\"te\n\n", .is_whole = true},
                       {"200 OK", EVENT("a") "data: {\"error\":{\"message\":\"out of room\"}}\n\n", .is_whole = true},
                       {"429 Too Many Requests", "", .is_whole = true},
                       good},
              .n_does = 10};
    json_t *m = ask(&f, "--requests 10", 1), *errors = json_object_get(m, "errors");
    assert_int_equal(number(m, "completed"), 2);
    assert_int_equal(number(m, "failed"), 8);
    double n = 0;
    for (size_t i = 0; i < json_array_size(errors); i++) n += number(json_array_get(errors, i), "count");
    assert_int_equal(n, 8);
    for (size_t i = 0; i < FRIT_COUNT(kinds); i++) {
        bool found = false;
        for (size_t k = 0; k < json_array_size(errors); k++)
            found =
                found || strcmp(json_string_value(json_object_get(json_array_get(errors, k), "kind")), kinds[i]) == 0;
        if (!found) fail_msg("no error of the kind '%s': %s", kinds[i], json_dumps(errors, 0));
    }
    assert_string_equal(json_string_value(json_object_get(json_array_get(errors, 0), "example")), "the queue is full");
    json_decref(m);
}

static void slow_and_uncounted_streams_are_answers(void **state)
{
    (void)state;
    if (!has_curl()) skip_because("this build has no libcurl");
    fake f = {.does = {{"200 OK", EVENT("a") EVENT("") EVENT("c") LAST DONE, .pause_s = 0.0005, .is_whole = true}},
              .n_does = 1};
    json_t *m = ask(&f, "--requests 2", 0);
    assert_int_equal(number(m, "completed"), 2);
    assert_int_equal(number(m, "total_output_tokens"), 6);
    assert_int_equal(number(m, "short_answers"), 2);
    assert_string_equal(json_string_value(json_object_get(m, "tokens_counted_by")), "events");
    // An event has some 60 bytes, and each byte takes half a millisecond.
    assert_true(number(m, "mean_itl_ms") > 25 && number(m, "mean_ttft_ms") > 25);
    assert_true(number(m, "mean_e2el_ms") > number(m, "mean_ttft_ms") + 2 * number(m, "mean_itl_ms"));
    json_decref(m);
}

static void a_silent_stream_fails(void **state)
{
    (void)state;
    if (!has_curl()) skip_because("this build has no libcurl");
    fake f = {.does = {{"200 OK", EVENT("a"), .pause_s = 3, .is_silent = true}}, .n_does = 1};
    json_t *m = ask(&f, "--requests 1 --max-silence 1", 1);
    assert_int_equal(number(m, "completed"), 0);
    assert_true(number(m, "duration") < 2.9);
    assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(m, "errors"), 0), "kind")),
                        "silent for too long");
    json_decref(m);
}

static void a_signal_prints_what_was_measured(void **state)
{
    (void)state;
    if (!has_curl()) skip_because("this build has no libcurl");
    fake f = {.does = {good, good, {"200 OK", EVENT("a"), .pause_s = 3, .is_silent = true}}, .n_does = 3};
    char arguments[512];
    start_fake(&f);
    snprintf(arguments, sizeof arguments, "bench --url http://127.0.0.1:%d --requests 5 --in 8 --out 4 --concurrency 1",
             f.port);
    started s = start("", arguments, "");
    for (int i = 0; i < 2000 && f.n_requests < 3; i++) pause_s(0.01);
    pause_s(0.1);
    kill(s.pid, SIGINT);
    assert_int_equal(end(&s, 5), 130);
    stop_fake(&f);
    char *out = read_file(s.out, NULL);
    assert_non_null(strstr(out, "|    2 |      0 |"));
    assert_non_null(strstr(out, "Stopped: 3 requests had no answer yet."));
    free(out);
}

static void a_server_that_is_not_there_is_named(void **state)
{
    (void)state;
    if (!has_curl()) skip_because("this build has no libcurl");
    expect("bench --requests 1 --url http://127.0.0.1:1", NULL, 1, NULL, "http://127.0.0.1:1");
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    expect("bench --url http://127.0.0.1:1", NULL, 2, NULL, "--url needs --requests");
    expect("bench --rate 5", NULL, 2, NULL, "--rate needs --requests");
    expect("bench --requests 1 --text", NULL, 2, NULL, "--text needs a server");
    expect("bench --requests 1 --url 127.0.0.1:1", NULL, has_curl() ? 2 : 1, NULL, has_curl() ? "is no address" : "");
    expect("bench --requests 1 --in 4 --shared-prefix 5", NULL, 2, NULL, "--shared-prefix 5 is more than the 4 tokens");
    expect("bench --requests 1 -o csv", NULL, 2, NULL, "requests are reported as md or json");
    expect("bench --requests 1 -t 1,2", NULL, 2, NULL, "are one number");
    expect("bench --requests 1 -c 16", NULL, 2, NULL, "-c 16 is less than a request of 512 tokens");
    expect("bench --requests 1 --concurrency x", NULL, 2, NULL, "--concurrency: 'x' is no list of numbers");
    expect("bench --requests 1 a.gguf b.gguf", NULL, 2, NULL, "--requests measures one model");
}

static void an_engine_answers_all_requests(void **state)
{
    (void)state;
    outcome o =
        frit("bench -q --json --requests 7 --in 12 --out 5 --concurrency 3,0 --parallel 4 --warmup 1 --rounds 2", NULL);
    assert_int_equal(o.code, 0);
    json_t *list = json_loads(o.out, 0, NULL);
    assert_int_equal(json_array_size(list), 4);
    for (size_t i = 0; i < 4; i++) {
        const json_t *m = json_array_get(list, i);
        assert_int_equal(number(m, "completed"), 7);
        assert_int_equal(number(m, "total_input_tokens"), 84);
        assert_int_equal(number(m, "total_output_tokens"), 35);
        assert_int_equal(number(m, "max_concurrent_requests"), i < 2 ? 3 : 7);
        assert_int_equal(number(m, "round"), i % 2 + 1);
        assert_true(number(m, "p99_ttft_ms") >= number(m, "median_ttft_ms") && number(m, "median_tpot_ms") > 0);
    }
    json_decref(list);
    outcome_free(&o);
}

static void several_measurements_end_with_a_table_of_all(void **state)
{
    (void)state;
    outcome o = frit("bench -q --requests 2 --in 4 --out 2 --concurrency 1,2", NULL);
    assert_int_equal(o.code, 0);
    const char *table = strstr(o.out, "| at once | round | failed |");
    assert_non_null(table);
    assert_non_null(strstr(table, "|       1 |     1 |      0 |"));
    assert_non_null(strstr(table, "|       2 |     1 |      0 |"));
    outcome_free(&o);
    o = frit("bench -q --requests 2 --in 4 --out 2", NULL);
    assert_null(strstr(o.out, "| at once |"));
    assert_non_null(strstr(o.out, "| between tokens (ITL) "));
    outcome_free(&o);
}

static void one_token_has_no_time_after_the_first(void **state)
{
    (void)state;
    outcome o = frit("bench -q --json --requests 3 --in 40 --out 1 --rate 1000 --shared-prefix 32", NULL);
    json_t *m = measured(&o);
    assert_int_equal(number(m, "total_output_tokens"), 3);
    assert_true(number(m, "mean_tpot_ms") == 0 && number(m, "mean_ttft_ms") > 0);
    json_decref(m);
    outcome_free(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_is_sent_the_requests_of_the_seed),
        cmocka_unit_test(fields_of_requests_can_be_changed),
        cmocka_unit_test(failures_are_counted_by_kind),
        cmocka_unit_test(slow_and_uncounted_streams_are_answers),
        cmocka_unit_test(a_silent_stream_fails),
        cmocka_unit_test(a_signal_prints_what_was_measured),
        cmocka_unit_test(a_server_that_is_not_there_is_named),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(an_engine_answers_all_requests),
        cmocka_unit_test(several_measurements_end_with_a_table_of_all),
        cmocka_unit_test(one_token_has_no_time_after_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
