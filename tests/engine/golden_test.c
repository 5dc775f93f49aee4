// SPDX-License-Identifier: MIT
// Whole models against greedy texts of transformers: exactly by the reference kernels, up to near-ties by the best.
#include "support/support.h"

#include <jansson.h>

// On the default path quantized activations and f16 caches move logits a little: where two candidates are nearer than
// this, either may win.
static const float near_tie = 0.2f;

typedef struct loaded {
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    frit_model_info info;
} loaded;

static loaded load(const char *file, const char *cpu)
{
    loaded l = {0};
    assert_ok(frit_model_open(&l.model, shared_path("models/%s.gguf", file), NULL));
    assert_ok(frit_engine_new(&l.engine, l.model, &(frit_engine_options){.cpu = cpu, .n_ctx = 512}));
    assert_ok(frit_session_new(&l.session, l.engine));
    frit_model_get_info(l.model, &l.info);
    return l;
}

static void unload(loaded *l)
{
    frit_session_free(l->session);
    frit_engine_free(l->engine);
    frit_model_free(l->model);
}

static json_t *read_reference(void)
{
    json_error_t error;
    json_t *reference = json_load_file(shared_path("models/reference.json"), 0, &error);
    if (!reference) fail_msg("reference.json: %s", error.text);
    return reference;
}

enum { MAX_TOKENS = 512 };

// A reference's key is its prompt; "chat" is one question through the chat template.
static size_t tokenize_prompt(const frit_model *model, const char *key, frit_token *tokens)
{
    char text[512];
    size_t n_bytes, n_tokens;
    unsigned flags = FRIT_TEXT_SPECIAL;
    if (strcmp(key, "chat") == 0) {
        const frit_message question = {"user", "Tell me the tale of Rapunzel."};
        assert_ok(frit_chat_render(model, &question, 1, NULL, text, sizeof text, &n_bytes));
        flags |= FRIT_TEXT_PARSE_SPECIAL;   // and the template's BOS stays the only one
    } else {
        n_bytes = strlen(key);
        memcpy(text, key, n_bytes);
    }
    assert_ok(frit_tokenize(model, text, n_bytes, flags, tokens, MAX_TOKENS, &n_tokens));
    return n_tokens;
}

typedef struct comparison {
    const frit_token *ids;   // what follows row i is ids[i + 1]
    size_t n, first;         // rows from `first` on predict
    float limit;
    size_t n_ties;
} comparison;

static void compare_row(void *ctx, size_t i, const float *logits, size_t n)
{
    comparison *c = ctx;
    if (i < c->first || i + 1 >= c->n) return;
    frit_token best = 0, expected = c->ids[i + 1];
    for (size_t t = 1; t < n; t++)
        if (logits[t] > logits[best]) best = (frit_token)t;
    if (best == expected) return;
    float gap = logits[best] - logits[expected];
    c->n_ties++;
    print_message("position %zu: token %d instead of %d, their logits are %.3f apart\n", i + 1, best, expected,
                  (double)gap);
    if (!(gap < c->limit)) fail_msg("position %zu: that is more than %g", i + 1, (double)c->limit);
}

// Feeds prompt and answer at once: every row must predict the next token. That is greedy decoding, in one pass.
static void check_predictions(loaded *l, const json_t *greedy, const char *only, float limit)
{
    const char *key;
    json_t *text;
    json_object_foreach((json_t *)greedy, key, text)
    {
        if (only && strcmp(key, only) != 0) continue;
        frit_token ids[MAX_TOKENS], prompt[MAX_TOKENS];
        const json_t *list = json_object_get(text, "ids");
        size_t n = json_array_size(list), n_prompt = tokenize_prompt(l->model, key, prompt);
        assert_in_range(n, n_prompt + 10, MAX_TOKENS);
        for (size_t i = 0; i < n; i++) ids[i] = (frit_token)json_integer_value(json_array_get(list, i));
        assert_memory_equal(ids, prompt, n_prompt * sizeof *ids);
        comparison c = {ids, n, n_prompt - 1, limit, 0};
        assert_ok(frit_session_truncate(l->session, 0));
        assert_ok(frit_session_push(l->session, ids, n, &(frit_push_options){FRIT_OUTPUT_ALL, compare_row, &c}));
        int32_t n_rows;
        do assert_ok(frit_engine_step(l->engine, &n_rows));
        while (n_rows > 0);
        if (c.n_ties) print_message("'%s': %zu near-ties in %zu tokens\n", key, c.n_ties, n - n_prompt);
    }
}

