// SPDX-License-Identifier: MIT
// Beam search against a search of all continuations, each computed in a session of its own.
#include "support/support.h"
#include "support/tiny_model.h"

#include "frit.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_TOKENS = 6, PROMPT = 5, MANY = TINY_VOCAB * TINY_VOCAB };

typedef struct fixture {
    frit_model *model;
    frit_engine *engine, *plain;   // plain: runs single continuations
    frit_token prompt[PROMPT];
} fixture;

static int set_up(void **state)
{
    static fixture f;
    static const frit_token prompt[PROMPT] = {1, 9, 30, 12, 41};
    memcpy(f.prompt, prompt, sizeof prompt);
    assert_ok(frit_model_open(&f.model, tiny_model("beams.gguf", &(tiny_options){.seed = 4}), NULL));
    assert_ok(frit_engine_new(&f.engine, f.model, &(frit_engine_options){.n_ctx = 32, .n_sessions = TINY_VOCAB + 1}));
    assert_ok(frit_engine_new(&f.plain, f.model, &(frit_engine_options){.n_ctx = 32}));
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    frit_engine_free(f->plain);
    frit_engine_free(f->engine);
    frit_model_free(f->model);
    return 0;
}

typedef struct continuation {
    frit_token tokens[MAX_TOKENS];
    int n;
    double logprob;
    bool ended;
} continuation;

// Computes log-probabilities of the token after the prompt and these tokens, in a new session.
static void logprobs_after(const fixture *f, const continuation *c, double *logprobs)
{
    frit_session *session;
    assert_ok(frit_session_new(&session, f->plain));
    assert_ok(frit_session_push(session, f->prompt, PROMPT, NULL));
    if (c->n > 0) assert_ok(frit_session_push(session, c->tokens, (size_t)c->n, NULL));
    while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(f->plain, NULL));
    const float *logits = frit_session_logits(session);
    double max = -INFINITY, sum = 0;
    for (int t = 0; t < TINY_VOCAB; t++) max = fmax(max, (double)logits[t]);
    for (int t = 0; t < TINY_VOCAB; t++) sum += exp((double)logits[t] - max);
    for (int t = 0; t < TINY_VOCAB; t++) logprobs[t] = (double)logits[t] - max - log(sum);
    frit_session_free(session);
}

static int by_logprob(const void *a, const void *b)
{
    const continuation *x = a, *y = b;
    return (x->logprob < y->logprob) - (x->logprob > y->logprob);
}

// The definition: of all extensions of the live beams, in order, those that end are set aside, until `width` continue.
static int search_plainly(const fixture *f, int width, int n_predict, continuation *found)
{
    static continuation live[TINY_VOCAB], all[MANY], ended[MANY];
    int n_live = 1, n_ended = 0;
    live[0] = (continuation){.n = 0};
    for (int i = 0; i < n_predict && n_live > 0; i++) {
        int n = 0;
        for (int b = 0; b < n_live; b++) {
            double logprobs[TINY_VOCAB];
            logprobs_after(f, &live[b], logprobs);
            for (frit_token t = 0; t < TINY_VOCAB; t++) {
                continuation c = live[b];
                c.tokens[c.n++] = t;
                c.logprob += logprobs[t];
                c.ended = frit_token_is_end(f->model, t);
                all[n++] = c;
            }
        }
        qsort(all, (size_t)n, sizeof *all, by_logprob);
        n_live = 0;
        for (int k = 0; k < n && n_live < width; k++) *(all[k].ended ? &ended[n_ended++] : &live[n_live++]) = all[k];
    }
    memcpy(ended + n_ended, live, (size_t)n_live * sizeof *live);
    n_ended += n_live;
    qsort(ended, (size_t)n_ended, sizeof *ended, by_logprob);
    if (n_ended > width) n_ended = width;
    memcpy(found, ended, (size_t)n_ended * sizeof *found);
    return n_ended;
}

static frit_session *start(const fixture *f)
{
    frit_session *session;
    assert_ok(frit_session_new(&session, f->engine));
    assert_ok(frit_session_push(session, f->prompt, PROMPT, NULL));
    return session;
}

