// SPDX-License-Identifier: MIT
// Whole models against greedy texts of transformers: exactly with the reference kernels, up to near-ties with the best
// ones.
#include "support/support.h"

#include <jansson.h>
#include <math.h>

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

// A reference's key is its prompt; "chat" is a question through the chat template.
static size_t tokenize_prompt(const frit_model *model, const char *key, frit_token *tokens)
{
    size_t n_tokens;
    const frit_message question = {.role = "user", .content = "Tell me the tale of Rapunzel."};
    if (strcmp(key, "chat") == 0)
        assert_ok(frit_chat_tokenize(model, &question, 1, NULL, tokens, MAX_TOKENS, &n_tokens));
    else
        assert_ok(frit_tokenize(model, key, strlen(key), FRIT_TEXT_SPECIAL, tokens, MAX_TOKENS, &n_tokens));
    return n_tokens;
}

typedef struct rows {
    float *logits;   // [n, n_vocab]
    size_t n_vocab;
} rows;

static void keep_row(void *ctx, size_t i, const float *logits, size_t n)
{
    rows *r = ctx;
    assert_int_equal(n, r->n_vocab);
    memcpy(r->logits + i * n, logits, n * sizeof *logits);
}

// Computes the logits after each of the tokens.
static rows run(loaded *l, const frit_token *ids, size_t n)
{
    rows r = {calloc(n * (size_t)l->info.n_vocab, sizeof(float)), (size_t)l->info.n_vocab};
    assert_ok(frit_session_truncate(l->session, 0));
    assert_ok(frit_session_push(l->session, ids, n,
                                &(frit_push_options){.output = FRIT_OUTPUT_ALL, .row = keep_row, .row_ctx = &r}));
    int32_t n_rows;
    do assert_ok(frit_engine_step(l->engine, &n_rows));
    while (n_rows > 0);
    return r;
}

static frit_token likeliest(const rows *r, size_t i)
{
    const float *logits = r->logits + i * r->n_vocab;
    frit_token best = 0;
    for (size_t t = 1; t < r->n_vocab; t++)
        if (logits[t] > logits[best]) best = (frit_token)t;
    return best;
}

// Root of the mean squared difference.
static float noise(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return (float)sqrt(sum / (double)n);
}

// The best kernels round activations and cached values, which changes logits a little. If the reference's two best
// candidates differ by less than this noise explains (five deviations of a difference), either may win. Rounded
// activations alone change the difference at one position by 4.4 (fable-30m, "It was a dark night", position 57; 3.3
// with AVX2).
static size_t check_ties(const rows *reference, const rows *best, const frit_token *ids, size_t first, size_t n)
{
    size_t n_ties = 0;
    for (size_t i = first; i + 1 < n; i++) {
        frit_token expected = ids[i + 1], found = likeliest(best, i);
        if (found == expected) continue;
        const float *row = reference->logits + i * reference->n_vocab;
        float gap = row[expected] - row[found], moved = noise(row, best->logits + i * best->n_vocab, best->n_vocab);
        print_message("position %zu: token %d instead of %d, which are %.3f apart; noise %.3f\n", i + 1, found,
                      expected, (double)gap, (double)moved);
        assert_true(gap <= 5 * 1.4142f * moved);
        n_ties++;
    }
    return n_ties;
}

// Runs prompt and answer at once: every row must predict the next token. This is greedy decoding in one pass.
static void check_text(loaded *reference, loaded *best, const char *key, const json_t *list, double limit)
{
    frit_token ids[MAX_TOKENS], prompt[MAX_TOKENS];
    size_t n = json_array_size(list), n_prompt = tokenize_prompt(reference->model, key, prompt);
    assert_in_range(n, n_prompt + 10, MAX_TOKENS);
    for (size_t i = 0; i < n; i++) ids[i] = (frit_token)json_integer_value(json_array_get(list, i));
    assert_memory_equal(ids, prompt, n_prompt * sizeof *ids);

    rows a = run(reference, ids, n), b = run(best, ids, n);
    for (size_t i = n_prompt - 1; i + 1 < n; i++) assert_int_equal(likeliest(&a, i), ids[i + 1]);
    double error = nmse(b.logits, a.logits, n * a.n_vocab);
    size_t n_ties = check_ties(&a, &b, ids, n_prompt - 1, n);
    print_message("'%s': %zu near-ties in %zu tokens, NMSE %.1e\n", key, n_ties, n - n_prompt, error);
    assert_true(error < limit);
    free(a.logits);
    free(b.logits);
}

static void check_model(const char *file, const char *key, double limit)
{
    json_t *reference = read_reference(), *text;
    const char *prompt;
    json_t *greedy = json_object_get(json_object_get(reference, key), "greedy");
    assert_non_null(greedy);
    loaded plain = load(file, "reference"), best = load(file, NULL);
    json_object_foreach(greedy, prompt, text) check_text(&plain, &best, prompt, json_object_get(text, "ids"), limit);
    unload(&plain);
    unload(&best);
    json_decref(reference);
}

static void fable_6m_predicts_its_reference_texts(void **state)
{
    (void)state;
    check_model("fable-6m-bf16", "fable-6m", 2e-5);   // up to 1.4e-5 where attention rounds to bfloat16
}

static void fable_30m_predicts_its_reference_texts(void **state)
{
    (void)state;
    check_model("fable-30m-q4_k_m", "fable-30m-q4_k_m", 2e-3);
}

// Generates token by token, through sampler, session and text stream, like a program.
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
        cmocka_unit_test(fable_6m_predicts_its_reference_texts),
        cmocka_unit_test(fable_30m_predicts_its_reference_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
