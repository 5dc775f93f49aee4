// SPDX-License-Identifier: MIT
// Adapters of a server, and requests that choose among them: each request gets the text of a model with its adapters
// merged, independently of earlier and concurrent requests.
#include "support/adapters.h"
#include "support/served_posix.h"
#include "support/tiny_model.h"

#include <pthread.h>

enum { N_TOKENS = 12, N_CLIENTS = 4 };

static const char *plain;
static char *adapters[2];
static served s;

static int start_server(void **state)
{
    (void)state;
    char options[9000];
    plain = strdup(tiny_model("tiny.gguf", &(tiny_options){0}));
    for (int i = 0; i < 2; i++)
        adapters[i] =
            strdup(make_adapter(i ? "b.gguf" : "a.gguf", plain, &(adapter_options){.seed = 3 + (uint64_t)i}, NULL));
    snprintf(options, sizeof options, "--parallel 2 --threads 1 --lora '%s' --lora '%s:0.5'", adapters[0], adapters[1]);
    s = serve(plain, options);
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    return stop_serving(&s, SIGTERM);
}

// Returns the greedy text, malloc'd; `lora` is the field with a comma after it, or "".
static char *text_of(const served *server, const char *lora)
{
    char body[400];
    snprintf(body, sizeof body,
             "{%s \"prompt\": [1, 9, 20, 31], \"temperature\": 0, \"max_tokens\": %d, \"logit_bias\": {\"2\": -100}}",
             lora, N_TOKENS);
    reply r = post(server, "/v1/completions", body);
    if (r.status != 200) fail_msg("%s: %d %s", body, r.status, r.body);
    json_t *json = reply_json(&r);
    const json_t *choice = json_array_get(json_object_get(json, "choices"), 0);
    char *text = strdup(json_string_value(json_object_get(choice, "text")));
    json_decref(json);
    reply_free(&r);
    return text;
}

static const struct {
    const char *lora;
    float scales[2];
} wishes[] = {
    {"", {1, 0.5f}},   // the server's default
    {"\"lora\": [],", {0, 0}},
    {"\"lora\": [{\"id\": 0}],", {1, 0}},
    {"\"lora\": [{\"id\": 1}],", {0, 1}},
    {"\"lora\": [{\"id\": 1, \"scale\": -2}, {\"id\": 0, \"scale\": 0.25}],", {0.25f, -2}},
    {"\"lora\": [{\"id\": 0, \"scale\": 7}, {\"id\": 0, \"scale\": 1}],", {1, 0}},   // the last one is used
};

static char *expected[FRIT_COUNT(wishes)];

static void each_request_has_the_adapters_that_it_names(void **state)
{
    (void)state;
    const char *const paths[] = {adapters[0], adapters[1]};
    for (size_t i = 0; i < FRIT_COUNT(wishes); i++) {
        served merged = serve(merge_adapters("merged.gguf", plain, paths, wishes[i].scales, 2), "--threads 1");
        expected[i] = text_of(&merged, "");
        stop_serving(&merged, SIGTERM);
    }
    assert_string_not_equal(expected[0], expected[1]);   // otherwise nothing would be tested
    assert_string_not_equal(expected[1], expected[2]);
    assert_string_not_equal(expected[2], expected[3]);
    for (int round = 0; round < 2; round++) {   // the same prompt again: its cached prefix belongs to other adapters
        for (size_t i = 0; i < FRIT_COUNT(wishes); i++) {
            char *text = text_of(&s, wishes[i].lora);
            assert_string_equal(text, expected[i]);
            free(text);
        }
    }
}

static void *ask(void *ctx)
{
    const size_t first = *(size_t *)ctx;
    for (size_t i = 0; i < 2 * FRIT_COUNT(wishes); i++) {
        const size_t k = (first + i) % FRIT_COUNT(wishes);
        char *text = text_of(&s, wishes[k].lora);
        const bool same = strcmp(text, expected[k]) == 0;
        free(text);
        if (!same) return ctx;
    }
    return NULL;
}

// Two requests run in the same steps, the others wait for their sessions.
static void clients_with_other_adapters_do_not_disturb_each_other(void **state)
{
    (void)state;
    pthread_t threads[N_CLIENTS];
    size_t first[N_CLIENTS];
    for (size_t i = 0; i < N_CLIENTS; i++) {
        first[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &first[i]), 0);
    }
    for (size_t i = 0; i < N_CLIENTS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
}

