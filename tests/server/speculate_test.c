// SPDX-License-Identifier: MIT
// Speculation in the server: answers equal those without it, alone and side by side, and usage counts drafts.
#include "support/served_posix.h"
#include "support/tiny_model.h"

#define CHAT "/v1/chat/completions"
#define TEXT "/v1/completions"

enum { SERVERS = 4, PROMPTS = 6, TEXT_BYTES = 4096 };

static const char chat_template[] = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
                                    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
static const char *const samplings[] = {"\"temperature\": 0", "\"temperature\": 0.7, \"top_k\": 9, \"seed\": 3",
                                        "\"temperature\": 0, \"regex\": \"(abcd|cab|bb){20,60}\""};

// Without speculation, with n-grams, with a draft model, with the model's layer for multi-token prediction.
static served servers[SERVERS];

static int start_servers(void **state)
{
    (void)state;
    char options[2048], model[1024];
    const tiny_options tiny = {.n_ctx = 512, .chat_template = chat_template, .next = TINY_NEXT};
    snprintf(model, sizeof model, "%s", tiny_model("tiny.gguf", &tiny));
    servers[0] = serve(model, "--parallel 3 --threads 1 --deterministic --speculate none");
    servers[1] = serve(model, "--parallel 3 --threads 1 --deterministic");
    snprintf(options, sizeof options,
             "--parallel 3 --threads 1 --deterministic --speculate draft --model-draft %s --draft-max 4", model);
    servers[2] = serve(model, options);
    servers[3] = serve(model, "--parallel 3 --threads 1 --deterministic --speculate mtp --draft-max 4");
    return 0;
}

static int stop_servers(void **state)
{
    (void)state;
    int code = 0;
    for (int i = 0; i < SERVERS; i++) code |= stop_serving(&servers[i], SIGTERM);
    return code;
}

static void write_body(char *body, size_t size, int prompt, int sampling, const char *fields)
{
    snprintf(body, size,
             "{\"prompt\": \"ab ab abc abc %d abc ab ab\", \"max_tokens\": 120, \"logit_bias\": {\"2\": -100}, %s%s}",
             prompt, samplings[sampling], fields);
}

static json_t *ask(const served *s, const char *path, const char *body)
{
    reply r = post(s, path, body);
    if (r.status != 200) fail_msg("%s: %d %s", body, r.status, r.body);
    json_t *json = reply_json(&r);
    reply_free(&r);
    return json;
}

static const char *text_of(const json_t *answer)
{
    const json_t *choice = json_array_get(json_object_get(answer, "choices"), 0);
    const json_t *message = json_object_get(choice, "message");
    const char *text = json_string_value(json_object_get(message ? message : choice, message ? "content" : "text"));
    assert_non_null(text);
    return text;
}

static json_int_t detail(const json_t *answer, const char *name)
{
    const json_t *details = json_object_get(json_object_get(answer, "usage"), "completion_tokens_details");
    assert_true(json_is_integer(json_object_get(details, name)));
    return json_integer_value(json_object_get(details, name));
}

// Several clients at once: their sessions draft in shared steps.
static void ask_side_by_side(const served *s, int sampling, char texts[PROMPTS][TEXT_BYTES], json_int_t *n_guessed)
{
    int sockets[PROMPTS];
    for (int i = 0; i < PROMPTS; i++) {
        char body[512];
        write_body(body, sizeof body, i, sampling, "");
        char *text = post_text(TEXT, "", body);
        sockets[i] = connect_to(s);
        send_text(sockets[i], text);
        free(text);
    }
    for (int i = 0; i < PROMPTS; i++) {
        reply r = read_reply(sockets[i]);
        if (r.status != 200) fail_msg("%d %s", r.status, r.body);
        json_t *json = reply_json(&r);
        snprintf(texts[i], TEXT_BYTES, "%s", text_of(json));
        *n_guessed += detail(json, "accepted_prediction_tokens") + detail(json, "rejected_prediction_tokens");
        json_decref(json);
        reply_free(&r);
    }
}

static void answers_are_those_without_speculation(void **state)
{
    (void)state;
    static char expected[PROMPTS][TEXT_BYTES], texts[PROMPTS][TEXT_BYTES];
    for (int sampling = 0; sampling < (int)(sizeof samplings / sizeof samplings[0]); sampling++) {
        json_int_t n_guessed = 0;
        ask_side_by_side(&servers[0], sampling, expected, &n_guessed);
        assert_int_equal(n_guessed, 0);
        for (int k = 1; k < SERVERS; k++)
            for (int round = 0; round < 2; round++) {
                ask_side_by_side(&servers[k], sampling, texts, &n_guessed);
                for (int i = 0; i < PROMPTS; i++) assert_string_equal(texts[i], expected[i]);
            }
    }
}

