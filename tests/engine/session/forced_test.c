// SPDX-License-Identifier: MIT
// Tokens that a grammar forces: they are queued without steps of their own, and the text stays the same.
#include "support/support.h"
#include "support/tiny_model.h"

#include "engine/engine.h"

enum { MOST = 120, N_PROMPT = 12 };

// Letters, each of which is a token of the tiny model; 'x' begins other tokens too.
static const char letters[] = "abcdefgh(i|jkl|m)nopq[rst]{2}uvwabcdefghijklm(yes|no){2,3}abc(tuvw|z)end";

typedef struct text {
    frit_token tokens[MOST];
    size_t n;
    uint64_t n_steps;
} text;

typedef struct way {
    float temp;
    bool by_hand;      // samples every token from logits
    bool speculates;   // with drafts from the text
    frit_option_list logit_bias;
} way;

static frit_grammar *make_grammar(const frit_model *model, const char *regex)
{
    frit_grammar *grammar = NULL;
    const frit_grammar_options options = {.kind = FRIT_GRAMMAR_REGEX};
    assert_ok(frit_grammar_new(&grammar, model, regex, strlen(regex), &options));
    return grammar;
}

static frit_sampler *make_sampler(const frit_model *model, const char *regex, const way *w)
{
    frit_sampler *sampler = NULL;
    const frit_sampler_options options = {.temp = w->temp, .seed = 3, .logit_bias = w->logit_bias};
    frit_grammar *grammar = make_grammar(model, regex);
    assert_ok(frit_sampler_new(&sampler, model, &options));
    assert_ok(frit_sampler_set_grammar(sampler, grammar));
    frit_grammar_free(grammar);
    return sampler;
}

static frit_session *begin(frit_engine *engine, const way *w)
{
    frit_session *session;
    frit_token prompt[N_PROMPT];
    for (int i = 0; i < N_PROMPT; i++) prompt[i] = (frit_token)(4 + i * 5 % 26);
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_session_push(session, prompt, N_PROMPT, NULL));
    const frit_speculate_options options = {.kind = "ngram", .max_drafts = 4, .always = true};
    if (w->speculates) assert_ok(frit_session_speculate(session, &options));
    return session;
}

static void next_by_hand(frit_engine *engine, frit_session *session, frit_sampler *sampler, frit_token *token)
{
    while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(engine, NULL));
    assert_ok(frit_sampler_set_position(sampler, frit_session_length(session)));
    assert_ok(frit_sampler_sample(sampler, frit_session_logits(session), token));
    assert_ok(frit_sampler_accept(sampler, *token));
    assert_ok(frit_session_push(session, token, 1, NULL));
}

static void write_text(const frit_model *model, frit_engine *engine, const char *regex, const way *w, text *out)
{
    frit_session *session = begin(engine, w);
    frit_sampler *sampler = make_sampler(model, regex, w);
    const uint64_t n_before = engine->flights.n_submitted;
    out->n = 0;
    while (!frit_sampler_is_over(sampler) && out->n < MOST) {
        size_t n = 1;
        if (w->by_hand)
            next_by_hand(engine, session, sampler, &out->tokens[out->n]);
        else if (w->speculates)
            assert_ok(frit_session_next_tokens(session, sampler, out->tokens + out->n, MOST - out->n, &n));
        else
            assert_ok(frit_session_next(session, sampler, &out->tokens[out->n]));
        out->n += n;
    }
    out->n_steps = engine->flights.n_submitted - n_before;
    frit_sampler_free(sampler);
    frit_session_free(session);
}