static void check_model(const char *file, const char *key, const char *cpu, float limit)
{
    json_t *reference = read_reference();
    const json_t *greedy = json_object_get(json_object_get(reference, key), "greedy");
    assert_non_null(greedy);
    loaded l = load(file, cpu);
    check_predictions(&l, greedy, NULL, limit);
    unload(&l);
    json_decref(reference);
}

static void the_reference_path_reproduces_fable_6m(void **state)
{
    (void)state;
    check_model("fable-6m-bf16", "fable-6m", "reference", 0);
}

static void the_reference_path_reproduces_fable_30m(void **state)
{
    (void)state;
    check_model("fable-30m-q4_k_m", "fable-30m-q4_k_m", "reference", 0);
}

static void the_default_path_follows_fable_6m(void **state)
{
    (void)state;
    check_model("fable-6m-bf16", "fable-6m", NULL, near_tie);
}

static void the_default_path_follows_fable_30m(void **state)
{
    (void)state;
    check_model("fable-30m-q4_k_m", "fable-30m-q4_k_m", NULL, near_tie);
}

// Token by token, through sampler, session and text stream, as programs do it.
static char *generate(loaded *l, const char *prompt, size_t n_bytes_wanted)
{
    frit_token tokens[MAX_TOKENS], token;
    size_t n = tokenize_prompt(l->model, prompt, tokens), n_bytes;
    frit_sampler *sampler;
    frit_text_stream *stream;
    char *text = calloc(n_bytes_wanted + 1000, 1), *at = text;
    const char *piece;
    assert_ok(frit_sampler_new(&sampler, l->model, NULL));
    assert_ok(frit_text_stream_new(&stream, l->model, 0));
    assert_ok(frit_session_truncate(l->session, 0));
    assert_ok(frit_session_push(l->session, tokens, n, NULL));
    at += sprintf(at, "%s", prompt);
    while ((size_t)(at - text) < n_bytes_wanted) {
        assert_ok(frit_session_next(l->session, sampler, &token));
        if (frit_token_is_end(l->model, token)) break;
        assert_ok(frit_text_stream_push(stream, token, &piece, &n_bytes));
        memcpy(at, piece, n_bytes);
        at += n_bytes;
    }
    frit_text_stream_free(stream);
    frit_sampler_free(sampler);
    return text;
}

static void stories_260k_is_told_word_for_word(void **state)
{
    (void)state;
    json_t *reference = read_reference();
    const json_t *greedy = json_object_get(json_object_get(reference, "stories260k-f32"), "greedy");
    const char *prompt = "Once upon a time", *cpus[] = {"reference", NULL};
    const char *expected = json_string_value(json_object_get(greedy, prompt));
    assert_non_null(expected);
    for (size_t i = 0; i < FRIT_COUNT(cpus); i++) {
        loaded l = load("stories260k-f32", cpus[i]);
        char *text = generate(&l, prompt, strlen(expected));
        assert_memory_equal(text, expected, strlen(expected));
        free(text);
        unload(&l);
    }
    json_decref(reference);
}

static void decoding_gives_what_the_reference_generated(void **state)
{
    (void)state;
    json_t *reference = read_reference();
    const char *prompt = "It was a dark night";
    const json_t *greedy = json_object_get(json_object_get(json_object_get(reference, "fable-6m"), "greedy"), prompt);
    const char *expected = json_string_value(json_object_get(greedy, "text"));
    assert_non_null(expected);
    loaded l = load("fable-6m-bf16", "reference");
    char *text = generate(&l, prompt, strlen(expected));
    assert_memory_equal(text, expected, strlen(expected));
    free(text);
    unload(&l);
    json_decref(reference);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stories_260k_is_told_word_for_word),
        cmocka_unit_test(decoding_gives_what_the_reference_generated),
        cmocka_unit_test(the_reference_path_reproduces_fable_6m),
        cmocka_unit_test(the_reference_path_reproduces_fable_30m),
        cmocka_unit_test(the_default_path_follows_fable_6m),
        cmocka_unit_test(the_default_path_follows_fable_30m),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
