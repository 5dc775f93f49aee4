// SPDX-License-Identifier: MIT
// Weights and priorities: the order of prompts, and the number of their rows.
#include "support/engines.h"
#include "support/support.h"
#include "support/tiny_model.h"

#include "engine/engine.h"
#include "frit.h"

enum { LONG = 600, N_BATCH = 16 };

static frit_engine *share_engine(frit_model **model, frit_engine_options options)
{
    options.n_threads = 1;
    options.n_batch = N_BATCH;
    options.no_prefix_cache = true;
    *model = load_tiny(&(tiny_options){.n_ctx = 1024});
    return make_engine(*model, options);
}

static frit_session *share_session(frit_engine *engine, int32_t weight, int32_t priority)
{
    frit_session *session = make_session(engine);
    assert_ok(frit_session_set_share(session, weight, priority));
    return session;
}

static void push(frit_session *session, uint64_t seed, size_t n)
{
    frit_rng rng;
    frit_token tokens[LONG];
    frit_rng_init(&rng, seed);
    for (size_t i = 0; i < n; i++) tokens[i] = (frit_token)random_between(&rng, 0, TINY_VOCAB - 1);
    assert_ok(frit_session_push(session, tokens, n, NULL));
}

static void step(frit_engine *engine)
{
    int32_t n_rows;
    assert_ok(frit_engine_step(engine, &n_rows));
    assert_true(n_rows > 0);
}

static double n_run(const frit_session *session)
{
    return (double)(frit_session_length(session) - frit_session_pending(session));
}

static void prompts_run_as_their_weights(void **state)
{
    (void)state;
    static const int32_t weights[3] = {5, 2, 1};
    frit_model *model;
    frit_engine *engine = share_engine(&model, (frit_engine_options){.n_ctx = 1024, .n_sessions = 3});
    frit_session *s[3];
    for (int i = 0; i < 3; i++) push(s[i] = share_session(engine, weights[i], 0), (uint64_t)i, LONG);
    int n_steps = 0;
    for (; frit_session_pending(s[0]) > N_BATCH; n_steps++) {
        step(engine);
        for (int i = 1; i < 3; i++) {   // no session is ahead by more than its last chunk
            const double ahead = n_run(s[0]) / weights[0] - n_run(s[i]) / weights[i];
            assert_true(ahead <= N_BATCH / (double)weights[0] + 2);
            assert_true(-ahead <= N_BATCH / (double)weights[i] + 2);
        }
    }
    assert_in_range(n_run(s[0]) + n_run(s[1]) + n_run(s[2]), N_BATCH * n_steps, N_BATCH * n_steps);
    assert_in_range(n_run(s[2]), 100, 135);
    for (int i = 0; i < 3; i++) {
        while (frit_session_pending(s[i]) > 0) step(engine);
        frit_session_free(s[i]);
    }
    frit_engine_free(engine);
    frit_model_free(model);
}

// A session that ran alone for a long time is not delayed later, and a new session has no advantage.
static void rows_that_nobody_wanted_do_not_count(void **state)
{
    (void)state;
    frit_model *model;
    frit_engine *engine = share_engine(&model, (frit_engine_options){.n_ctx = 1024, .n_sessions = 2});
    frit_session *a = share_session(engine, 1, 0), *b = share_session(engine, 1, 0);
    push(a, 1, LONG);
    while (n_run(a) < 400) step(engine);
    push(b, 2, LONG);
    while (frit_session_pending(a) > 0) {
        step(engine);
        const double ahead = n_run(a) - 400 - n_run(b);
        assert_true(ahead <= N_BATCH + 2 && -ahead <= N_BATCH + 2);
    }
    while (n_run(b) < LONG - 100) step(engine);   // a waits for no pages
    push(a, 3, 100);
    for (int i = 0; i < 6; i++) step(engine);
    assert_in_range(n_run(a), LONG + 2 * N_BATCH, LONG + 4 * N_BATCH);
    frit_session_free(a);
    frit_session_free(b);
    frit_engine_free(engine);
    frit_model_free(model);
}