// `regex` forces some tokens and leaves others open.
static void check(const char *path, const char *regex, bool speculates)
{
    frit_model *model;
    frit_engine *engine;
    const frit_engine_options options = {
        .n_ctx = 200, .n_sessions = 1, .n_threads = 1, .no_prefix_cache = true, .deterministic = true};
    assert_ok(frit_model_open(&model, path, NULL));
    assert_ok(frit_engine_new(&engine, model, &options));
    for (int k = 0; k < 2; k++) {
        text expected, found;
        write_text(model, engine, regex, &(way){.temp = (float)k, .by_hand = true}, &expected);
        assert_in_range(expected.n, 8, MOST - 1);
        assert_true(expected.n_steps >= expected.n);
        write_text(model, engine, regex, &(way){.temp = (float)k}, &found);
        assert_int_equal(found.n, expected.n);
        assert_memory_equal(found.tokens, expected.tokens, expected.n * sizeof *expected.tokens);
        assert_true(found.n_steps < expected.n_steps);
        if (!speculates) continue;
        write_text(model, engine, regex, &(way){.temp = (float)k, .speculates = true}, &found);
        assert_int_equal(found.n, expected.n);
        assert_memory_equal(found.tokens, expected.tokens, expected.n * sizeof *expected.tokens);
        assert_true(found.n_steps < expected.n_steps);
    }
    frit_engine_free(engine);
    frit_model_free(model);
}

static void the_text_is_the_same_in_fewer_steps(void **state)
{
    (void)state;
    check(tiny_model("a.gguf", &(tiny_options){0}), letters, true);
}

// A whole text may be forced: steps have as many of its tokens as the same kernels can run.
static void a_long_forced_text_runs_in_parts(void **state)
{
    (void)state;
    frit_model *model;
    frit_engine *engine;
    text out;
    static const char *const bias[] = {"5=-1"};
    assert_ok(frit_model_open(&model, tiny_model("a.gguf", &(tiny_options){0}), NULL));
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.n_ctx = 200, .n_threads = 1, .n_batch = 16}));
    write_text(model, engine, "(abcdefgh){14}", &(way){0}, &out);
    assert_int_equal(out.n, 14 * 8);
    assert_in_range(out.n_steps, 14 * 8 / 16, 14 * 8 / 16 + 4);
    // A bias may forbid the only token, so the token is picked in a step.
    write_text(model, engine, "(abcdefgh){3}", &(way){.logit_bias = {bias, 1}}, &out);
    assert_int_equal(out.n, 3 * 8);
    assert_int_equal(out.n_steps, 3 * 8);
    frit_engine_free(engine);
    frit_model_free(model);
}

// Forced tokens do not count as a prompt, so they do not wait for prompts.
static void forced_tokens_run_beside_prompts(void **state)
{
    (void)state;
    static const frit_token prompt[150];
    frit_model *model;
    frit_engine *engine;
    frit_token token;
    const way w = {0};
    assert_ok(frit_model_open(&model, tiny_model("a.gguf", &(tiny_options){0}), NULL));
    assert_ok(frit_engine_new(&engine, model,
                              &(frit_engine_options){.n_ctx = 200, .n_sessions = 2, .n_threads = 1, .n_batch = 32}));
    frit_session *session = begin(engine, &w), *other;
    frit_sampler *sampler = make_sampler(model, "a[bc]defgh[ij]", &w);
    while (frit_session_pending(session) > 1) assert_ok(frit_engine_step(engine, NULL));
    assert_ok(frit_session_push(session, (const frit_token[]){4}, 1, NULL));
    assert_ok(frit_session_new(&other, engine));
    assert_ok(frit_session_push(other, prompt, FRIT_COUNT(prompt), NULL));
    assert_ok(frit_sampler_accept(sampler, 4));
    assert_ok(frit_session_push_forced(session, sampler, &token));
    assert_int_equal(token, -1);   // [bc]
    assert_ok(frit_session_next(session, sampler, &token));
    size_t n = 0;
    for (;; n++) {
        assert_ok(frit_session_push_forced(session, sampler, &token));
        if (token < 0) break;
        assert_ok(frit_sampler_accept(sampler, token));
    }
    assert_int_equal(n, 5);   // defgh
    assert_int_equal(frit_session_pending(session), 6);
    assert_true(frit_session_pending(other) > 64);
    assert_ok(frit_engine_step(engine, NULL));
    assert_int_equal(frit_session_pending(session), 0);
    assert_true(frit_session_pending(other) > 0);
    frit_sampler_free(sampler);
    frit_session_free(session);
    frit_session_free(other);
    frit_engine_free(engine);
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_is_the_same_in_fewer_steps),
        cmocka_unit_test(a_long_forced_text_runs_in_parts),
        cmocka_unit_test(forced_tokens_run_beside_prompts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
