// SPDX-License-Identifier: MIT
// Fields of vLLM's and llama.cpp's requests, and rare fields of OpenAI's: ends of answers, choices, biases by text, the
// best of several answers, timings, padding.
#include "support/events_posix.h"
#include "support/tiny_model.h"

#include <stdlib.h>
#include <string.h>

#define TEXT "/v1/completions"

static served s;

static int start_server(void **state)
{
    (void)state;
    const tiny_options options = {.n_ctx = 4096, .chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"};
    s = serve(tiny_model("wishes.gguf", &options), "--parallel 4 --threads 1 --temp 0");
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    return stop_serving(&s, SIGTERM);
}

static json_t *ask(const char *fields)
{
    char body[2048];
    snprintf(body, sizeof body, "{\"prompt\": \"ab\", %s}", fields);
    return post_for(&s, TEXT, body, 200);
}

// Token 2 ends answers and is by far the likeliest with this bias.
#define ENDS "\"logit_bias\": {\"2\": 100}"

static void an_end_can_be_ignored_or_put_off(void **state)
{
    (void)state;
    static const struct {
        const char *fields;
        int n_tokens;
        const char *finish;
    } rows[] = {
        {ENDS ", \"max_tokens\": 10", 1, "stop"},
        {ENDS ", \"max_tokens\": 10, \"ignore_eos\": true", 10, "length"},
        {ENDS ", \"max_tokens\": 10, \"ignore_eos\": true, \"min_tokens\": 3", 10, "length"},
        {ENDS ", \"max_tokens\": 10, \"min_tokens\": 1", 2, "stop"},
        {ENDS ", \"max_tokens\": 10, \"min_tokens\": 5", 6, "stop"},
        {ENDS ", \"max_tokens\": 10, \"min_tokens\": 5, \"temperature\": 1, \"logprobs\": 2", 6, "stop"},
        {ENDS ", \"max_tokens\": 10, \"min_tokens\": 50", 10, "length"},
        {"\"logit_bias\": [[2, 100]], \"max_tokens\": 10, \"min_tokens\": 5, \"n\": 3", 18, "stop"},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        json_t *json = ask(rows[i].fields);
        expect_text_in(json, "choices.0.finish_reason", rows[i].finish);
        expect_int_in(json, "usage.completion_tokens", rows[i].n_tokens);
        json_decref(json);
    }
}

static void an_answer_is_one_of_the_choices(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "\"guided_choice\": [\"cab\", \"bac\"]",
        "\"structured_outputs\": {\"choice\": [\"cab\", \"bac\"], \"regex\": null}",
        "\"structured_outputs\": {\"regex\": \"cab|bac\"}",
        "\"structured_outputs\": {\"grammar\": \"root ::= \\\"cab\\\" | \\\"bac\\\"\"}",
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        json_t *json = ask(rows[i]);
        const char *text = text_in(json, "choices.0.text");
        if (strcmp(text, "cab") != 0 && strcmp(text, "bac") != 0) fail_msg("%s: %s", rows[i], text);
        json_decref(json);
    }
    static const struct {
        const char *fields, *text;
    } tagged[] = {
        {"\"structured_outputs\": {\"json\": {\"enum\": [true]}}", "true"},
        {"\"structured_outputs\": {\"structural_tag\": {\"type\": \"tag\", \"begin\": \"ca\", \"content\": {\"type\": "
         "\"const_string\", \"value\": \"b\"}, \"end\": \"\"}}",
         "cab"},
        {"\"structured_outputs\": {\"structural_tag\": \"{\\\"type\\\": \\\"const_string\\\", \\\"value\\\": "
         "\\\"cab\\\"}\"}",
         "cab"},
        {"\"response_format\": {\"type\": \"structural_tag\", \"format\": {\"type\": \"triggered_tags\", \"triggers\": "
         "[\"c\"], \"tags\": [{\"begin\": \"ca\", \"content\": {\"type\": \"regex\", \"pattern\": \"b\"}, \"end\": "
         "\"a\"}], \"at_least_one\": true, \"stop_after_first\": true}}",
         "caba"},
    };
    for (size_t i = 0; i < FRIT_COUNT(tagged); i++) {
        json_t *json = ask(tagged[i].fields);
        expect_text_in(json, "choices.0.text", tagged[i].text);
        json_decref(json);
    }
    static const char *const wrong[] = {
        "\"guided_choice\": []",
        "\"guided_choice\": \"a\"",
        "\"guided_choice\": [\"\"]",
        "\"guided_choice\": [5]",
        "\"guided_choice\": [\"a\"], \"regex\": \"a\"",
        "\"structured_outputs\": 5",
        "\"structured_outputs\": {\"choice\": [\"a\"], \"regex\": \"b\"}",
        "\"structured_outputs\": {\"structural_tag\": 5}",
        "\"structured_outputs\": {\"a\": \"b\"}",
        "\"structured_outputs\": {\"json\": 5}",
    };
    for (size_t i = 0; i < FRIT_COUNT(wrong); i++) {
        char body[512];
        snprintf(body, sizeof body, "{\"prompt\": \"ab\", %s}", wrong[i]);
        json_decref(post_for(&s, TEXT, body, 400));
    }
}

