// SPDX-License-Identifier: MIT
// Steps in flight: on the CPU, which has run a step when it is submitted, and on a device that is late, with and
// without picks of its own.
#include "support/engines.h"
#include "support/late_device.h"
#include "support/support.h"

#include "engine/engine.h"

// Two steps in flight: the second one runs tokens that only the device knows, and counts them for penalties.
static void a_step_continues_one_in_flight(void **state)
{
    (void)state;
    static const frit_sampler_options options[3] = {
        {.temp = 1.5f, .top_k = 30, .frequency_penalty = 1, .presence_penalty = 1, .repeat_last_n = 4, .seed = 1},
        {.temp = 2, .top_p = 0.9f, .seed = 2},
        {.repeat_penalty = 1.5f, .repeat_last_n = -1}};
    for (size_t d = 0; d < LATE_DEVICES; d++) {
        frit_engine *engine = late_engine(d, (frit_engine_options){0}, NULL);
        frit_session *sessions[3];
        frit_sampler *samplers[3];
        frit_token expected[3][LATE_TOKENS];
        for (int s = 0; s < 3; s++) {
            assert_ok(frit_sampler_create(&samplers[s], TINY_VOCAB, &options[s]));
            sessions[s] = begin_session(engine, (frit_token)(3 + s), (size_t)(1 + s));
            for (int i = 0; i < LATE_TOKENS; i++)
                assert_ok(frit_session_next(sessions[s], samplers[s], &expected[s][i]));
            frit_session_free(sessions[s]);
            assert_ok(frit_sampler_reset(samplers[s]));
        }
        for (int s = 0; s < 3; s++) sessions[s] = begin_session(engine, (frit_token)(3 + s), (size_t)(1 + s));
        uint64_t steps[LATE_TOKENS], first = 0;
        for (int i = 0; i <= LATE_TOKENS; i++) {
            if (i < LATE_TOKENS) {
                for (int s = 0; s < 3; s++) assert_ok(frit_session_pick(sessions[s], samplers[s], NULL));
                assert_ok(frit_engine_submit(engine, &steps[i], NULL));
                assert_int_equal(steps[i], i == 0 ? (first = steps[0]) : first + (uint64_t)i);
                for (int s = 0; s < 3; s++) assert_ok(frit_session_push_picked(sessions[s]));
            }
            if (i == 0) continue;
            assert_ok(frit_engine_wait(engine, steps[i - 1]));
            for (int s = 0; s < 3; s++) {
                frit_picked picked;
                assert_ok(frit_session_picked(sessions[s], &picked));
                assert_int_equal(picked.token, expected[s][i - 1]);
                assert_int_equal(frit_session_tokens(sessions[s])[s + i], picked.token);
                assert_ok(frit_sampler_accept(samplers[s], picked.token));
            }
        }
        for (int s = 0; s < 3; s++) {
            frit_sampler_free(samplers[s]);
            frit_session_free(sessions[s]);
        }
        frit_engine_free(engine);
    }
}

// A token whose step has run is known, but its sampler accepts it after the next pick was requested.
static void penalties_count_a_token_that_is_not_taken(void **state)
{
    (void)state;
    const frit_sampler_options options = {.repeat_penalty = 1.5f, .presence_penalty = 0.5f, .repeat_last_n = 3};
    for (size_t d = 0; d < LATE_DEVICES; d++) {
        frit_engine *engine = late_engine(d, (frit_engine_options){0}, NULL);
        frit_session *session = begin_session(engine, 5, 2);
        frit_sampler *sampler;
        frit_token expected[LATE_TOKENS];
        assert_ok(frit_sampler_create(&sampler, TINY_VOCAB, &options));
        for (int i = 0; i < LATE_TOKENS; i++) assert_ok(frit_session_next(session, sampler, &expected[i]));
        frit_session_free(session);
        assert_ok(frit_sampler_reset(sampler));
        session = begin_session(engine, 5, 2);
        for (int i = 0; i < LATE_TOKENS; i++) {
            frit_picked picked;
            assert_ok(frit_session_pick(session, sampler, NULL));
            if (i > 0) {
                assert_ok(frit_session_picked(session, &picked));
                assert_int_equal(picked.token, expected[i - 1]);
                assert_ok(frit_sampler_accept(sampler, picked.token));
            }
            assert_ok(frit_engine_step(engine, NULL));
            assert_ok(frit_session_push_picked(session));
        }
        frit_sampler_free(sampler);
        frit_session_free(session);
        frit_engine_free(engine);
    }
}