static void higher_priorities_come_first(void **state)
{
    (void)state;
    frit_model *model;
    frit_engine *engine = share_engine(&model, (frit_engine_options){.n_ctx = 1024, .n_sessions = 3});
    frit_session *low = share_session(engine, 1000, -1), *high = share_session(engine, 1, 2), *alone;
    push(low, 1, LONG);
    for (int i = 0; i < 5; i++) step(engine);
    const double before = n_run(low);
    push(high, 2, 10 * N_BATCH);
    int n_steps = 0;
    for (; frit_session_pending(high) > 0; n_steps++) step(engine);
    assert_in_range(n_steps, 10, 11);
    assert_true(n_run(low) - before <= N_BATCH);   // a token in every other step, and what was left of the last one
    while (frit_session_pending(low) > 0) step(engine);
    // The results do not depend on sharing.
    alone = share_session(engine, 1, 0);
    push(alone, 1, LONG);
    while (frit_session_pending(alone) > 0) step(engine);
    assert_true(nmse(frit_session_logits(low), frit_session_logits(alone), TINY_VOCAB) < 1e-9);
    frit_session_free(low);
    frit_session_free(high);
    frit_session_free(alone);
    frit_engine_free(engine);
    frit_model_free(model);
}

// The cache has no room for both: the pages of the session with lower priority are evicted, though it has run more.
static void lower_priorities_give_their_pages_back(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        frit_model *model;
        frit_engine *engine = share_engine(&model, (frit_engine_options){.n_ctx = 256, .n_sessions = 1});
        frit_session *first = share_session(engine, 1, k == 0 ? -1 : 0), *second = share_session(engine, 1, 0);
        push(first, 1, 140);
        while (frit_session_pending(first) > 0) step(engine);
        push(second, 2, 80);
        while (frit_session_pending(second) > 0) step(engine);
        while (first->n_done >= 140 && second->n_done >= 80) {   // both generate until one begins anew
            if (frit_session_pending(first) == 0) push(first, 3, 1);
            if (frit_session_pending(second) == 0) push(second, 3, 1);
            step(engine);
        }
        assert_int_equal(first->n_done < 100, k == 0);   // it began again
        assert_int_equal(second->n_done < 80, k == 1);
        frit_session_free(first);
        frit_session_free(second);
        frit_engine_free(engine);
        frit_model_free(model);
    }
}

static void forks_share_alike_and_bad_weights_are_refused(void **state)
{
    (void)state;
    frit_model *model;
    frit_engine *engine = share_engine(&model, (frit_engine_options){.n_ctx = 256, .n_sessions = 2});
    frit_session *session = share_session(engine, 7, -3), *fork;
    push(session, 1, 5);
    assert_ok(frit_session_fork(&fork, session));
    assert_int_equal(fork->prompt.weight, 7);
    assert_int_equal(fork->prompt.priority, -3);
    assert_fails(frit_session_set_share(fork, 0, 0), FRIT_E_INVALID, "a session's weight is 0; expected 1 to 1000");
    assert_fails(frit_session_set_share(fork, 1001, 0), FRIT_E_INVALID, "a session's weight is 1001");
    assert_int_equal(fork->prompt.priority, -3);
    frit_session_free(fork);
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
}

// Prompts of all lengths: no chunk is too short, and none is much longer than wanted.
static void parts_of_a_prompt_are_about_equally_long(void **state)
{
    (void)state;
    enum { LEAST = 32, FITS = 512, TILE = 16 };
    for (size_t wanted = LEAST; wanted <= FITS; wanted += 16)
        for (size_t n = LEAST; n < 1200; n += 7) {
            size_t left = n, longest = 0, shortest = FITS;
            while (left > 0) {
                const size_t part = frit_prefill_chunk(left, wanted, FITS, LEAST);
                assert_in_range(part, LEAST, FITS);
                longest = part > longest ? part : longest;
                shortest = part < shortest ? part : shortest;
                left -= part;
            }
            assert_true(longest - shortest <= TILE);
            assert_true(longest <= wanted || n / (n / LEAST) > wanted - 1);
        }
    assert_int_equal(frit_prefill_chunk(100, 64, 40, LEAST), 40);
    assert_int_equal(frit_prefill_chunk(100, 64, 70, 40), 48);   // a multiple of tiles
    assert_int_equal(frit_prefill_chunk(1000, 32, 512, LEAST), 32);
    assert_int_equal(frit_prefill_chunk(100, 100, 70, 40), 60);   // 40 are left
    assert_int_equal(frit_prefill_chunk(50, 32, 40, LEAST), 0);   // 10 or 18 would be too few
    assert_int_equal(frit_prefill_chunk(31, 64, 512, LEAST), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_a_prompt_are_about_equally_long),
        cmocka_unit_test(prompts_run_as_their_weights),
        cmocka_unit_test(rows_that_nobody_wanted_do_not_count),
        cmocka_unit_test(higher_priorities_come_first),
        cmocka_unit_test(lower_priorities_give_their_pages_back),
        cmocka_unit_test(forks_share_alike_and_bad_weights_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
