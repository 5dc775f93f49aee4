// SPDX-License-Identifier: MIT
// Picks that a step runs, and drafts that picks verify: on the CPU and on a device that is late, with and without picks
// of its own.
#include "support/engines.h"
#include "support/late_device.h"
#include "support/support.h"

#include "engine/engine.h"

// ------------------------------------------------------------------------------- picks

static void picks_of_a_step_are_what_the_chain_gives(void **state)
{
    (void)state;
    for (size_t d = 0; d < LATE_DEVICES; d++) {
        frit_engine *engine = late_engine(d, (frit_engine_options){.no_prefix_cache = true}, NULL);
        frit_session *sessions[LATE_SESSIONS];
        frit_sampler *samplers[LATE_SESSIONS];
        frit_token expected[LATE_SESSIONS][LATE_TOKENS];
        for (int s = 0; s < LATE_SESSIONS; s++) late_sample(engine, s, expected[s], LATE_TOKENS);
        for (int s = 0; s < LATE_SESSIONS; s++) {
            sessions[s] = begin_session(engine, (frit_token)(3 + s), (size_t)(1 + s));
            samplers[s] = late_sampler(s);
        }
        for (int i = 0; i < LATE_TOKENS; i++) {
            int32_t n_rows;
            for (int s = 0; s < LATE_SESSIONS; s++) assert_ok(frit_session_pick(sessions[s], samplers[s], NULL));
            assert_ok(frit_engine_step(engine, &n_rows));   // one step for all sessions
            assert_int_equal(n_rows, i == 0 ? 1 + 2 + 3 + 4 : LATE_SESSIONS);
            for (int s = 0; s < LATE_SESSIONS; s++) {
                frit_picked picked;
                assert_null(frit_session_logits(sessions[s]));   // the logits stay on the device
                assert_ok(frit_session_picked(sessions[s], &picked));
                assert_int_equal(picked.token, expected[s][i]);
                assert_int_equal(picked.n_accepted, 0);
                assert_int_equal(picked.n_top, 0);
                frit_sampler_accept(samplers[s], picked.token);
                assert_ok(frit_session_push(sessions[s], &picked.token, 1, NULL));
            }
        }
        for (int s = 0; s < LATE_SESSIONS; s++) {
            frit_sampler_free(samplers[s]);
            frit_session_free(sessions[s]);
        }
        frit_engine_free(engine);
    }
}

static void the_next_token_is_what_the_chain_gives(void **state)
{
    (void)state;
    for (size_t d = 0; d < LATE_DEVICES; d++) {
        frit_engine *engine = late_engine(d, (frit_engine_options){0}, NULL);
        for (int s = 0; s < LATE_SESSIONS; s++) {
            frit_token expected[LATE_TOKENS], token;
            late_sample(engine, s, expected, LATE_TOKENS);
            frit_session *session = begin_session(engine, (frit_token)(3 + s), (size_t)(1 + s));
            frit_sampler *sampler = late_sampler(s);
            for (int i = 0; i < LATE_TOKENS; i++) {
                if (i == 7) run_all(engine);   // the logits are then available
                assert_ok(frit_session_next(session, sampler, &token));
                assert_int_equal(token, expected[i]);
            }
            frit_sampler_free(sampler);
            frit_session_free(session);
        }
        frit_engine_free(engine);
    }
}

static void picks_say_how_likely_tokens_are(void **state)
{
    (void)state;
    enum { TOP = 5 };
    for (size_t d = 0; d < LATE_DEVICES; d++) {
        frit_engine *engine = late_engine(d, (frit_engine_options){0}, NULL);
        frit_session *sessions[3] = {begin_session(engine, 5, 4), begin_session(engine, 5, 4),
                                     begin_session(engine, 9, 2)};
        frit_sampler *sampler = late_sampler(1);
        frit_logprob top[TOP], of;
        frit_picked picked;
        assert_ok(frit_session_pick(sessions[2], sampler, &(frit_pick_options){.logprobs = true, .n_top = 2}));
        assert_ok(frit_session_pick(sessions[0], sampler, &(frit_pick_options){.logprobs = true, .n_top = TOP}));
        run_all(engine);
        assert_ok(frit_session_picked(sessions[0], &picked));
        assert_ok(frit_logprobs_top(frit_session_logits(sessions[1]), TINY_VOCAB, top, TOP));
        of.token = picked.token;
        assert_ok(frit_logprobs_of(frit_session_logits(sessions[1]), TINY_VOCAB, &of, 1));
        assert_int_equal(picked.n_top, TOP);
        for (int i = 0; i < TOP; i++) {
            assert_int_equal(picked.top[i].token, top[i].token);
            assert_true(picked.top[i].logprob == top[i].logprob);
        }
        assert_true(picked.logprob == of.logprob);
        assert_ok(frit_session_picked(sessions[2], &picked));
        assert_int_equal(picked.n_top, 2);
        frit_sampler_free(sampler);
        for (int s = 0; s < 3; s++) frit_session_free(sessions[s]);
        frit_engine_free(engine);
    }
}

