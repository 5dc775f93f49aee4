// SPDX-License-Identifier: MIT
// frit serve --context-shift: answers longer than the context, alone and side by side. Without the option, answers end
// at the context.
#include "support/served_posix.h"
#include "support/tiny_model.h"

#define TEXT "/v1/completions"
#define BODY "{\"prompt\": \"ab ab abc\", \"temperature\": 0, \"logit_bias\": {\"2\": -100}%s}"

static json_t *ask(const served *s, const char *fields)
{
    char body[512];
    snprintf(body, sizeof body, BODY, fields);
    reply r = post(s, TEXT, body);
    if (r.status != 200) fail_msg("%s: %d %s", body, r.status, r.body);
    json_t *json = reply_json(&r);
    reply_free(&r);
    return json;
}

static json_int_t n_tokens_of(const json_t *answer)
{
    return json_integer_value(json_object_get(json_object_get(answer, "usage"), "completion_tokens"));
}

static const char *text_of(const json_t *answer, size_t i, const char *name)
{
    return json_string_value(json_object_get(json_array_get(json_object_get(answer, "choices"), i), name));
}

static void answers_are_longer_than_the_context(void **state)
{
    (void)state;
    char model[1024];
    snprintf(model, sizeof model, "%s", tiny_model("tiny.gguf", &(tiny_options){.n_ctx = 512}));
    served plain = serve(model, "-c 128 --parallel 2 --threads 1 --deterministic"),
           shifts = serve(model, "-c 128 --parallel 2 --threads 1 --deterministic --context-shift --keep -1");
    json_t *ended = ask(&plain, ", \"max_tokens\": 400"), *one = ask(&shifts, ", \"max_tokens\": 400"),
           *two = ask(&shifts, ", \"max_tokens\": 400, \"n\": 2"), *all = ask(&shifts, ", \"max_tokens\": -1");
    assert_true(n_tokens_of(ended) < 128);
    assert_string_equal(text_of(ended, 0, "finish_reason"), "length");
    assert_int_equal(n_tokens_of(one), 400);
    assert_string_equal(text_of(one, 0, "finish_reason"), "length");
    const size_t n_same = strlen(text_of(ended, 0, "text"));
    assert_memory_equal(text_of(one, 0, "text"), text_of(ended, 0, "text"), n_same);
    for (size_t i = 0; i < 2; i++) assert_string_equal(text_of(two, i, "text"), text_of(one, 0, "text"));
    assert_int_equal(n_tokens_of(all), 512);   // the model's trained context
    json_decref(ended);
    json_decref(one);
    json_decref(two);
    json_decref(all);
    assert_int_equal(stop_serving(&plain, SIGTERM), 0);
    assert_int_equal(stop_serving(&shifts, SIGTERM), 0);
}

static void a_server_that_cannot_shift_does_not_start(void **state)
{
    (void)state;
    char arguments[1200], said[4096];
    snprintf(arguments, sizeof arguments, "%s -c 64 --context-shift --port 0",
             tiny_model("tiny.gguf", &(tiny_options){0}));
    assert_int_not_equal(serve_and_fail(arguments, said, sizeof said), 0);
    assert_non_null(strstr(said, "needs a context of 96 at least, found 64"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_longer_than_the_context),
        cmocka_unit_test(a_server_that_cannot_shift_does_not_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