// Times of steps decide if drafts run, so some requests may have none.
static void a_prediction_is_accepted_where_it_is_right(void **state)
{
    (void)state;
    char body[8192], fields[4096];
    json_int_t n_accepted = 0;
    write_body(body, sizeof body, 0, 1, "");
    json_t *plain = ask(&servers[0], TEXT, body);
    for (int round = 0; round < 40 && n_accepted == 0; round++) {
        json_t *prediction = json_string(text_of(plain));
        char *quoted = json_dumps(prediction, JSON_ENCODE_ANY);
        snprintf(fields, sizeof fields, ", \"prediction\": {\"type\": \"content\", \"content\": %s}", quoted);
        write_body(body, sizeof body, 0, 1, fields);
        json_t *json = ask(&servers[1], TEXT, body);
        assert_string_equal(text_of(json), text_of(plain));
        n_accepted = detail(json, "accepted_prediction_tokens");
        assert_true(n_accepted <
                    json_integer_value(json_object_get(json_object_get(json, "usage"), "completion_tokens")));
        json_decref(json);
        json_decref(prediction);
        free(quoted);
    }
    assert_true(n_accepted > 0);
    json_decref(plain);
}

// The layer of this model always predicts the right token.
static void layers_for_multi_token_prediction_guess(void **state)
{
    (void)state;
    const tiny_options chain = {.n_ctx = 512, .chain = true, .next = TINY_NEXT_TIED};
    served s = serve(tiny_model("chain.gguf", &chain), "--parallel 2 --threads 1 --speculate mtp --draft-always");
    json_t *json = ask(&s, TEXT, "{\"prompt\": \"abc\", \"max_tokens\": 200, \"temperature\": 0}");
    assert_true(detail(json, "accepted_prediction_tokens") > 0);
    assert_int_equal(detail(json, "rejected_prediction_tokens"), 0);
    json_decref(json);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// Log-probabilities need the logits of all tokens, so no token counts as forced.
static void forced_tokens_are_the_same(void **state)
{
    (void)state;
    char body[512];
    for (int i = 0; i < 4; i++) {
        const char *fields[] = {"", ", \"logprobs\": 1"};
        json_t *json[2];
        for (int k = 0; k < 2; k++) {
            snprintf(body, sizeof body,
                     "{\"prompt\": \"ab\", \"max_tokens\": %d, \"seed\": %d, \"regex\": \"(abcdefgh|ijkl[mno]){9}\"%s}",
                     i == 0 ? 30 : 200, i, fields[k]);
            json[k] = ask(&servers[1], TEXT, body);
        }
        assert_string_equal(text_of(json[0]), text_of(json[1]));
        json_t *usage[] = {json_object_get(json[0], "usage"), json_object_get(json[1], "usage")};
        assert_int_equal(json_integer_value(json_object_get(usage[0], "completion_tokens")),
                         json_integer_value(json_object_get(usage[1], "completion_tokens")));
        for (int k = 0; k < 2; k++) json_decref(json[k]);
    }
}

static void predictions_have_a_form(void **state)
{
    (void)state;
    static const struct {
        const char *prediction;
        int status;
    } rows[] = {
        {"{\"type\": \"content\", \"content\": \"abc\"}", 200},
        {"{\"type\": \"content\", \"content\": [{\"type\": \"text\", \"text\": \"ab\"}, {\"type\": \"text\", \"text\": "
         "\"c\"}]}",
         200},
        {"{\"type\": \"content\", \"content\": []}", 200},
        {"{\"type\": \"content\", \"content\": \"\"}", 200},
        {"null", 200},
        {"\"abc\"", 400},
        {"{\"type\": \"text\", \"content\": \"abc\"}", 400},
        {"{\"type\": \"content\"}", 400},
        {"{\"type\": \"content\", \"content\": 3}", 400},
        {"{\"type\": \"content\", \"content\": [{\"type\": \"image\", \"text\": \"ab\"}]}", 400},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char body[512];
        snprintf(
            body, sizeof body,
            "{\"messages\": [{\"role\": \"user\", \"content\": \"hello\"}], \"max_tokens\": 4, \"prediction\": %s}",
            rows[i].prediction);
        reply r = post(&servers[1], CHAT, body);
        if (r.status != rows[i].status) fail_msg("%s: %d %s", body, r.status, r.body);
        if (r.status == 400) assert_non_null(strstr(r.body, "\"param\":\"prediction\""));
        reply_free(&r);
    }
}

static void a_draft_model_must_be_named(void **state)
{
    (void)state;
    char said[2048], arguments[2048];
    snprintf(arguments, sizeof arguments, "%s --port 0 --speculate draft", tiny_model("b.gguf", &(tiny_options){0}));
    assert_int_equal(serve_and_fail(arguments, said, sizeof said), 2);
    assert_non_null(strstr(said, "--speculate draft: needs --model-draft FILE"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_those_without_speculation),
        cmocka_unit_test(a_prediction_is_accepted_where_it_is_right),
        cmocka_unit_test(layers_for_multi_token_prediction_guess),
        cmocka_unit_test(forced_tokens_are_the_same),
        cmocka_unit_test(predictions_have_a_form),
        cmocka_unit_test(a_draft_model_must_be_named),
    };
    return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
