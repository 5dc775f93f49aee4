// SPDX-License-Identifier: MIT
// Picks in steps, and steps in flight: on the CPU, which has run a step when it is submitted, and on a device that runs
// it when a caller waits or has polled twice; with and without picks of its own.
#include "support/engines.h"
#include "support/support.h"

#include "engine/engine.h"
#include "support/tiny_model.h"

#include <stdlib.h>

// ------------------------------------------------------------------------------- a device that is late

enum { MAX_JOBS = 4 };

typedef struct job {
    frit_exec *exec;
    void *block;
    frit_step_output *output;
} job;

static struct {
    frit_backend backend;
    job jobs[MAX_JOBS];
    frit_ticket n_submitted, n_done;
    int n_polls, fails_in;   // 0: never; 1: the next one that runs
    bool failed;
} late;

static void run_first(frit_device *device)
{
    job *j = &late.jobs[++late.n_done % MAX_JOBS];
    frit_batch batch = frit_batch_view(j->block);
    frit_ticket ticket;
    if (late.fails_in == 1) late.failed = true;
    if (late.fails_in > 0) late.fails_in--;
    if (!late.failed) assert_ok(frit_backend_cpu.submit(device, j->exec, &batch, j->output, &ticket));
    free(j->block);
    *j = (job){0};
}

static void drain(frit_device *device)
{
    while (late.n_done < late.n_submitted) run_first(device);
}

static frit_status late_open(frit_device **out, const frit_device_options *options)
{
    late.n_submitted = late.n_done = 0;
    FRIT_TRY(frit_backend_cpu.open(out, options));
    (*out)->backend = &late.backend;
    return FRIT_OK;
}

static frit_status late_submit(frit_device *device, frit_exec *exec, const frit_batch *batch, frit_step_output *output,
                               frit_ticket *ticket)
{
    (void)device;
    assert_in_range(late.n_submitted - late.n_done, 0, FRIT_MAX_FLIGHTS - 1);
    *ticket = ++late.n_submitted;
    void *block = malloc((size_t)frit_batch_bytes(batch));
    frit_batch_pack(block, batch);
    late.jobs[*ticket % MAX_JOBS] = (job){exec, block, output};
    return FRIT_OK;
}

static bool late_poll(frit_device *device, frit_ticket ticket)
{
    if (late.n_done < ticket && ++late.n_polls % 2 == 0) run_first(device);
    return late.n_done >= ticket;
}

static frit_status late_wait(frit_device *device, frit_ticket ticket)
{
    while (late.n_done < ticket) run_first(device);
    const bool failed = late.failed;
    late.failed = false;
    return failed ? frit_fail(FRIT_E_IO, "the device was lost") : FRIT_OK;
}

static frit_status late_read(frit_device *device, frit_address from, void *to, uint64_t n_bytes)
{
    drain(device);
    return frit_backend_cpu.read(device, from, to, n_bytes);
}

static frit_status late_write(frit_device *device, frit_address to, const void *from, uint64_t n_bytes)
{
    drain(device);
    return frit_backend_cpu.write(device, to, from, n_bytes);
}

static frit_status late_copy(frit_device *device, frit_address to, frit_address from, uint64_t n_bytes)
{
    drain(device);
    return frit_backend_cpu.copy(device, to, from, n_bytes);
}

// ------------------------------------------------------------------------------- engines

static const struct {
    const char *cpu;
    bool late, picks;
} devices[] = {{"reference", false, false}, {NULL, false, false}, {NULL, true, true}, {NULL, true, false}};

enum { SESSIONS = 4, LONG = 24 };

static void choose_device(size_t d)
{
    late.backend = frit_backend_cpu;
    late.backend.name = "late";
    late.backend.picks = devices[d].picks;
    late.backend.queues = devices[d].late;
    late.backend.open = late_open;
    late.backend.submit = late_submit;
    late.backend.poll = late_poll;
    late.backend.wait = late_wait;
    late.backend.read = late_read;
    late.backend.write = late_write;
    late.backend.copy = late_copy;
    late.n_polls = late.fails_in = 0;
    late.failed = false;
    frit_backend_set_first(devices[d].late ? &late.backend : NULL);
}

static frit_engine *late_engine(size_t d, frit_engine_options options, const tiny_options *tiny)
{
    choose_device(d);
    options.cpu = devices[d].cpu;
    options.n_sessions = SESSIONS;
    options.n_threads = 2;
    return tiny_engine(tiny ? tiny : &(tiny_options){0}, options);
}

static int close_late(void **state)
{
    (void)state;
    frit_backend_set_first(NULL);
    return 0;
}