static void results_come_when_a_step_has_run(void **state)
{
    (void)state;
    frit_engine *engine = late_engine(2, (frit_engine_options){0}, NULL);
    frit_session *session = begin_session(engine, 5, 3);
    uint64_t step = 9, none = 9;
    int32_t n_rows;
    bool done = true;
    assert_ok(frit_engine_submit(engine, &step, &n_rows));
    assert_int_equal(n_rows, 3);
    assert_int_equal(frit_session_pending(session), 3);   // in flight
    assert_null(frit_session_logits(session));
    assert_ok(frit_engine_submit(engine, &none, &n_rows));
    assert_int_equal(none, 0);
    assert_int_equal(n_rows, 0);
    assert_ok(frit_engine_poll(engine, step, &done));
    assert_false(done);
    assert_ok(frit_engine_poll(engine, step, &done));
    assert_true(done);
    assert_int_equal(frit_session_pending(session), 0);
    assert_non_null(frit_session_logits(session));
    assert_ok(frit_engine_poll(engine, step, &done));
    assert_true(done);
    assert_ok(frit_engine_wait(engine, step));
    assert_fails(frit_engine_wait(engine, step + 1), FRIT_E_INVALID, "was not submitted");
    assert_fails(frit_engine_wait(engine, 0), FRIT_E_INVALID, "step 0 was not submitted");
    assert_fails(frit_engine_poll(engine, 99, &done), FRIT_E_INVALID, "step 99");
    frit_session_free(session);
    frit_engine_free(engine);
}

static void what_changes_a_session_waits_for_its_step(void **state)
{
    (void)state;
    for (size_t d = 0; d < LATE_DEVICES; d++) {
        frit_engine *engine = late_engine(d, (frit_engine_options){0}, NULL);
        frit_session *a = begin_session(engine, 5, 3), *b = begin_session(engine, 6, 4), *fork = NULL;
        frit_sampler *sampler = late_sampler(3);
        frit_token token, again;
        uint64_t step;
        assert_ok(frit_engine_submit(engine, &step, NULL));
        assert_ok(frit_session_fork(&fork, a));
        assert_int_equal(frit_session_pending(fork), 0);
        assert_ok(frit_session_next(fork, sampler, &again));
        assert_ok(frit_session_truncate(fork, 0));
        assert_ok(frit_session_push(a, &again, 1, NULL));
        assert_ok(frit_engine_submit(engine, &step, NULL));
        assert_ok(frit_session_truncate(a, 2));
        assert_int_equal(frit_session_pending(a), 0);
        assert_ok(frit_session_push(a, &(frit_token){frit_session_tokens(b)[2]}, 1, NULL));
        assert_ok(frit_engine_submit(engine, &step, NULL));
        frit_session_free(b);   // has nothing in flight
        assert_ok(frit_session_next(a, sampler, &token));
        assert_ok(frit_engine_submit(engine, &step, NULL));
        frit_session_free(a);   // has a step in flight
        assert_ok(frit_engine_wait(engine, step));
        assert_ok(frit_session_push(fork, &token, 1, NULL));
        assert_ok(frit_session_pick(fork, sampler, NULL));
        assert_ok(frit_engine_submit(engine, &step, NULL));
        assert_ok(frit_session_push_picked(fork));
        assert_ok(frit_engine_submit(engine, &step, NULL));
        frit_engine_free(engine);   // two of its steps are in flight
        frit_session_free(fork);
        frit_sampler_free(sampler);
    }
}

// A step that fails late, and the next one, have not run.
static void a_step_that_fails_late_is_queued_again(void **state)
{
    (void)state;
    for (int which = 1; which <= 2; which++) {   // of two steps, the one that fails
        frit_engine *engine = late_engine(2, (frit_engine_options){.no_prefix_cache = true}, NULL);
        frit_session *session = begin_session(engine, 5, 3);
        frit_sampler *sampler = late_sampler(3);
        frit_token expected[3];
        frit_picked picked;
        uint64_t steps[2];
        for (int i = 0; i < 3; i++) assert_ok(frit_session_next(session, sampler, &expected[i]));
        frit_session_free(session);
        session = begin_session(engine, 5, 3);
        late_fail_in(which);
        assert_ok(frit_session_pick(session, sampler, NULL));
        assert_ok(frit_engine_submit(engine, &steps[0], NULL));
        assert_ok(frit_session_push_picked(session));
        assert_ok(frit_session_pick(session, sampler, NULL));
        assert_ok(frit_engine_submit(engine, &steps[1], NULL));
        if (which == 1) {
            assert_fails(frit_engine_wait(engine, steps[0]), FRIT_E_IO, "the device was lost");
            assert_fails(frit_session_picked(session, &picked), FRIT_E_INVALID, "0 of 1 rows have run");
        } else {
            assert_ok(frit_engine_wait(engine, steps[0]));
            assert_ok(frit_session_picked(session, &picked));
            assert_int_equal(picked.token, expected[0]);
        }
        assert_fails(frit_engine_wait(engine, steps[1]), FRIT_E_IO, "the device was lost");
        frit_fail_say("something else");
        assert_fails(frit_engine_wait(engine, steps[1]), FRIT_E_IO, "the device was lost");
        assert_int_equal(frit_session_pending(session), which == 1 ? 4 : 1);
        run_all(engine);
        if (which == 1) {
            assert_ok(frit_session_picked(session, &picked));
            assert_int_equal(picked.token, expected[0]);
        }
        assert_ok(frit_session_picked(session, &picked));
        assert_int_equal(picked.token, expected[1]);
        frit_sampler_free(sampler);
        frit_session_free(session);
        frit_engine_free(engine);
    }
}