static void check(const fixture *f, int width, int n_predict)
{
    static continuation expected[TINY_VOCAB];
    const int n = search_plainly(f, width, n_predict, expected);
    frit_session *session = start(f);
    frit_beams *beams;
    frit_beam beam;
    assert_ok(frit_beam_search(&beams, session, &(frit_beam_options){.n_beams = width, .n_predict = n_predict}));
    for (int i = 0; i < n; i++) {
        assert_true(frit_beams_get(beams, (size_t)i, &beam));
        assert_int_equal(beam.n_tokens, expected[i].n);
        assert_memory_equal(beam.tokens, expected[i].tokens, (size_t)expected[i].n * sizeof *beam.tokens);
        assert_true(fabs(beam.logprob - expected[i].logprob) < 1e-4);
        assert_int_equal(beam.ended, expected[i].ended);
    }
    assert_false(frit_beams_get(beams, (size_t)n, &beam));
    frit_beams_free(beams);
    assert_int_equal(frit_session_length(session), PROMPT);   // the session is unchanged
    assert_int_equal(frit_session_pending(session), 0);
    frit_session_free(session);
}

static void beams_are_those_of_the_definition(void **state)
{
    static const struct {
        int width, n_predict;
    } cases[] = {{1, 6}, {2, 5}, {3, 6}, {8, 4}, {20, 3}, {5, 1}};
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) check(*state, cases[i].width, cases[i].n_predict);
}

// With as many beams as tokens nothing is left out: the result is the best of all pairs.
static void enough_beams_find_the_likeliest_of_all(void **state)
{
    check(*state, TINY_VOCAB, 2);
}

static void one_beam_is_greedy(void **state)
{
    const fixture *f = *state;
    frit_session *session = start(f);
    frit_beams *beams;
    frit_beam beam;
    assert_ok(frit_beam_search(&beams, session, &(frit_beam_options){.n_beams = 1, .n_predict = 12}));
    assert_true(frit_beams_get(beams, 0, &beam));
    frit_sampler *sampler;
    assert_ok(frit_sampler_new(&sampler, f->model, NULL));
    for (size_t i = 0; i < beam.n_tokens; i++) {
        frit_token token;
        assert_ok(frit_session_next(session, sampler, &token));
        assert_int_equal(beam.tokens[i], token);
    }
    frit_sampler_free(sampler);
    frit_beams_free(beams);
    frit_session_free(session);
}

static void the_context_ends_a_search(void **state)
{
    const fixture *f = *state;
    frit_session *session = start(f);
    frit_beams *beams;
    frit_beam beam;
    assert_ok(frit_beam_search(&beams, session, NULL));
    for (size_t i = 0; i < 4; i++) {
        assert_true(frit_beams_get(beams, i, &beam));
        assert_true(beam.ended ? beam.n_tokens <= 32 - PROMPT : beam.n_tokens == 32 - PROMPT);
    }
    assert_false(frit_beams_get(beams, 4, &beam));
    frit_beams_free(beams);
    frit_session_free(session);
}

static void bad_searches_are_refused(void **state)
{
    const fixture *f = *state;
    frit_session *session = start(f), *empty;
    frit_beams *beams;
    assert_fails(frit_beam_search(&beams, session, &(frit_beam_options){.n_beams = -1}), FRIT_E_INVALID,
                 "n_beams is -1; expected 1 to 1024, or 0 for 4");
    assert_null(beams);
    assert_fails(frit_beam_search(&beams, session, &(frit_beam_options){.n_predict = -1}), FRIT_E_INVALID,
                 "n_predict is -1");
    assert_fails(frit_beam_search(&beams, session, &(frit_beam_options){.reserved = {[2] = 1}}), FRIT_E_INVALID,
                 "reserved");
    assert_ok(frit_session_new(&empty, f->engine));
    assert_fails(frit_beam_search(&beams, empty, NULL), FRIT_E_INVALID, "has no logits");
    frit_session_free(empty);
    frit_session_free(session);
    frit_beams_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beams_are_those_of_the_definition),
        cmocka_unit_test(enough_beams_find_the_likeliest_of_all),
        cmocka_unit_test(one_beam_is_greedy),
        cmocka_unit_test(the_context_ends_a_search),
        cmocka_unit_test(bad_searches_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