static frit_sampler_options sampling(int s)
{
    static const char *const biases[] = {"7=3.5", "9=-inf", "11=2"};
    const frit_sampler_options rows[SESSIONS] = {
        {.temp = 1.5f, .top_k = 30, .top_p = 0.9f, .repeat_penalty = 1.3f, .frequency_penalty = 0.2f, .seed = 1},
        {.temp = 2, .top_p = 0.95f, .min_p = 0.01f, .logit_bias = {biases, 3}, .seed = 2},
        {.repeat_penalty = 1.5f, .presence_penalty = 0.5f, .repeat_last_n = 5, .seed = 3},
        {.temp = 1, .seed = 4},
    };
    return rows[s];
}

static frit_sampler *make_sampler(int s)
{
    const frit_sampler_options options = sampling(s);
    frit_sampler *sampler = NULL;
    assert_ok(frit_sampler_create(&sampler, TINY_VOCAB, &options));
    return sampler;
}

// Samples with the sampler chain from the logits, one session after the other.
static void sample_by_chain(frit_engine *engine, int s, frit_token *tokens, size_t n)
{
    frit_session *session = begin_session(engine, (frit_token)(3 + s), (size_t)(1 + s));
    frit_sampler *sampler = make_sampler(s);
    for (size_t i = 0; i < n; i++) {
        run_all(engine);
        assert_non_null(frit_session_logits(session));
        frit_sampler_set_position(sampler, frit_session_length(session));
        assert_ok(frit_sampler_run_chain(sampler, frit_session_logits(session), &tokens[i]));
        frit_sampler_accept(sampler, tokens[i]);
        assert_ok(frit_session_push(session, &tokens[i], 1, NULL));
    }
    frit_sampler_free(sampler);
    frit_session_free(session);
}

// ------------------------------------------------------------------------------- picks

