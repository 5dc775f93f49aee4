// SPDX-License-Identifier: MIT
// The paths of llama.cpp's server, with a scripted model.
#include "support/events_posix.h"
#include "support/scripted_model.h"

#include <string.h>

static served s, gapless;

static const script scripts[] = {
    {"<|once|>", {"upon ", "a time\n", "there ", "was."}},
    {"<|fim_prefix|>", {"p"}},
    {"<|fim_suffix|>", {"s"}},
    {"<|fim_middle|>", {"in the ", "middle"}},
    {"<|file_sep|>", {"f"}},
    {"<|repo_name|>", {"r"}},
};

static int start_servers(void **state)
{
    (void)state;
    const char *path = temp_path("native.gguf");
    scripted_model(path, "{% for m in messages %}{{ m.content }}{% endfor %}", scripts, FRIT_COUNT(scripts));
    s = serve(path, "--parallel 3 --threads 1 --top-k 33 --alias native");
    path = temp_path("gapless.gguf");
    scripted_model(path, "{% for m in messages %}{{ m.content }}{% endfor %}", scripts, 1);
    gapless = serve(path, "--parallel 1 --threads 1");
    return 0;
}

static int stop_servers(void **state)
{
    (void)state;
    return stop_serving(&s, SIGTERM) | stop_serving(&gapless, SIGTERM);
}

static void a_completion_has_llama_cpps_shape(void **state)
{
    (void)state;
    json_t *json = post_for(&s, "/completion", "{\"prompt\": \"<|once|>\", \"seed\": 18446744073709551615}", 200);
    expect_text_in(json, "content", "upon a time\nthere was.");
    expect_text_in(json, "model", "native");
    expect_text_in(json, "prompt", "<|once|>");
    expect_text_in(json, "stop_type", "eos");
    expect_text_in(json, "stopping_word", "");
    expect_int_in(json, "tokens_predicted", 5);
    expect_int_in(json, "generation_settings.top_k", 33);
    expect_text_in(json, "generation_settings.seed", "18446744073709551615");
    expect_int_in(json, "timings.predicted_n", 5);
    assert_true(json_is_true(value_in(json, "stop")));
    assert_true(json_is_true(value_in(json, "has_new_line")));
    assert_true(json_real_value(value_in(json, "timings.prompt_ms")) > 0);
    assert_true(json_real_value(value_in(json, "timings.predicted_per_second")) > 0);
    const json_int_t n_prompt = json_integer_value(value_in(json, "tokens_evaluated"));
    assert_int_equal(json_integer_value(value_in(json, "timings.prompt_n")) +
                         json_integer_value(value_in(json, "timings.cache_n")),
                     n_prompt);
    json_decref(json);
    json = post_for(&s, "/completion", "{\"prompt\": \"<|once|>\", \"n_predict\": 2, \"top_k\": 5}", 200);
    expect_text_in(json, "content", "upon a time\n");
    expect_text_in(json, "stop_type", "limit");
    expect_int_in(json, "generation_settings.top_k", 5);
    json_decref(json);
    json = post_for(&s, "/completion", "{\"prompt\": \"<|once|>\", \"stop\": [\"xyz\", \"e w\"]}", 200);
    expect_text_in(json, "content", "upon a time\nther");
    expect_text_in(json, "stop_type", "word");
    expect_text_in(json, "stopping_word", "e w");
    assert_int_equal(json_integer_value(value_in(json, "tokens_cached")), n_prompt - 1);
    json_decref(json);
}

static void a_stream_ends_with_the_whole_object(void **state)
{
    (void)state;
    json_t *events = post_for_events(&s, "/completion", "{\"prompt\": \"<|once|>\", \"stream\": true}");
    const size_t n = json_array_size(events);
    char text[64] = "";
    for (size_t i = 0; i < n; i++) {
        const json_t *data = value_in(json_array_get(events, i), "data");
        assert_int_equal(json_is_true(value_in(data, "stop")), i + 1 == n);
        assert_int_equal(value_in(data, "timings") != NULL, i + 1 == n);
        strcat(text, text_in(data, "content"));
    }
    assert_string_equal(text, "upon a time\nthere was.");
    assert_true(n >= 4);
    json_decref(events);
}