// An option sets a default; a field of the request has precedence.
static void a_server_may_say_what_answers_are(void **state)
{
    (void)state;
    const tiny_options options = {.n_ctx = 256, .chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"};
    const char *path = tiny_model("format.gguf", &options);
    served held = serve(path, "--parallel 2 --threads 1 --temp 0 --regex 'cab|bac'");
    json_t *json = post_for(&held, TEXT, "{\"prompt\": \"ab\", \"n\": 2}", 200);
    for (int i = 0; i < 2; i++) {
        const char *text = text_in(json, i == 0 ? "choices.0.text" : "choices.1.text");
        if (strcmp(text, "cab") != 0 && strcmp(text, "bac") != 0) fail_msg("%s", text);
    }
    json_decref(json);
    json = post_for(&held, "/v1/chat/completions", "{\"messages\": [{\"role\": \"user\", \"content\": \"ab\"}]}", 200);
    const char *text = text_in(json, "choices.0.message.content");
    if (strcmp(text, "cab") != 0 && strcmp(text, "bac") != 0) fail_msg("%s", text);
    json_decref(json);
    json = post_for(&held, TEXT, "{\"prompt\": \"ab\", \"regex\": \"daa\"}", 200);
    expect_text_in(json, "choices.0.text", "daa");
    json_decref(json);
    json = post_for(&held, TEXT, "{\"prompt\": \"ab\", \"heal\": true}", 400);
    assert_non_null(strstr(text_in(json, "error.message"), "--regex: is not supported together with heal"));
    json_decref(json);
    assert_int_equal(stop_serving(&held, SIGTERM), 0);
    static const char *const wrong[][2] = {{"--regex '(a'", "closing )"},
                                           {"--json-schema /nowhere/schema.json", "there is no file"},
                                           {"--regex a --grammar 'root ::= [a]'", "give one of them"}};
    for (size_t i = 0; i < FRIT_COUNT(wrong); i++) {
        char arguments[1200], said[1024];
        snprintf(arguments, sizeof arguments, "%s --port 0 %s", path, wrong[i][0]);
        assert_int_equal(serve_and_fail(arguments, said, sizeof said), 2);
        if (!strstr(said, wrong[i][1])) fail_msg("%s: %s", wrong[i][0], said);
    }
}

static void biases_may_be_of_texts_and_false(void **state)
{
    (void)state;
    json_t *free_text = ask("\"max_tokens\": 40, \"ignore_eos\": true");
    char said[256];
    snprintf(said, sizeof said, "%s", text_in(free_text, "choices.0.text"));
    json_decref(free_text);
    // One of its letters is banned: alone, then with others. (Tokens of several letters begin with x.)
    const char letter = said[strcspn(said, "abcdefghijklmnopqrstuvw")];
    assert_true(letter != 0);
    char fields[256];
    for (int i = 0; i < 2; i++) {
        snprintf(fields, sizeof fields,
                 "\"max_tokens\": 40, \"ignore_eos\": true, \"logit_bias\": [[\"%s%c\", false], [5, 0.5]]",
                 i == 0 ? "" : "zy", letter);
        json_t *json = ask(fields);
        if (strchr(text_in(json, "choices.0.text"), letter)) fail_msg("%s", text_in(json, "choices.0.text"));
        json_decref(json);
    }
    json_t *json = ask("\"max_tokens\": 5, \"logit_bias\": {\"2\": false}");
    expect_int_in(json, "usage.completion_tokens", 5);
    json_decref(json);
    static const char *const wrong[] = {"[[5]]",       "[5]",           "[[\"a\", \"b\"]]",
                                        "[[null, 1]]", "{\"5\": true}", "[[\"a\", 101]]",
                                        "[[-1, 1]]",   "{\"a\": 1}"};
    for (size_t i = 0; i < FRIT_COUNT(wrong); i++) {
        snprintf(fields, sizeof fields, "{\"prompt\": \"ab\", \"logit_bias\": %s}", wrong[i]);
        json = post_for(&s, TEXT, fields, 400);
        expect_text_in(json, "error.param", "logit_bias");
        json_decref(json);
    }
}

static double mean_of(const json_t *list)
{
    double sum = 0;
    for (size_t i = 0; i < json_array_size(list); i++) sum += json_number_value(json_array_get(list, i));
    return sum / (double)json_array_size(list);
}

static void the_best_of_several_answers_are_given(void **state)
{
    (void)state;
    enum { N = 5 };
#define DRAW "\"seed\": 7, \"temperature\": 1.5, \"top_k\": 0, \"top_p\": 1, \"min_p\": 0, \"max_tokens\": 6, "
    json_t *all = ask(DRAW "\"n\": 5, \"logprobs\": 0");
    size_t order[N] = {0};
    for (size_t k = 0; k < N; k++) {   // insertion sort, the likeliest first
        char path[64];
        double means[N];
        for (size_t i = 0; i <= k; i++) {
            snprintf(path, sizeof path, "choices.%zu.logprobs.token_logprobs", i);
            means[i] = mean_of(value_in(all, path));
        }
        size_t at = k;
        while (at > 0 && means[k] > means[order[at - 1]]) order[at] = order[at - 1], at--;
        order[at] = k;
    }
    json_t *best = ask(DRAW "\"n\": 2, \"best_of\": 5");
    assert_int_equal(json_array_size(value_in(best, "choices")), 2);
    for (size_t k = 0; k < 2; k++) {
        char path[64], text[64];
        snprintf(path, sizeof path, "choices.%zu.text", order[k]);
        snprintf(text, sizeof text, "choices.%zu.text", k);
        expect_text_in(best, text, text_in(all, path));
        snprintf(path, sizeof path, "choices.%zu.index", k);
        expect_int_in(best, path, (json_int_t)k);
    }
    assert_true(json_is_null(value_in(best, "choices.0.logprobs")));
    expect_int_in(best, "usage.completion_tokens", json_integer_value(value_in(all, "usage.completion_tokens")));
    json_decref(best);
    json_decref(all);
    json_decref(post_for(&s, TEXT, "{\"prompt\": \"a\", \"n\": 3, \"best_of\": 2}", 400));
    json_decref(post_for(&s, TEXT, "{\"prompt\": \"a\", \"best_of\": 2, \"stream\": true}", 400));
    json_decref(post_for(&s, TEXT, "{\"prompt\": \"a\", \"best_of\": 0}", 400));
}

// Each prompt's answers equal those that it gets alone, in order; usage counts all.
static void several_prompts_have_answers_each(void **state)
{
    (void)state;
    static const char *const prompts[] = {"\"ab\"", "\"xyz\"", "[5, 6, 7]"};
    json_t *all = post_for(&s, TEXT,
                           "{\"prompt\": [\"ab\", \"xyz\", [5, 6, 7]], \"max_tokens\": 5, \"ignore_eos\": true, "
                           "\"echo\": true, \"n\": 2, \"seed\": 3, \"temperature\": 1}",
                           200);
    json_int_t n_prompt = 0;
    assert_int_equal(json_array_size(value_in(all, "choices")), 6);
    for (size_t i = 0; i < FRIT_COUNT(prompts); i++) {
        char body[256], path[64];
        snprintf(body, sizeof body,
                 "{\"prompt\": %s, \"max_tokens\": 5, \"ignore_eos\": true, \"echo\": true, \"n\": 2, "
                 "\"seed\": 3, \"temperature\": 1}",
                 prompts[i]);
        json_t *alone = post_for(&s, TEXT, body, 200);
        n_prompt += json_integer_value(value_in(alone, "usage.prompt_tokens"));
        for (size_t k = 0; k < 2; k++) {
            snprintf(path, sizeof path, "choices.%zu.text", k);
            const char *want = text_in(alone, path);
            snprintf(path, sizeof path, "choices.%zu.text", 2 * i + k);
            expect_text_in(all, path, want);
            snprintf(path, sizeof path, "choices.%zu.index", 2 * i + k);
            expect_int_in(all, path, (json_int_t)(2 * i + k));
        }
        json_decref(alone);
    }
    expect_int_in(all, "usage.prompt_tokens", n_prompt);
    expect_int_in(all, "usage.completion_tokens", 30);
    json_decref(all);
    static const char *const wrong[] = {
        "\"prompt\": [\"a\", 5]",
        "\"prompt\": [\"a\", [\"b\"]]",
        "\"prompt\": [\"a\", null]",
        "\"prompt\": [\"a\", [5, -1]]",
        "\"prompt\": [\"a\", \"b\"], \"n\": 65",
        "\"prompt\": [\"a\", \"b\"], \"best_of\": 2",
        "\"prompt\": [\"a\", \"b\"], \"suffix\": \"c\"",
    };
    for (size_t i = 0; i < FRIT_COUNT(wrong); i++) {
        char body[256];
        snprintf(body, sizeof body, "{\"max_tokens\": 1, %s}", wrong[i]);
        json_decref(post_for(&s, TEXT, body, 400));
    }
    json_decref(post_for(&s, "/completion", "{\"prompt\": [\"a\", \"b\"], \"n_predict\": 1}", 400));
}

static void events_may_have_timings_and_padding(void **state)
{
    (void)state;
    reply r = post(&s, "/completion",
                   "{\"prompt\": \"ab\", \"n_predict\": 3, \"ignore_eos\": true, \"stream\": true, "
                   "\"timings_per_token\": true}");
    json_t *events = read_events(&r);
    for (size_t i = 0; i < 3; i++) {
        char path[64];
        snprintf(path, sizeof path, "%zu.data.timings.predicted_n", i);
        expect_int_in(events, path, (json_int_t)i + 1);
    }
    json_decref(events);
    reply_free(&r);
    r = post(&s, "/v1/chat/completions",
             "{\"messages\": [{\"role\": \"user\", \"content\": \"ab\"}], \"max_tokens\": 9, \"ignore_eos\": true, "
             "\"stream\": true, \"stream_options\": {\"include_obfuscation\": true}}");
    assert_int_equal(r.status, 200);
    size_t n = 0;
    for (const char *at = strstr(r.body, "data: {"); at; at = strstr(at + 1, "data: {"), n++)
        assert_int_equal((size_t)(strchr(at, '\n') - at - 6) % 128, 0);
    assert_true(n >= 10);
    reply_free(&r);
    json_decref(post_for(&s, TEXT, "{\"prompt\": \"a\", \"stream_options\": {\"include_obfuscation\": 1}}", 400));
}

// A line, and then letters until the time limit.
static void an_answer_may_have_a_time(void **state)
{
    (void)state;
    served fable = serve(FRIT_SOURCE_DIR "/models/fable.gguf", "--parallel 1 --threads 1");
    json_t *json = post_for(&fable, "/completion",
                            "{\"prompt\": \"Once\", \"grammar\": \"root ::= \\\"a\\\\n\\\" [a-z]+\", "
                            "\"ignore_eos\": true, \"t_max_predict_ms\": 5}",
                            200);
    expect_text_in(json, "stop_type", "limit");
    assert_in_range(json_integer_value(value_in(json, "tokens_predicted")), 2, 900);
    json_decref(json);
    // The tiny model has no punctuation; these choices need escapes in a grammar.
    json = post_for(&fable, TEXT, "{\"prompt\": \"Once\", \"guided_choice\": [\"a\\\"b\\\\\\n[\"]}", 200);
    expect_text_in(json, "choices.0.text", "a\"b\\\n[");
    json_decref(json);
    assert_int_equal(stop_serving(&fable, SIGTERM), 0);
}

// The numbers equal those of an echo; a token's rank is its position among the likeliest.
static void prompts_have_log_probabilities_aside(void **state)
{
    (void)state;
    enum { PROMPT = 6, TOP = 3 };
    static const int ids[PROMPT] = {1, 15, 26, 17, 9, 9};
    char body[512];
    snprintf(body, sizeof body,
             "{\"prompt\": [1, 15, 26, 17, 9, 9], \"max_tokens\": 2, \"n\": 2, \"ignore_eos\": true, "
             "\"echo\": true, \"logprobs\": 1, \"prompt_logprobs\": 3}");
    json_t *json = post_for(&s, TEXT, body, 200);
    for (size_t k = 0; k < 2; k++) {
        const json_t *choice = json_array_get(json_object_get(json, "choices"), k);
        const json_t *list = json_object_get(choice, "prompt_logprobs");
        assert_int_equal(json_array_size(list), PROMPT);
        assert_true(json_is_null(json_array_get(list, 0)));
        for (size_t i = 1; i < PROMPT; i++) {
            char id[16];
            snprintf(id, sizeof id, "%d", ids[i]);
            const json_t *row = json_array_get(list, i), *own = json_object_get(row, id);
            const json_t *echoed = json_array_get(value_in(choice, "logprobs.token_logprobs"), i);
            const json_int_t rank = json_integer_value(json_object_get(own, "rank"));
            assert_true(json_equal(json_object_get(own, "logprob"), echoed));
            assert_true(json_is_string(json_object_get(own, "decoded_token")));
            assert_int_equal(json_object_size(row), rank <= TOP ? TOP : TOP + 1);
            assert_int_equal(json_object_size(json_array_get(value_in(choice, "logprobs.top_logprobs"), i)), 1);
            const char *other;
            json_t *found;
            json_object_foreach((json_t *)row, other, found)
            {
                const double difference =
                    json_number_value(json_object_get(found, "logprob")) - json_number_value(echoed);
                const json_int_t place = json_integer_value(json_object_get(found, "rank"));
                assert_true(place == rank ? difference == 0 : place < rank ? difference >= 0 : difference <= 0);
            }
        }
    }
    json_decref(json);
    json = post_for(
        &s, "/v1/chat/completions",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"abc\"}], \"max_tokens\": 1, \"prompt_logprobs\": 0}", 200);
    expect_int_in(json, "usage.prompt_tokens", (json_int_t)json_array_size(json_object_get(json, "prompt_logprobs")));
    assert_int_equal(json_object_size(value_in(json, "prompt_logprobs.1")), 1);
    json_decref(json);
    static const char *const bad[] = {"\"prompt_logprobs\": 21", "\"prompt_logprobs\": -1",
                                      "\"prompt_logprobs\": \"3\"", "\"prompt_logprobs\": 1, \"stream\": true",
                                      "\"prompt_logprobs\": 1, \"heal\": true"};
    for (size_t i = 0; i < FRIT_COUNT(bad); i++) {
        snprintf(body, sizeof body, "{\"prompt\": \"ab\", %s}", bad[i]);
        json = post_for(&s, TEXT, body, 400);
        expect_text_in(json, "error.param", "prompt_logprobs");
        json_decref(json);
    }
}

// 128 answers with 2048 tokens and their 20 likeliest others would take gigabytes.
static void log_probabilities_of_prompts_are_limited(void **state)
{
    (void)state;
    char prompt[2 * 2048 + 1] = "9", body[sizeof prompt + 256];
    for (size_t n = 1; n + 2 < sizeof prompt; n += 2) memcpy(prompt + n, ",9", 3);
    static const struct {
        const char *fields, *param;
    } bad[] = {{"\"prompt_logprobs\": 20, \"n\": 128", "prompt_logprobs"},
               {"\"echo\": true, \"logprobs\": 20, \"n\": 128", "logprobs"},
               {"\"echo\": true, \"logprobs\": 2, \"prompt_logprobs\": 20, \"best_of\": 128", "prompt_logprobs"}};
    for (size_t i = 0; i < FRIT_COUNT(bad); i++) {
        snprintf(body, sizeof body, "{\"prompt\": [%s], \"max_tokens\": 1, %s}", prompt, bad[i].fields);
        json_t *json = post_for(&s, TEXT, body, 400);
        expect_text_in(json, "error.code", "invalid_value");
        expect_text_in(json, "error.param", bad[i].param);
        json_decref(json);
    }
    snprintf(body, sizeof body, "{\"prompt\": [%s], \"max_tokens\": 1, \"prompt_logprobs\": 1}", prompt);
    json_decref(post_for(&s, TEXT, body, 200));
}

static void moderation_is_refused_and_says_what_to_do(void **state)
{
    (void)state;
    json_t *json = post_for(&s, "/v1/moderations", "{\"input\": \"a\"}", 400);
    expect_text_in(json, "error.code", "unsupported_endpoint");
    assert_non_null(strstr(text_in(json, "error.message"), "/v1/chat/completions"));
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_end_can_be_ignored_or_put_off),
        cmocka_unit_test(an_answer_is_one_of_the_choices),
        cmocka_unit_test(a_server_may_say_what_answers_are),
        cmocka_unit_test(biases_may_be_of_texts_and_false),
        cmocka_unit_test(the_best_of_several_answers_are_given),
        cmocka_unit_test(several_prompts_have_answers_each),
        cmocka_unit_test(events_may_have_timings_and_padding),
        cmocka_unit_test(an_answer_may_have_a_time),
        cmocka_unit_test(prompts_have_log_probabilities_aside),
        cmocka_unit_test(log_probabilities_of_prompts_are_limited),
        cmocka_unit_test(moderation_is_refused_and_says_what_to_do),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
