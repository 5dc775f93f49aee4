// SPDX-License-Identifier: MIT
// Resumed streams, and responses in the background.
#include "support/events_posix.h"
#include "support/tiny_model.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT   "/v1/completions"
#define ANSWER "/v1/responses"

enum { LONG_CTX = 12000 };

static const char *model(void)
{
    static char path[1024];
    const tiny_options options = {.n_ctx = LONG_CTX,
                                  .chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"};
    if (!path[0]) snprintf(path, sizeof path, "%s", tiny_model("resume.gguf", &options));
    return path;
}

// No answer ends before max_tokens.
static served serve_endless(const char *more)
{
    char options[32768];
    snprintf(options, sizeof options, "--parallel 2 --threads 1 --temp 0 --logit-bias 2=-100 %s", more);
    return serve(model(), options);
}

static reply ask(const served *s, const char *method, const char *path, const char *headers, int status)
{
    reply r = reply_to(s, method, path, headers, "");
    if (r.status != status) fail_msg("%s %s: %d %s", method, path, r.status, r.body);
    return r;
}

// The texts of all events of a completion's stream.
static char *text_of(const reply *r)
{
    char *text = calloc(1, r->n_body + 1);
    for (const char *at = strstr(r->body, "data: {"); at; at = strstr(at + 1, "data: {")) {
        const char *end = strstr(at, "\n\n");
        json_t *json = json_loadb(at + 6, (size_t)(end - at) - 6, 0, NULL);
        strcat(text, text_in(json, "choices.0.text"));
        json_decref(json);
    }
    return text;
}

static void a_broken_stream_continues_from_any_place(void **state)
{
    (void)state;
    static const char body[] = "{\"prompt\": \"a\", \"max_tokens\": 300, \"stream\": true}";
    served s = serve_endless("--api-key one --api-key two");
    int fd = send_request(&s, "POST", TEXT, "X-Api-Key: one\r\n", body);
    reply expected = read_reply(fd);
    close(fd);
    assert_null(strstr(expected.body, "id: "));   // events have ids only if the request has a name
    fd = send_request(&s, "POST", TEXT, "X-Api-Key: one\r\nX-Conversation-Id: tale/7\r\n", body);
    await_bytes(fd);
    close(fd);
    reply all = ask(&s, "GET", "/v1/stream/tale/7", "X-Api-Key: one\r\n", 200);
    assert_string_equal(reply_header(&all, "Content-Type"), "text/event-stream");
    assert_true(all.complete);
    char *want = text_of(&expected), *text = text_of(&all);
    assert_string_equal(text, want);
    assert_memory_equal(all.body, "id: 0\ndata: {", 13);
    assert_non_null(strstr(all.body, "data: [DONE]\n\n"));
    free(text), free(want);
    reply tail = ask(&s, "GET", "/stream/tale/7?from=1000", "X-Api-Key: one\r\n", 200);
    assert_string_equal(tail.body, all.body + 1000);
    reply_free(&tail);
    tail = ask(&s, "GET", "/v1/stream/tale/7", "X-Api-Key: one\r\nLast-Event-ID: 20\r\n", 200);
    assert_string_equal(tail.body, strstr(all.body, "id: 21\n"));
    reply_free(&tail);
    static const struct {
        const char *path, *headers;
        int status;
    } rows[] = {{"/v1/stream/tale/7", "X-Api-Key: two\r\n", 404},
                {"/v1/stream/tale/8", "X-Api-Key: one\r\n", 404},
                {"/v1/stream/tale/7", "", 401},
                {"/v1/stream/tale/7?from=-1", "X-Api-Key: one\r\n", 400},
                {"/v1/stream/tale/7?from=99999999999999999999", "X-Api-Key: one\r\n", 400},
                {"/v1/stream/tale/7?from=99999999", "X-Api-Key: one\r\n", 410},
                {"/v1/stream/tale/7", "X-Api-Key: one\r\nLast-Event-ID: 9999\r\n", 410},
                {"/v1/stream/tale/7", "X-Api-Key: one\r\nLast-Event-ID: x\r\n", 400}};
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        reply r = ask(&s, "GET", rows[i].path, rows[i].headers, rows[i].status);
        reply_free(&r);
    }
    reply_free(&all);
    reply_free(&expected);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void a_stream_that_runs_has_many_readers_and_can_be_ended(void **state)
{
    (void)state;
    static const char body[] = "{\"prompt\": \"a\", \"max_tokens\": 100000000, \"stream\": true}";
    served s = serve_endless("--context-shift");
    int fd = send_request(&s, "POST", TEXT, "X-Conversation-Id: a\r\n", body);
    await_bytes(fd);
    close(fd);
    fd = send_request(&s, "POST", TEXT, "X-Conversation-Id: b\r\n", body);
    await_bytes(fd);
    close(fd);
    const int one = send_request(&s, "GET", "/v1/stream/a", "", ""),
              two = send_request(&s, "GET", "/v1/stream/a", "", "");
    const int left = send_request(&s, "GET", "/v1/stream/a", "", "");
    await_bytes(left);
    close(left);
    assert_int_equal(health(&s, "running"), 2);   // no client reads b
    reply r = ask(&s, "DELETE", "/v1/stream/b", "", 200);
    assert_non_null(strstr(r.body, "\"deleted\":true"));
    reply_free(&r);
    expect_health(&s, "running", 1);
    // A new stream of the same name ends the old one, and readers of the old one get an error.
    fd = send_request(&s, "POST", TEXT, "X-Conversation-Id: a\r\n",
                      "{\"prompt\": \"b\", \"max_tokens\": 3, \"stream\": true}");
    reply replaced = read_reply(fd);
    assert_int_equal(replaced.status, 200);
    reply_free(&replaced);
    close(fd);
    reply first = read_reply(one), second = read_reply(two);
    assert_string_equal(first.body, second.body);
    assert_non_null(strstr(first.body, "data: {\"error\":{\"message\":\"the request was cancelled\""));
    assert_null(strstr(first.body, "[DONE]"));
    reply_free(&first), reply_free(&second);
    close(one), close(two);
    expect_health(&s, "running", 0);
    r = ask(&s, "DELETE", "/v1/stream/none", "", 200);
    assert_non_null(strstr(r.body, "\"deleted\":false"));
    reply_free(&r);
    r = post(&s, TEXT, "{\"prompt\": \"b\", \"max_tokens\": 3}");
    assert_int_equal(r.status, 200);
    reply_free(&r);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// A long name makes long events.
static void only_the_end_of_a_long_stream_is_kept(void **state)
{
    (void)state;
    enum { NAME = 20000, N = 300 };
    static char options[NAME + 64];
    int n = sprintf(options, "--alias ");
    memset(options + n, 'n', NAME);
    served s = serve_endless(options);
    const int fd = send_request(&s, "POST", TEXT, "X-Conversation-Id: a\r\n",
                                "{\"prompt\": \"a\", \"max_tokens\": 300, \"stream\": true}");
    reply all = read_reply(fd);
    close(fd);
    assert_true(all.n_body > (size_t)NAME * N / 2);
    const size_t kept = 4 << 20;
    char path[64];
    reply r = ask(&s, "GET", "/v1/stream/a", "", 410);
    reply_free(&r);
    snprintf(path, sizeof path, "/v1/stream/a?from=%zu", all.n_body - kept - 1);
    r = ask(&s, "GET", path, "", 410);
    reply_free(&r);
    snprintf(path, sizeof path, "/v1/stream/a?from=%zu", all.n_body - kept);
    r = ask(&s, "GET", path, "", 200);
    assert_int_equal(r.n_body, kept);
    assert_memory_equal(r.body, all.body + all.n_body - kept, kept);
    reply_free(&r);
    reply_free(&all);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static json_t *await_status(const served *s, const char *id, const char *status)
{
    char path[128];
    snprintf(path, sizeof path, ANSWER "/%s", id);
    for (int i = 0; i < 600; i++) {
        reply r = ask(s, "GET", path, "", 200);
        json_t *json = reply_json(&r);
        reply_free(&r);
        if (strcmp(text_in(json, "status"), status) == 0) return json;
        expect_text_in(json, "status", "in_progress");
        json_decref(json);
        nap(50);
    }
    fail_msg("%s is not %s", id, status);
    return NULL;
}

static void responses_are_made_in_the_background(void **state)
{
    (void)state;
    char options[1200], id[64], path[160];
    snprintf(options, sizeof options, "--responses-dir '%s'", temp_path("made"));
    served s = serve_endless(options);
    json_t *whole = post_for(&s, ANSWER, "{\"input\": \"abc\", \"max_output_tokens\": 40}", 200);
    json_t *json = post_for(&s, ANSWER, "{\"input\": \"abc\", \"max_output_tokens\": 40, \"background\": true}", 200);
    expect_text_in(json, "status", "in_progress");
    snprintf(id, sizeof id, "%s", text_in(json, "id"));
    json_decref(json);
    json = await_status(&s, id, "incomplete");
    expect_text_in(json, "output.0.content.0.text", text_in(whole, "output.0.content.0.text"));
    assert_true(json_is_true(value_in(json, "background")));
    json_decref(json);
    snprintf(path, sizeof path, ANSWER "/%s?stream=true", id);   // it has no stream
    reply r = ask(&s, "GET", path, "", 400);
    reply_free(&r);
    json_decref(whole);

    json = post_for(&s, ANSWER, "{\"input\": \"abc\", \"background\": true}", 200);   // an answer that takes long
    snprintf(id, sizeof id, "%s", text_in(json, "id"));
    json_decref(json);
    snprintf(path, sizeof path, ANSWER "/%s", id);
    r = ask(&s, "DELETE", path, "", 409);
    reply_free(&r);
    snprintf(path, sizeof path, ANSWER "/%s/cancel", id);
    r = ask(&s, "POST", path, "", 200);
    assert_non_null(strstr(r.body, "\"status\":\"cancelled\""));
    reply_free(&r);
    expect_health(&s, "running", 0);
    json_decref(await_status(&s, id, "cancelled"));
    r = ask(&s, "POST", path, "", 200);   // twice
    reply_free(&r);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    s = serve_endless(options);
    json_decref(await_status(&s, id, "cancelled"));
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void a_background_stream_continues_behind_an_event(void **state)
{
    (void)state;
    char path[160];
    served s = serve_endless("");
    int fd = send_request(&s, "POST", ANSWER, "",
                          "{\"input\": \"abc\", \"max_output_tokens\": 60, \"background\": true, \"stream\": true}");
    char said[2048] = "";
    size_t n = 0;
    while (!strstr(said, "\"id\":\"resp_")) n += read_some(fd, said + n, sizeof said - 1 - n, 30000);
    char id[64];
    assert_int_equal(sscanf(strstr(said, "\"id\":\"resp_"), "\"id\":\"%63[a-z0-9_]", id), 1);
    close(fd);
    snprintf(path, sizeof path, ANSWER "/%s?stream=true&starting_after=5", id);
    // Waits for the event, because the answer may not have reached it.
    reply r = {0};
    for (int i = 0; i < 600 && r.status != 200; i++) {
        reply_free(&r);
        fd = send_request(&s, "GET", path, "", "");
        r = read_reply(fd);
        close(fd);
        if (r.status != 200) nap(50);
    }
    assert_int_equal(r.status, 200);
    long last = 5;
    for (const char *at = strstr(r.body, "\"sequence_number\":"); at; at = strstr(at + 1, "\"sequence_number\":"))
        assert_int_equal(strtol(at + 18, NULL, 10), ++last);
    assert_true(last > 60);
    assert_non_null(strstr(r.body, "event: response.incomplete\n"));
    reply_free(&r);
    snprintf(path, sizeof path, ANSWER "/%s", id);
    r = ask(&s, "GET", path, "", 200);
    assert_non_null(strstr(r.body, "\"status\":\"incomplete\""));
    reply_free(&r);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void what_is_not_possible_is_refused(void **state)
{
    (void)state;
    served s = serve_endless("");
    json_decref(post_for(&s, ANSWER, "{\"input\": \"abc\", \"background\": true, \"store\": false}", 400));
    json_t *json = post_for(&s, ANSWER, "{\"input\": \"abc\", \"max_output_tokens\": 2}", 200);
    char path[160];
    snprintf(path, sizeof path, ANSWER "/%s/cancel", text_in(json, "id"));
    reply r = ask(&s, "POST", path, "", 400);
    assert_non_null(strstr(r.body, "background"));
    reply_free(&r);
    snprintf(path, sizeof path, ANSWER "/%s?stream=true", text_in(json, "id"));
    r = ask(&s, "GET", path, "", 400);
    reply_free(&r);
    json_decref(json);
    r = ask(&s, "POST", ANSWER "/resp_1/cancel", "", 404);
    reply_free(&r);
    r = ask(&s, "POST", ANSWER "/resp_1/stop", "", 404);
    reply_free(&r);
    char *long_name = malloc(400);
    int n = sprintf(long_name, "X-Conversation-Id: ");
    memset(long_name + n, 'a', 200);
    strcpy(long_name + n + 200, "\r\n");
    const int fd =
        send_request(&s, "POST", TEXT, long_name, "{\"prompt\": \"a\", \"max_tokens\": 2, \"stream\": true}");
    r = read_reply(fd);
    assert_int_equal(r.status, 400);
    reply_free(&r);
    close(fd);
    free(long_name);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broken_stream_continues_from_any_place),
        cmocka_unit_test(a_stream_that_runs_has_many_readers_and_can_be_ended),
        cmocka_unit_test(only_the_end_of_a_long_stream_is_kept),
        cmocka_unit_test(responses_are_made_in_the_background),
        cmocka_unit_test(a_background_stream_continues_behind_an_event),
        cmocka_unit_test(what_is_not_possible_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