static void probabilities_come_with_ids(void **state)
{
    (void)state;
    json_t *json = post_for(&s, "/completion", "{\"prompt\": \"<|once|>\", \"n_predict\": 3, \"n_probs\": 2}", 200);
    const json_t *list = value_in(json, "completion_probabilities");
    assert_int_equal(json_array_size(list), 3);
    expect_text_in(list, "0.token", "upon ");
    assert_int_equal(json_array_size(value_in(list, "0.top_logprobs")), 2);
    expect_int_in(list, "0.top_logprobs.0.id", json_integer_value(value_in(list, "0.id")));
    char body[256];
    snprintf(body, sizeof body, "{\"prompt\": \"<|once|>\", \"n_predict\": 1, \"logit_bias\": [[%lld, false]]}",
             (long long)json_integer_value(value_in(list, "0.id")));
    json_t *other = post_for(&s, "/completion", body, 200);
    assert_string_not_equal(text_in(other, "content"), "upon ");
    json_decref(other);
    json_decref(json);
    json = post_for(&s, "/completion", "{\"prompt\": \"<|once|>\", \"n_predict\": 3, \"n_probs\": 0}", 200);
    assert_null(value_in(json, "completion_probabilities"));
    json_decref(json);
}

// Checks that the prompt has the ids of these texts: the number of tokens is equal, and all but the last are cached.
static void expect_prompt(const char *path, const char *body, const char *const *texts)
{
    char request[1024];
    json_t *answer = post_for(&s, path, body, 200), *list = json_array();
    for (int i = 0; texts[i]; i++) {
        snprintf(request, sizeof request, "{\"add_special\": %s, \"content\": \"%s\"}", i == 0 ? "true" : "false",
                 texts[i]);
        json_t *tokens = post_for(&s, "/tokenize", request, 200);
        json_array_extend(list, (json_t *)value_in(tokens, "tokens"));
        json_decref(tokens);
    }
    json_t *ids = json_pack("{s:o, s:i}", "prompt", list, "n_predict", 1);
    char *text = json_dumps(ids, 0);
    json_t *same = post_for(&s, "/completion", text, 200);
    const json_int_t n = json_integer_value(value_in(same, "tokens_evaluated"));
    expect_int_in(same, "tokens_cached", n - 1);
    if (value_in(answer, "tokens_evaluated")) expect_int_in(answer, "tokens_evaluated", n);
    if (value_in(answer, "usage")) expect_int_in(answer, "usage.prompt_tokens", n);
    json_decref(same);
    json_decref(ids);
    json_decref(answer);
    free(text);
}

// The probabilities in all events together equal those of the whole answer, which n_probs requests too.
static void tokens_come_with_the_answer(void **state)
{
    (void)state;
    json_t *json = post_for(&s, "/completion",
                            "{\"prompt\": \"ab\", \"n_predict\": 6, \"ignore_eos\": true, \"return_tokens\": true, "
                            "\"n_probs\": 1, \"temperature\": 0}",
                            200);
    const json_t *tokens = value_in(json, "tokens");
    assert_int_equal(json_array_size(tokens), 6);
    for (size_t i = 0; i < 6; i++) {
        char path[64];
        snprintf(path, sizeof path, "completion_probabilities.%zu.id", i);
        expect_int_in(json, path, json_integer_value(json_array_get(tokens, i)));
    }
    json_t *events = post_for_events(&s, "/completion",
                                     "{\"prompt\": \"ab\", \"n_predict\": 6, \"ignore_eos\": true, "
                                     "\"return_tokens\": true, \"temperature\": 0, \"stream\": true}");
    json_t *all = json_array(), *event;
    size_t i;
    json_array_foreach(events, i, event) json_array_extend(all, (json_t *)value_in(event, "data.tokens"));
    assert_true(json_equal(all, tokens));
    json_decref(all);
    json_decref(events);
    json_decref(json);
}

static void an_answer_has_the_members_that_are_asked_for(void **state)
{
    (void)state;
    json_t *json = post_for(&s, "/completion",
                            "{\"prompt\": \"ab\", \"n_predict\": 2, \"ignore_eos\": true, "
                            "\"response_fields\": [\"content\", \"timings/predicted_n\", \"nothing/here\", \"\"]}",
                            200);
    assert_int_equal(json_object_size(json), 2);
    assert_true(json_is_string(value_in(json, "content")));   // tokens of this model may have no text
    expect_int_in(json, "predicted_n", 2);
    json_decref(json);
}