static void picks_of_a_step_are_what_the_chain_gives(void **state)
{
    (void)state;
    for (size_t d = 0; d < FRIT_COUNT(devices); d++) {
        frit_engine *engine = late_engine(d, (frit_engine_options){.no_prefix_cache = true}, NULL);
        frit_session *sessions[SESSIONS];
        frit_sampler *samplers[SESSIONS];
        frit_token expected[SESSIONS][LONG];
        for (int s = 0; s < SESSIONS; s++) sample_by_chain(engine, s, expected[s], LONG);
        for (int s = 0; s < SESSIONS; s++) {
            sessions[s] = begin_session(engine, (frit_token)(3 + s), (size_t)(1 + s));
            samplers[s] = make_sampler(s);
        }
        for (int i = 0; i < LONG; i++) {
            int32_t n_rows;
            for (int s = 0; s < SESSIONS; s++) assert_ok(frit_session_pick(sessions[s], samplers[s], NULL));
            assert_ok(frit_engine_step(engine, &n_rows));   // one step for all sessions
            assert_int_equal(n_rows, i == 0 ? 1 + 2 + 3 + 4 : SESSIONS);
            for (int s = 0; s < SESSIONS; s++) {
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
        for (int s = 0; s < SESSIONS; s++) {
            frit_sampler_free(samplers[s]);
            frit_session_free(sessions[s]);
        }
        frit_engine_free(engine);
    }
}

static void the_next_token_is_what_the_chain_gives(void **state)
{
    (void)state;
    for (size_t d = 0; d < FRIT_COUNT(devices); d++) {
        frit_engine *engine = late_engine(d, (frit_engine_options){0}, NULL);
        for (int s = 0; s < SESSIONS; s++) {
            frit_token expected[LONG], token;
            sample_by_chain(engine, s, expected, LONG);
            frit_session *session = begin_session(engine, (frit_token)(3 + s), (size_t)(1 + s));
            frit_sampler *sampler = make_sampler(s);
            for (int i = 0; i < LONG; i++) {
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
    for (size_t d = 0; d < FRIT_COUNT(devices); d++) {
        frit_engine *engine = late_engine(d, (frit_engine_options){0}, NULL);
        frit_session *sessions[3] = {begin_session(engine, 5, 4), begin_session(engine, 5, 4),
                                     begin_session(engine, 9, 2)};
        frit_sampler *sampler = make_sampler(1);
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
    frit_sampler *sampler = make_sampler(0), *custom = NULL, *reversed = NULL, *other = NULL;
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
    frit_sampler *none = NULL, *some = make_sampler(3);
    for (int t = 0; t < TINY_VOCAB; t++) {
        snprintf(texts[t], sizeof texts[t], "%d=-inf", t);
        biases[t] = texts[t];
    }
    assert_ok(frit_sampler_create(&none, TINY_VOCAB, &(frit_sampler_options){.logit_bias = {biases, TINY_VOCAB}}));
    for (size_t d = 0; d < FRIT_COUNT(devices); d++) {
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
    frit_sampler *sampler = make_sampler(s);
    for (size_t i = 0; i + n_drafts < LONG;) {
        frit_token drafts[LONG];
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
    for (size_t d = 0; d < FRIT_COUNT(devices); d++) {
        const int32_t batches[] = {0, 3};   // rows of a verification may run in several steps
        for (int b = 0; b < 2; b++) {
            frit_engine *engine = late_engine(d, (frit_engine_options){.n_batch = batches[b]}, NULL);
            for (int s = 0; s < SESSIONS; s++) {
                frit_token expected[LONG];
                sample_by_chain(engine, s, expected, LONG);
                verify(engine, s, expected, 4, 4);
                verify(engine, s, expected, 4, 2);
                verify(engine, s, expected, 1, 0);
                verify(engine, s, expected, 7, 6);
            }
            frit_engine_free(engine);
        }
    }
}

// ------------------------------------------------------------------------------- steps in flight

// Two steps in flight: the second one runs tokens that only the device knows, and counts them for penalties.
static void a_step_continues_one_in_flight(void **state)
{
    (void)state;
    static const frit_sampler_options options[3] = {
        {.temp = 1.5f, .top_k = 30, .frequency_penalty = 1, .presence_penalty = 1, .repeat_last_n = 4, .seed = 1},
        {.temp = 2, .top_p = 0.9f, .seed = 2},
        {.repeat_penalty = 1.5f, .repeat_last_n = -1}};
    for (size_t d = 0; d < FRIT_COUNT(devices); d++) {
        frit_engine *engine = late_engine(d, (frit_engine_options){0}, NULL);
        frit_session *sessions[3];
        frit_sampler *samplers[3];
        frit_token expected[3][LONG];
        for (int s = 0; s < 3; s++) {
            assert_ok(frit_sampler_create(&samplers[s], TINY_VOCAB, &options[s]));
            sessions[s] = begin_session(engine, (frit_token)(3 + s), (size_t)(1 + s));
            for (int i = 0; i < LONG; i++) assert_ok(frit_session_next(sessions[s], samplers[s], &expected[s][i]));
            frit_session_free(sessions[s]);
            assert_ok(frit_sampler_reset(samplers[s]));
        }
        for (int s = 0; s < 3; s++) sessions[s] = begin_session(engine, (frit_token)(3 + s), (size_t)(1 + s));
        uint64_t steps[LONG], first = 0;
        for (int i = 0; i <= LONG; i++) {
            if (i < LONG) {
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
    for (size_t d = 0; d < FRIT_COUNT(devices); d++) {
        frit_engine *engine = late_engine(d, (frit_engine_options){0}, NULL);
        frit_session *session = begin_session(engine, 5, 2);
        frit_sampler *sampler;
        frit_token expected[LONG];
        assert_ok(frit_sampler_create(&sampler, TINY_VOCAB, &options));
        for (int i = 0; i < LONG; i++) assert_ok(frit_session_next(session, sampler, &expected[i]));
        frit_session_free(session);
        assert_ok(frit_sampler_reset(sampler));
        session = begin_session(engine, 5, 2);
        for (int i = 0; i < LONG; i++) {
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
    for (size_t d = 0; d < FRIT_COUNT(devices); d++) {
        frit_engine *engine = late_engine(d, (frit_engine_options){0}, NULL);
        frit_session *a = begin_session(engine, 5, 3), *b = begin_session(engine, 6, 4), *fork = NULL;
        frit_sampler *sampler = make_sampler(3);
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
        frit_sampler *sampler = make_sampler(3);
        frit_token expected[3];
        frit_picked picked;
        uint64_t steps[2];
        for (int i = 0; i < 3; i++) assert_ok(frit_session_next(session, sampler, &expected[i]));
        frit_session_free(session);
        session = begin_session(engine, 5, 3);
        late.fails_in = which;
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
    for (size_t d = 1; d < FRIT_COUNT(devices); d++) {
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
    for (size_t d = 1; d < FRIT_COUNT(devices); d++) {
        frit_engine *engine = late_engine(d, (frit_engine_options){0}, &(tiny_options){.damaged = "token_embd.weight"});
        frit_session *bad = begin_session(engine, 5, 1), *good = begin_session(engine, 5, 1);
        frit_sampler *sampler = make_sampler(3);
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
        cmocka_unit_test(picks_of_a_step_are_what_the_chain_gives),
        cmocka_unit_test(the_next_token_is_what_the_chain_gives),
        cmocka_unit_test(picks_say_how_likely_tokens_are),
        cmocka_unit_test(what_cannot_be_picked_is_refused),
        cmocka_unit_test(a_pick_without_a_token_leaves_the_logits),
        cmocka_unit_test(drafts_are_accepted_as_far_as_they_are_what_is_picked),
        cmocka_unit_test(a_step_continues_one_in_flight),
        cmocka_unit_test(penalties_count_a_token_that_is_not_taken),
        cmocka_unit_test(results_come_when_a_step_has_run),
        cmocka_unit_test(what_changes_a_session_waits_for_its_step),
        cmocka_unit_test(a_step_that_fails_late_is_queued_again),
        cmocka_unit_test(rows_are_handed_out_before_another_step_runs),
        cmocka_unit_test(a_session_that_fails_in_flight_rests),
    };
    return cmocka_run_group_tests(tests, NULL, close_late);
}