static void chats_choose_adapters_too(void **state)
{
    (void)state;
    char *texts[2];
    for (int i = 0; i < 2; i++) {
        char body[300];
        snprintf(body, sizeof body,
                 "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"temperature\": 0, \"max_tokens\": 9, "
                 "\"logit_bias\": {\"2\": -100}, \"lora\": [{\"id\": 0, \"scale\": %d}]}",
                 i);
        reply r = post(&s, "/v1/chat/completions", body);
        assert_int_equal(r.status, 200);
        json_t *json = reply_json(&r);
        const json_t *choice = json_array_get(json_object_get(json, "choices"), 0);
        texts[i] = strdup(json_string_value(json_object_get(json_object_get(choice, "message"), "content")));
        json_decref(json);
        reply_free(&r);
    }
    assert_string_not_equal(texts[0], texts[1]);
    free(texts[0]);
    free(texts[1]);
}

static void adapters_are_listed(void **state)
{
    (void)state;
    static const double scales[] = {1, 0.5};
    reply r = get(&s, "/lora-adapters");
    json_t *json = reply_json(&r);
    assert_int_equal(json_array_size(json), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *item = json_array_get(json, i);
        assert_int_equal(json_integer_value(json_object_get(item, "id")), i);
        assert_string_equal(json_string_value(json_object_get(item, "path")), adapters[i]);
        assert_string_equal(json_string_value(json_object_get(item, "kind")), "lora");
        assert_true(json_number_value(json_object_get(item, "scale")) == scales[i]);
    }
    json_decref(json);
    reply_free(&r);
}

static void change(const char *body, int status, const char *part)
{
    reply r = post(&s, "/lora-adapters", body);
    if (r.status != status || !strstr(r.body, part)) fail_msg("%s: %d %s", body, r.status, r.body);
    reply_free(&r);
}

static void expect_text(const char *lora, size_t wish)
{
    char *text = text_of(&s, lora);
    assert_string_equal(text, expected[wish]);
    free(text);
}

// As llama.cpp's clients do: the choice of a request is not affected.
static void what_others_get_can_be_changed(void **state)
{
    (void)state;
    change("[{\"id\": 1}]", 200, "{\"success\":true}");
    expect_text("", 3);
    expect_text(wishes[4].lora, 4);
    reply r = get(&s, "/lora-adapters");
    json_t *json = reply_json(&r);
    assert_true(json_number_value(json_object_get(json_array_get(json, 0), "scale")) == 0);
    assert_true(json_number_value(json_object_get(json_array_get(json, 1), "scale")) == 1);
    json_decref(json);
    reply_free(&r);
    change("[]", 200, "success");
    expect_text("", 1);
    change("[{\"id\": 2}]", 400, "lora[0].id is 2, this server has 2 adapters");
    change("[5]", 400, "lora[0].id: expected the number of an adapter");
    change("{}", 400, "lora: is missing");
    change("5", 400, "the body is not JSON");
    expect_text("", 1);
    change("{\"lora\": [{\"id\": 0}, {\"id\": 1, \"scale\": 0.5}]}", 200, "success");
    expect_text("", 0);
}

static void bad_choices_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *lora, *part;
    } rows[] = {
        {"5", "lora: expected a list of at most"},
        {"\"a.gguf\"", "lora: expected a list of at most"},
        {"[0]", "lora[0].id: expected the number of an adapter"},
        {"[{}]", "lora[0].id: expected the number of an adapter"},
        {"[{\"id\": 0}, {\"id\": -1}]", "lora[1].id: expected the number of an adapter"},
        {"[{\"id\": 0.5}]", "lora[0].id: expected the number of an adapter"},
        {"[{\"id\": 99999999999}]", "lora[0].id: expected the number of an adapter"},
        {"[{\"id\": 2}]", "lora[0].id is 2, this server has 2 adapters, from 0 on"},
        {"[{\"id\": 0, \"scale\": \"much\"}]", "lora[0].scale: expected a number"},
        {"[{\"id\": 0, \"scale\": 1e7}]", "lora[0].scale: expected a number"},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        char body[300];
        snprintf(body, sizeof body, "{\"prompt\": \"a\", \"lora\": %s}", rows[i].lora);
        reply r = post(&s, "/v1/completions", body);
        json_t *json = reply_json(&r);
        const json_t *error = json_object_get(json, "error");
        const char *message = json_string_value(json_object_get(error, "message"));
        const char *param = json_string_value(json_object_get(error, "param"));
        if (r.status != 400 || !message || !strstr(message, rows[i].part) || !param || strcmp(param, "lora") != 0)
            fail_msg("%s: %d %s", rows[i].lora, r.status, r.body);
        json_decref(json);
        reply_free(&r);
    }
    assert_int_equal(health(&s, "running"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_request_has_the_adapters_that_it_names),
        cmocka_unit_test(clients_with_other_adapters_do_not_disturb_each_other),
        cmocka_unit_test(chats_choose_adapters_too),
        cmocka_unit_test(adapters_are_listed),
        cmocka_unit_test(what_others_get_can_be_changed),
        cmocka_unit_test(bad_choices_are_refused),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