typedef struct rows {
    size_t n;
    float sum;
} rows;

static void add_row(void *ctx, size_t i, const float *values, size_t n)
{
    rows *r = ctx;
    assert_int_equal(i, r->n++);
    for (size_t k = 0; k < n; k++) r->sum += values[k] * (float)(i + 1);
}

static void rows_are_handed_out_before_another_step_runs(void **state)
{
    (void)state;
    float expected = 0;
    for (size_t d = 1; d < LATE_DEVICES; d++) {
        frit_engine *engine = late_engine(d, (frit_engine_options){.n_batch = 4}, NULL);
        frit_session *session = begin_session(engine, 5, 0);
        rows r = {0};
        uint64_t step = 0, last = 0;
        const frit_token tokens[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
        const frit_push_options all = {.output = FRIT_OUTPUT_ALL, .row = add_row, .row_ctx = &r};
        assert_ok(frit_session_push(session, tokens, FRIT_COUNT(tokens), &all));
        do {
            last = step > 0 ? step : last;
            assert_ok(frit_engine_submit(engine, &step, NULL));
        } while (step > 0);
        assert_ok(frit_engine_wait(engine, last));
        assert_int_equal(r.n, FRIT_COUNT(tokens));
        if (d == 1) expected = r.sum;
        assert_true(r.sum == expected);
        frit_session_free(session);
        frit_engine_free(engine);
    }
}

// The embedding of this token contains a NaN.
static void a_session_that_fails_in_flight_rests(void **state)
{
    (void)state;
    enum { BAD = TINY_VOCAB / 2 };
    for (size_t d = 1; d < LATE_DEVICES; d++) {
        frit_engine *engine = late_engine(d, (frit_engine_options){0}, &(tiny_options){.damaged = "token_embd.weight"});
        frit_session *bad = begin_session(engine, 5, 1), *good = begin_session(engine, 5, 1);
        frit_sampler *sampler = late_sampler(3);
        frit_picked picked;
        uint64_t step;
        assert_ok(frit_session_push(bad, &(frit_token){BAD}, 1, NULL));
        assert_ok(frit_session_push(good, &(frit_token){BAD + 1}, 1, NULL));
        for (int i = 0; i < 2; i++) {
            if (i == 0 || d != 3) assert_ok(frit_session_pick(bad, sampler, NULL));
            assert_ok(frit_session_pick(good, sampler, NULL));
            assert_ok(frit_engine_submit(engine, &step, NULL));
            if (i > 0) break;
            if (frit_session_status(bad) == FRIT_OK) assert_ok(frit_session_push_picked(bad));
            assert_ok(frit_session_push_picked(good));
        }
        assert_ok(frit_engine_wait(engine, step));
        assert_fails(frit_session_status(bad), FRIT_E_FORMAT, "not finite");
        assert_fails(frit_session_picked(bad, &picked), FRIT_E_FORMAT, "not finite");
        assert_int_equal(frit_session_pending(bad), 0);
        for (int i = 0; i < 2; i++) assert_ok(frit_session_picked(good, &picked));
        assert_ok(frit_session_truncate(bad, 0));
        assert_ok(frit_session_push(bad, &(frit_token){7}, 1, NULL));
        assert_ok(frit_session_next(bad, sampler, &(frit_token){0}));
        frit_sampler_free(sampler);
        frit_session_free(bad);
        frit_session_free(good);
        frit_engine_free(engine);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_continues_one_in_flight),
        cmocka_unit_test(penalties_count_a_token_that_is_not_taken),
        cmocka_unit_test(results_come_when_a_step_has_run),
        cmocka_unit_test(what_changes_a_session_waits_for_its_step),
        cmocka_unit_test(a_step_that_fails_late_is_queued_again),
        cmocka_unit_test(rows_are_handed_out_before_another_step_runs),
        cmocka_unit_test(a_session_that_fails_in_flight_rests),
    };
    return cmocka_run_group_tests(tests, NULL, late_close);
}