static void gaps_are_filled(void **state)
{
    (void)state;
    json_t *json = post_for(&s, "/infill", "{\"input_prefix\": \"0\", \"input_suffix\": \"1\"}", 200);
    expect_text_in(json, "content", "in the middle");
    json_decref(json);
    json = post_for(&s, "/v1/completions", "{\"prompt\": \"0\", \"suffix\": \"1\"}", 200);
    expect_text_in(json, "choices.0.text", "in the middle");
    json_decref(json);
    static const char *const gap[] = {"<|fim_prefix|>", "0", "<|fim_suffix|>", "1", "<|fim_middle|>", NULL};
    static const char *const files[] = {"<|repo_name|>",
                                        "repository\\n",
                                        "<|file_sep|>",
                                        "a.c\\n",
                                        "3",
                                        "<|file_sep|>",
                                        "file\\n",
                                        "4",
                                        "<|file_sep|>",
                                        "filename\\n",
                                        "<|fim_prefix|>",
                                        "0",
                                        "<|fim_suffix|>",
                                        "1",
                                        "<|fim_middle|>",
                                        "2",
                                        NULL};
    expect_prompt("/infill", "{\"input_prefix\": \"0\", \"input_suffix\": \"1\", \"n_predict\": 1}", gap);
    expect_prompt("/v1/completions", "{\"prompt\": [\"0\"], \"suffix\": \"1\", \"max_tokens\": 1}", gap);
    expect_prompt("/infill",
                  "{\"input_prefix\": \"0\", \"input_suffix\": \"1\", \"prompt\": \"2\", \"n_predict\": 1, "
                  "\"input_extra\": [{\"filename\": \"a.c\", \"text\": \"3\"}, {\"text\": \"4\"}]}",
                  files);
}

static void gaps_that_cannot_be_filled_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *path, *body, *said;
    } rows[] = {
        {"/infill", "{\"prompt\": \"a\"}", "input_prefix and input_suffix: are missing"},
        {"/infill", "{\"input_prefix\": 5}", "input_prefix: expected a string"},
        {"/infill", "{\"input_prefix\": \"a\", \"input_extra\": [5]}", "input_extra[0]: expected an object"},
        {"/infill", "{\"input_prefix\": \"a\", \"prompt\": [1, 2]}", "prompt: expected a string"},
        {"/v1/completions", "{\"prompt\": [1, 2], \"suffix\": \"a\"}", "suffix: the prompt must be one text"},
        {"/v1/completions", "{\"prompt\": \"a\", \"suffix\": \"a\", \"echo\": true}", "without echo"},
        {"/completion", "{\"prompt\": \"a\", \"logit_bias\": [[1]]}", "logit_bias: expected a list of pairs"},
        {"/completion", "{\"prompt\": \"a\", \"n_probs\": 21}", "n_probs: 21 is outside of 0 to 20"},
        {"/completion", "{\"prompt\": \"a\", \"response_fields\": \"content\"}", "response_fields: expected a list"},
        {"/completion", "{\"prompt\": \"a\", \"response_fields\": [5]}", "response_fields: expected a list"},
        {"/completion", "{}", "prompt: is missing"},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        json_t *json = post_for(&s, rows[i].path, rows[i].body, 400);
        if (!strstr(text_in(json, "error.message"), rows[i].said))
            fail_msg("%s: '%s', not '%s'", rows[i].body, text_in(json, "error.message"), rows[i].said);
        json_decref(json);
    }
    json_t *json = post_for(&gapless, "/infill", "{\"input_prefix\": \"a\"}", 400);
    expect_text_in(json, "error.code", "unsupported_model");
    json_decref(json);
}

static json_t *get_for(const char *path)
{
    reply r = get(&s, path);
    assert_int_equal(r.status, 200);
    json_t *json = reply_json(&r);
    reply_free(&r);
    return json;
}

static void the_server_describes_itself(void **state)
{
    (void)state;
    json_t *json = get_for("/props");
    expect_int_in(json, "total_slots", 3);
    expect_text_in(json, "model_alias", "native");
    expect_int_in(json, "default_generation_settings.params.top_k", 33);
    assert_null(value_in(json, "default_generation_settings.params.seed"));   // the server's own seed is not shown
    assert_true(json_integer_value(value_in(json, "default_generation_settings.n_ctx")) > 0);
    assert_non_null(strstr(text_in(json, "chat_template"), "m.content"));
    json_decref(json);
    json = get_for("/slots");
    assert_int_equal(json_array_size(json), 3);
    expect_int_in(json, "2.id", 2);
    assert_true(json_is_false(value_in(json, "2.is_processing")));
    json_decref(json);
    static const char *const paths[] = {"/livez", "/readyz"};
    for (int i = 0; i < 2; i++) {
        json = get_for(paths[i]);
        expect_text_in(json, "status", "ok");
        json_decref(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_completion_has_llama_cpps_shape),
        cmocka_unit_test(a_stream_ends_with_the_whole_object),
        cmocka_unit_test(probabilities_come_with_ids),
        cmocka_unit_test(tokens_come_with_the_answer),
        cmocka_unit_test(an_answer_has_the_members_that_are_asked_for),
        cmocka_unit_test(gaps_are_filled),
        cmocka_unit_test(gaps_that_cannot_be_filled_are_refused),
        cmocka_unit_test(the_server_describes_itself),
    };
    return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
