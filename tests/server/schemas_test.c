// SPDX-License-Identifier: MIT
// Schemas of requests: schemas made to take long do not block a thread for others, and end with their clients and with
// the server; and the members of answers.
#include "support/events_posix.h"

#include <time.h>
#include <unistd.h>

#define TEXT  "/v1/completions"
#define PLAIN "{\"prompt\": \"ab\", \"max_tokens\": 2}"

enum { N_BOMBS = 8, PATIENCE_S = 60 };

static served s;

static int start_server(void **state)
{
    (void)state;
    s = serve(project_path("models/fable.gguf"), "-c 512 --parallel 2 --threads 1 --temp 0 --drain 2");
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    return stop_serving(&s, SIGTERM);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Writes definitions that each refer to the next one twice, which gives 2^30 paths. The number makes schemas differ.
static void write_bomb(char *body, size_t size, int number)
{
    size_t n =
        (size_t)snprintf(body, size,
                         "{\"prompt\": \"ab\", \"max_tokens\": 4, \"json_schema\": {\"title\": \"%d\", \"$ref\": "
                         "\"#/$defs/d0\", \"$defs\": {",
                         number);
    for (int i = 0; i < 30; i++)
        n += (size_t)snprintf(body + n, size - n,
                              "\"d%d\": {\"allOf\": [{\"$ref\": \"#/$defs/d%d\"}, {\"$ref\": \"#/$defs/d%d\"}]}, ", i,
                              i + 1, i + 1);
    n += (size_t)snprintf(body + n, size - n, "\"d30\": {\"type\": \"object\", \"required\": [\"a\"]}}}}");
    assert_true(n < size);
}

static void send_bombs(int sockets[N_BOMBS], int first)
{
    for (int i = 0; i < N_BOMBS; i++) {
        char body[8192];
        write_bomb(body, sizeof body, first + i);
        char *text = post_text(TEXT, "", body);
        sockets[i] = connect_to(&s);
        send_text(sockets[i], text);
        free(text);
    }
}

static void schemas_that_take_long_are_refused_and_leave_others_alone(void **state)
{
    (void)state;
    int sockets[N_BOMBS];
    send_bombs(sockets, 0);
    for (int i = 0; i < 3; i++) {
        reply r = post(&s, TEXT, PLAIN);
        assert_int_equal(r.status, 200);
        reply_free(&r);
    }
    for (int i = 0; i < N_BOMBS; i++) {
        reply r = read_reply(sockets[i]);
        assert_int_equal(r.status, 400);
        json_t *json = reply_json(&r);
        expect_text_in(json, "error.param", "json_schema");
        if (!strstr(text_in(json, "error.message"), "to compile")) fail_msg("%s", text_in(json, "error.message"));
        json_decref(json);
        reply_free(&r);
        close(sockets[i]);
    }
}

static void compiling_ends_with_the_server(void **state)
{
    (void)state;
    int sockets[N_BOMBS];
    send_bombs(sockets, N_BOMBS);
    nap(100);
    const double start = seconds();
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    assert_true(seconds() - start < PATIENCE_S);
    for (int i = 0; i < N_BOMBS; i++) close(sockets[i]);
    start_server(state);
}

static void compiling_ends_with_its_clients(void **state)
{
    (void)state;
    int sockets[N_BOMBS];
    send_bombs(sockets, 2 * N_BOMBS);
    for (int i = 0; i < N_BOMBS; i++) close(sockets[i]);
    // The server may not have read all requests yet when it is first idle.
    int n_idle = 0;
    for (const double start = seconds(); n_idle < 25 && seconds() - start < PATIENCE_S; nap(20))
        n_idle = health(&s, "running") + health(&s, "waiting") == 0 ? n_idle + 1 : 0;
    assert_int_equal(n_idle, 25);
    reply r = post(&s, TEXT, PLAIN);
    assert_int_equal(r.status, 200);
    reply_free(&r);
}

// The bias makes a comma by far the likeliest token where one is allowed: without the rule another member would follow.
static void answers_have_the_members_that_schemas_name(void **state)
{
    (void)state;
    for (int open = 0; open < 2; open++) {
        char body[1024];
        snprintf(
            body, sizeof body,
            "{\"prompt\": \"The king\", \"max_tokens\": 120, \"open_objects\": %s, \"logit_bias\": [[\",\", 100]], "
            "\"json_schema\": {\"type\": \"object\", \"properties\": {\"a\": {\"const\": 1}}, \"required\": [\"a\"]}}",
            open ? "true" : "false");
        json_t *json = post_for(&s, TEXT, body, 200);
        const char *text = text_in(json, "choices.0.text");
        if ((strchr(text, ',') != NULL) != open) fail_msg("open_objects %d: %s", open, text);
        if (!open) expect_text_in(json, "choices.0.finish_reason", "stop");
        json_decref(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schemas_that_take_long_are_refused_and_leave_others_alone),
        cmocka_unit_test(compiling_ends_with_its_clients),
        cmocka_unit_test(compiling_ends_with_the_server),
        cmocka_unit_test(answers_have_the_members_that_schemas_name),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
