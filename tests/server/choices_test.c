// SPDX-License-Identifier: MIT
// Several answers to one prompt (n): each equals the answer to a separate request with its seed, in the order of seeds.
#include "support/served_posix.h"
#include "support/tiny_model.h"

#include <unistd.h>

#define CHAT    "/v1/chat/completions"
#define TEXT    "/v1/completions"
#define SAMPLED "\"temperature\": 1.5, \"logit_bias\": {\"2\": -100}, \"max_tokens\": 30"

enum { MOST = 9, TEXT_BYTES = 4096 };

static const char chat_template[] = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
                                    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
static const char *const paths[] = {CHAT, TEXT};
static const char *const prompts[] = {"\"messages\": [{\"role\": \"user\", \"content\": \"hello\"}]",
                                      "\"prompt\": \"hello, hello\""};

static served s;

static int start_server(void **state)
{
    (void)state;
    const tiny_options options = {.n_ctx = 512, .chat_template = chat_template};
    s = serve(tiny_model("tiny.gguf", &options), "--parallel 4 --max-queue 20 --threads 1");
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    return stop_serving(&s, SIGTERM);
}

static json_t *ask(int kind, const char *fields)
{
    char body[1024];
    snprintf(body, sizeof body, "{%s, " SAMPLED ", %s}", prompts[kind], fields);
    reply r = post(&s, paths[kind], body);
    if (r.status != 200) fail_msg("%s: %d %s", body, r.status, r.body);
    json_t *json = reply_json(&r);
    reply_free(&r);
    return json;
}

static const char *text_of(const json_t *choice)
{
    const json_t *message = json_object_get(choice, "message");
    const char *text = json_string_value(json_object_get(message ? message : choice, message ? "content" : "text"));
    assert_non_null(text);
    return text;
}

static void expect_single(int kind, int seed, const char *text)
{
    char fields[64];
    snprintf(fields, sizeof fields, "\"seed\": %d", seed);
    json_t *single = ask(kind, fields);
    assert_string_equal(text, text_of(json_array_get(json_object_get(single, "choices"), 0)));
    json_decref(single);
}

// Fewer answers than sessions, and more, which wait for sessions.
static void each_answer_is_that_of_a_request_of_its_own(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (int n = 3; n <= MOST; n += 6) {
            char fields[64];
            snprintf(fields, sizeof fields, "\"n\": %d, \"seed\": 100", n);
            json_t *json = ask(kind, fields);
            const json_t *choices = json_object_get(json, "choices"), *usage = json_object_get(json, "usage");
            assert_int_equal(json_array_size(choices), n);
            assert_int_equal(json_integer_value(json_object_get(usage, "completion_tokens")), 30 * n);
            int n_different = 0;
            for (int i = 0; i < n; i++) {
                const json_t *choice = json_array_get(choices, (size_t)i);
                assert_int_equal(json_integer_value(json_object_get(choice, "index")), i);
                assert_string_equal(json_string_value(json_object_get(choice, "finish_reason")), "length");
                n_different += strcmp(text_of(choice), text_of(json_array_get(choices, 0))) != 0;
                expect_single(kind, 100 + i, text_of(choice));
            }
            assert_true(n_different > 0);
            json_decref(json);
        }
}

typedef struct pieces {
    char text[MOST][TEXT_BYTES];
    int n_ends[MOST], n_usage, n_done;
} pieces;

static void take_event(pieces *out, const json_t *json)
{
    const json_t *choice = json_array_get(json_object_get(json, "choices"), 0);
    out->n_usage += json_is_object(json_object_get(json, "usage"));
    if (!choice) return;
    const json_int_t i = json_integer_value(json_object_get(choice, "index"));
    assert_true(i >= 0 && i < MOST);
    assert_int_equal(out->n_ends[i] + out->n_done, 0);
    const json_t *delta = json_object_get(choice, "delta");
    const char *text = json_string_value(json_object_get(delta ? delta : choice, delta ? "content" : "text"));
    if (text) strncat(out->text[i], text, TEXT_BYTES - strlen(out->text[i]) - 1);
    out->n_ends[i] += json_is_string(json_object_get(choice, "finish_reason"));
}

static void a_stream_says_which_answer_goes_on(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        char body[1024];
        pieces out = {0};
        snprintf(body, sizeof body,
                 "{%s, " SAMPLED ", \"n\": 6, \"seed\": 7, \"stream\": true, "
                 "\"stream_options\": {\"include_usage\": true}}",
                 prompts[kind]);
        reply r = post(&s, paths[kind], body);
        assert_int_equal(r.status, 200);
        assert_true(r.complete);
        for (const char *at = r.body; *at;) {
            const char *end = strstr(at, "\n\n");
            assert_non_null(end);
            json_t *json = json_loadb(at + 6, (size_t)(end - at) - 6, 0, NULL);
            if (json)
                take_event(&out, json);
            else
                out.n_done++;
            json_decref(json);
            at = end + 2;
        }
        assert_int_equal(out.n_done, 1);
        assert_int_equal(out.n_usage, 1);
        for (int i = 0; i < 6; i++) {
            assert_int_equal(out.n_ends[i], 1);
            expect_single(kind, 7 + i, out.text[i]);
        }
        reply_free(&r);
    }
}

// All answers end with the client: the server is idle again, and answers others.
static void a_client_that_goes_away_ends_all_answers(void **state)
{
    (void)state;
    const char *body = "{\"prompt\": \"hello\", \"n\": 8, \"max_tokens\": 400, \"stream\": true, "
                       "\"logit_bias\": {\"2\": -100}}";
    for (int i = 0; i < 3; i++) {
        const int socket = send_post(&s, TEXT, body);
        if (i > 0) await_bytes(socket);
        close(socket);
        expect_health(&s, "running", 0);
        expect_health(&s, "waiting", 0);
    }
    json_t *json = ask(1, "\"seed\": 5");
    expect_single(1, 5, text_of(json_array_get(json_object_get(json, "choices"), 0)));
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_answer_is_that_of_a_request_of_its_own),
        cmocka_unit_test(a_stream_says_which_answer_goes_on),
        cmocka_unit_test(a_client_that_goes_away_ends_all_answers),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