static size_t keep_first(void *ctx, frit_candidate *candidates, size_t n)
{
    (void)ctx, (void)candidates;
    return n;
}

static void what_cannot_be_picked_is_refused(void **state)
{
    (void)state;
    frit_engine *engine = late_engine(1, (frit_engine_options){0}, NULL);
    frit_session *session = begin_session(engine, 5, 3), *empty = begin_session(engine, 0, 0);
    frit_sampler *sampler = late_sampler(0), *custom = NULL, *reversed = NULL, *other = NULL;
    frit_picked picked;
    assert_ok(frit_sampler_create(&custom, TINY_VOCAB, &(frit_sampler_options){.stage = keep_first}));
    assert_ok(frit_sampler_create(&reversed, TINY_VOCAB,
                                  &(frit_sampler_options){.temp = 2, .top_k = 5, .samplers = "temp,top-k"}));
    assert_ok(frit_sampler_create(&other, 7, NULL));
    assert_fails(frit_session_pick(session, custom, NULL), FRIT_E_UNSUPPORTED, "stages of the caller's own");
    assert_fails(frit_session_pick(session, reversed, NULL), FRIT_E_UNSUPPORTED, "another order");
    assert_fails(frit_session_pick(session, other, NULL), FRIT_E_INVALID, "for 7 tokens, the model has 64");
    assert_fails(frit_session_pick(empty, sampler, NULL), FRIT_E_INVALID, "must be queued: 0 of 0");
    assert_fails(frit_session_pick(session, sampler, &(frit_pick_options){.n_drafts = 3}), FRIT_E_INVALID,
                 "3 drafts, must be queued: 3 of 3");
    assert_fails(frit_session_pick(session, sampler, &(frit_pick_options){.n_drafts = 65}), FRIT_E_INVALID, "0 to 64");
    assert_fails(frit_session_pick(session, sampler, &(frit_pick_options){.n_top = 65}), FRIT_E_INVALID, "0 to 64");
    assert_fails(frit_session_pick(session, sampler, &(frit_pick_options){.n_top = -1}), FRIT_E_INVALID, "-1");
    assert_fails(frit_session_picked(session, &picked), FRIT_E_INVALID, "no pick of the session waits");
    assert_fails(frit_session_push_picked(session), FRIT_E_INVALID, "no token was asked for");
    assert_ok(frit_session_pick(session, sampler, NULL));
    assert_fails(frit_session_pick(session, sampler, NULL), FRIT_E_INVALID, "follows token 2 is asked for already");
    assert_fails(frit_session_picked(session, &picked), FRIT_E_INVALID, "not been picked yet: 0 of 1");
    assert_ok(frit_session_push_picked(session));
    assert_int_equal(frit_session_tokens(session)[3], -1);
    frit_session_free(empty);
    assert_fails(frit_session_fork(&empty, session), FRIT_E_INVALID, "not known yet");
    assert_fails(frit_session_save_memory(session, NULL, 0, &(size_t){0}), FRIT_E_INVALID, "not known yet");
    assert_fails(frit_session_truncate(session, 4), FRIT_E_INVALID, "not known yet");
    assert_ok(frit_session_pick(session, sampler, NULL));
    assert_ok(frit_session_push_picked(session));
    assert_fails(frit_session_pick(session, sampler, NULL), FRIT_E_LIMIT, "2 picks of the session wait");
    assert_ok(frit_session_truncate(session, 3));   // drops the logits
    assert_fails(frit_session_picked(session, &picked), FRIT_E_INVALID, "no pick of the session waits");
    run_all(engine);
    assert_non_null(frit_session_logits(session));
    assert_fails(frit_session_pick(session, sampler, NULL), FRIT_E_INVALID, "must be queued: 0 of 3");
    frit_sampler_free(sampler);
    frit_sampler_free(custom);
    frit_sampler_free(reversed);
    frit_sampler_free(other);
    frit_engine_free(engine);
    frit_session_free(session);
}

// All tokens are banned: the pick fails, and its logits stay for another sampler.
static void a_pick_without_a_token_leaves_the_logits(void **state)
{
    (void)state;
    static char texts[TINY_VOCAB][16];
    const char *biases[TINY_VOCAB];
    frit_token token;
    frit_sampler *none = NULL, *some = late_sampler(3);
    for (int t = 0; t < TINY_VOCAB; t++) {
        snprintf(texts[t], sizeof texts[t], "%d=-inf", t);
        biases[t] = texts[t];
    }
    assert_ok(frit_sampler_create(&none, TINY_VOCAB, &(frit_sampler_options){.logit_bias = {biases, TINY_VOCAB}}));
    for (size_t d = 0; d < LATE_DEVICES; d++) {
        frit_engine *engine = late_engine(d, (frit_engine_options){0}, NULL);
        frit_session *session = begin_session(engine, 5, 3);
        assert_fails(frit_session_next(session, none, &token), FRIT_E_INVALID, "no token is left");
        assert_non_null(frit_session_logits(session));
        assert_ok(frit_session_next(session, some, &token));
        frit_session_free(session);
        frit_engine_free(engine);
    }
    frit_sampler_free(none);
    frit_sampler_free(some);
}

// ------------------------------------------------------------------------------- drafts

// The text with drafts, of which the first `n_good` are right, equals the text without drafts.
static void verify(frit_engine *engine, int s, const frit_token *expected, size_t n_drafts, size_t n_good)
{
    frit_session *session = begin_session(engine, (frit_token)(3 + s), (size_t)(1 + s));
    frit_sampler *sampler = late_sampler(s);
    for (size_t i = 0; i + n_drafts < LATE_TOKENS;) {
        frit_token drafts[LATE_TOKENS];
        frit_picked picked;
        for (size_t k = 0; k < n_drafts; k++)
            drafts[k] = k < n_good ? expected[i + k] : (expected[i + k] + 1) % TINY_VOCAB;
        assert_ok(frit_session_push(session, drafts, n_drafts, NULL));
        assert_ok(frit_session_pick(session, sampler, &(frit_pick_options){.n_drafts = n_drafts, .logprobs = true}));
        run_all(engine);
        assert_ok(frit_session_picked(session, &picked));
        assert_int_equal(picked.n_accepted, n_good < n_drafts ? n_good : n_drafts);
        for (int k = 0; k < picked.n_accepted; k++) frit_sampler_accept(sampler, drafts[k]);
        i += (size_t)picked.n_accepted;
        assert_int_equal(picked.token, expected[i++]);
        assert_true(picked.logprob < 0);
        assert_int_equal(frit_session_length(session), (size_t)s + i);
        frit_sampler_accept(sampler, picked.token);
        assert_ok(frit_session_push(session, &picked.token, 1, NULL));
    }
    frit_sampler_free(sampler);
    frit_session_free(session);
}

static void drafts_are_accepted_as_far_as_they_are_what_is_picked(void **state)
{
    (void)state;
    for (size_t d = 0; d < LATE_DEVICES; d++) {
        const int32_t batches[] = {0, 3};   // rows of a verification may run in several steps
        for (int b = 0; b < 2; b++) {
            frit_engine *engine = late_engine(d, (frit_engine_options){.n_batch = batches[b]}, NULL);
            for (int s = 0; s < LATE_SESSIONS; s++) {
                frit_token expected[LATE_TOKENS];
                late_sample(engine, s, expected, LATE_TOKENS);
                verify(engine, s, expected, 4, 4);
                verify(engine, s, expected, 4, 2);
                verify(engine, s, expected, 1, 0);
                verify(engine, s, expected, 7, 6);
            }
            frit_engine_free(engine);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(picks_of_a_step_are_what_the_chain_gives),
        cmocka_unit_test(the_next_token_is_what_the_chain_gives),
        cmocka_unit_test(picks_say_how_likely_tokens_are),
        cmocka_unit_test(what_cannot_be_picked_is_refused),
        cmocka_unit_test(a_pick_without_a_token_leaves_the_logits),
        cmocka_unit_test(drafts_are_accepted_as_far_as_they_are_what_is_picked),
    };
    return cmocka_run_group_tests(tests, NULL, late_close);
}
