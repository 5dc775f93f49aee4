// SPDX-License-Identifier: MIT
// Sessions that run ahead of the caller (engine/sched/ahead.h), on the test device, whose numbers are those of the
// plain-C reference: after any operation, results equal those of the CPU, which runs nothing ahead.
#include "support/engines.h"
#include "support/support.h"

#include "engine/engine.h"
#include "support/test_device.h"
#include "support/tiny_model.h"

#include <time.h>

static frit_engine *device_engine(test_device_kind kind, const frit_engine_options *options)
{
    frit_engine_options chosen = *options;
    chosen.cpu = "reference";
    chosen.n_threads = 1;
    test_device_use(kind);
    frit_engine *engine = tiny_engine(&(tiny_options){0}, chosen);
    test_device_use(TEST_DEVICE_NONE);
    return engine;
}

static frit_sampler *make_sampler(const frit_sampler_options *options)
{
    frit_sampler *sampler = NULL;
    assert_ok(frit_sampler_create(&sampler, TINY_VOCAB, options));
    return sampler;
}

// ------------------------------------------------------------------------------- when

// Returns the number of steps in flight after some calls of frit_session_next.
static uint64_t in_flight(frit_engine *engine, const frit_sampler_options *options, int n_calls)
{
    frit_session *session = begin_session(engine, 3, 4);
    frit_sampler *sampler = make_sampler(options);
    for (int i = 0; i < n_calls; i++) assert_ok(frit_session_next(session, sampler, &(frit_token){0}));
    const uint64_t n = engine->flights.n_submitted - engine->flights.n_completed;
    assert_true((n > 0) == (engine->ahead == session));
    assert_int_equal(frit_session_pending(session), 1);
    assert_null(frit_session_logits(session));
    frit_sampler_free(sampler);
    frit_session_free(session);
    assert_null(engine->ahead);
    return n;
}

static void a_session_runs_ahead_where_nothing_waits_for_its_token(void **state)
{
    (void)state;
    static const char *const biases[] = {"7=2"};
    const struct {
        test_device_kind kind;
        frit_sampler_options sampling;
        uint64_t n_ahead;
    } cases[] = {
        {TEST_DEVICE_ALONE, {.temp = 0}, 1},
        {TEST_DEVICE_ALONE, {.temp = 1, .top_k = 10, .logit_bias = {biases, 1}}, 1},
        {TEST_DEVICE_ALONE, {.repeat_penalty = 1.2f}, 1},
        {TEST_DEVICE_ALONE, {.temp = 1, .frequency_penalty = 1, .repeat_last_n = -1}, 1},
        {TEST_DEVICE_ALONE, {.temp = 2, .top_k = 10, .samplers = "temperature;top_k"}, 0},
        {TEST_DEVICE_LAYERS, {.temp = 0}, 0},   // the host waits within its steps
        {TEST_DEVICE_NONE, {.temp = 0}, 0},     // a step has run when it is submitted
    };
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        frit_engine *engine = device_engine(cases[i].kind, &(frit_engine_options){0});
        for (int n = 1; n < 4; n++) assert_int_equal(in_flight(engine, &cases[i].sampling, n), cases[i].n_ahead);
        frit_engine_free(engine);
    }
}

static void it_ends_where_the_context_does(void **state)
{
    (void)state;
    enum { CONTEXT = 32 };
    frit_token tokens[2][CONTEXT];
    for (int d = 0; d < 2; d++) {
        const test_device_kind kind = d == 0 ? TEST_DEVICE_NONE : TEST_DEVICE_ALONE;
        frit_engine *engine = device_engine(kind, &(frit_engine_options){.n_ctx = CONTEXT});
        frit_session *session = begin_session(engine, 3, 4);
        frit_sampler *sampler = make_sampler(&(frit_sampler_options){.temp = 1, .seed = 5});
        for (int i = 4; i < CONTEXT; i++) assert_ok(frit_session_next(session, sampler, &tokens[d][i]));
        assert_int_equal(frit_session_length(session), CONTEXT);
        assert_fails(frit_session_next(session, sampler, &(frit_token){0}), FRIT_E_LIMIT, "context");
        assert_non_null(frit_session_logits(session));
        assert_memory_equal(frit_session_tokens(session) + 4, tokens[d] + 4, sizeof tokens[d] - 4 * sizeof(frit_token));
        frit_sampler_free(sampler);
        frit_session_free(session);
        frit_engine_free(engine);
    }
    assert_memory_equal(tokens[0] + 4, tokens[1] + 4, sizeof tokens[0] - 4 * sizeof(frit_token));
}

// Penalties count each token before the host knows it.
static void penalties_of_a_session_that_runs_ahead_are_those_of_its_text(void **state)
{
    (void)state;
    enum { LONG = 60 };
    static const frit_sampler_options options[] = {
        {.repeat_penalty = 1.5f},
        {.repeat_penalty = 1.3f, .presence_penalty = 0.5f, .repeat_last_n = 1},
        {.frequency_penalty = 0.7f, .repeat_last_n = 3},
        {.temp = 1, .frequency_penalty = 0.2f, .presence_penalty = 0.4f, .repeat_last_n = -1, .seed = 5},
        {.temp = 1.2f, .top_k = 20, .repeat_penalty = 1.4f, .repeat_last_n = 8, .seed = 6},
        {.temp = 1, .seed = 7},
    };
    for (size_t i = 0; i < FRIT_COUNT(options); i++) {
        frit_token tokens[2][LONG];
        for (int d = 0; d < 2; d++) {
            frit_engine *engine =
                device_engine(d == 0 ? TEST_DEVICE_NONE : TEST_DEVICE_ALONE, &(frit_engine_options){0});
            frit_session *session = begin_session(engine, 3, 4);
            frit_sampler *sampler = make_sampler(&options[i]);
            for (int k = 0; k < LONG; k++) {
                assert_ok(frit_session_next(session, sampler, &tokens[d][k]));
                assert_true((engine->ahead == session) == (d == 1));
            }
            frit_sampler_free(sampler);
            frit_session_free(session);
            frit_engine_free(engine);
        }
        assert_memory_equal(tokens[0], tokens[1], sizeof tokens[0]);
    }
}

// Each of a session's calls continues the step that is in flight: the pick that was requested before a token was known
// is the one that is requested after it.
static void a_session_with_penalties_runs_each_token_once(void **state)
{
    (void)state;
    enum { LONG = 20 };
    frit_engine *engine = device_engine(TEST_DEVICE_ALONE, &(frit_engine_options){0});
    frit_session *session = begin_session(engine, 3, 4);
    frit_sampler *sampler = make_sampler(&(frit_sampler_options){.repeat_penalty = 1.2f, .repeat_last_n = 4});
    for (int k = 0; k < LONG; k++) assert_ok(frit_session_next(session, sampler, &(frit_token){0}));
    assert_int_equal(engine->flights.n_submitted, LONG + 1);
    frit_sampler_free(sampler);
    frit_session_free(session);
    frit_engine_free(engine);
}

// ------------------------------------------------------------------------------- the same as without

enum { SESSIONS = 2, SAMPLERS = 5, ACTIONS = 400, NOTES = 8 };

typedef struct world {
    frit_engine *engine;
    frit_session *sessions[SESSIONS];
    frit_sampler *samplers[SAMPLERS];
    size_t n_ahead;   // actions after which a step was in flight
} world;

static void open_world(world *w, test_device_kind kind, bool speculates)
{
    const frit_sampler_options options[SAMPLERS] = {{.seed = 1},
                                                    {.temp = 1.5f, .top_k = 30, .top_p = 0.9f, .seed = 2},
                                                    {.temp = 1.5f, .top_k = 30, .top_p = 0.9f, .seed = 3},
                                                    {.temp = 1, .repeat_penalty = 1.3f, .seed = 4},
                                                    {.frequency_penalty = 0.8f, .repeat_last_n = 2}};
    *w = (world){.engine = device_engine(kind, &(frit_engine_options){.n_sessions = SESSIONS + 1})};
    for (int i = 0; i < SAMPLERS; i++) w->samplers[i] = make_sampler(&options[i]);
    for (int i = 0; i < SESSIONS; i++) w->sessions[i] = begin_session(w->engine, (frit_token)(5 + i), 3 + i);
    for (int i = 0; i < SESSIONS && speculates; i++)
        assert_ok(frit_session_speculate(w->sessions[i], &(frit_speculate_options){.always = true}));
}

static void close_world(world *w)
{
    for (int i = 0; i < SAMPLERS; i++) frit_sampler_free(w->samplers[i]);
    for (int i = 0; i < SESSIONS; i++) frit_session_free(w->sessions[i]);
    frit_engine_free(w->engine);
}

static int64_t fork_and_go_on(world *w, frit_session *session)
{
    frit_session *fork = NULL;
    frit_token token;
    assert_ok(frit_session_fork(&fork, session));
    const frit_status status = frit_session_next(fork, w->samplers[1], &token);
    frit_session_free(fork);
    return status == FRIT_OK ? token : -1;
}

static int64_t pick_in_step(world *w, frit_session *session, frit_sampler *sampler)
{
    frit_picked picked;
    if (frit_session_pending(session) == 0) return -1;
    assert_ok(frit_session_pick(session, sampler, NULL));
    while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(w->engine, NULL));
    assert_ok(frit_session_picked(session, &picked));
    assert_ok(frit_session_push(session, &picked.token, 1, NULL));
    return picked.token;
}

// Runs the action and notes its results, which must be equal in all worlds.
static void act(world *w, uint64_t drawn, int64_t *notes)
{
    const uint64_t action = drawn % 24, argument = drawn / 24;
    frit_session *session = w->sessions[argument % 8 == 0];
    frit_sampler *sampler = w->samplers[argument / 8 % 16 < SAMPLERS ? argument / 8 % 16 : 1];
    const size_t n = frit_session_length(session);
    frit_token token = (frit_token)(argument % TINY_VOCAB), tokens[4];
    size_t n_tokens = 0;
    if (n > TINY_CTX - 8) assert_ok(frit_session_truncate(session, 5));
    frit_status status = FRIT_OK;   // there may be no logits after what is left
    if (action < 12) status = frit_session_next(session, sampler, &token);
    if (action >= 12 && action < 16)
        status = frit_session_next_tokens(session, sampler, tokens, FRIT_COUNT(tokens), &n_tokens);
    if (action == 16 || action == 17) assert_ok(frit_session_push(session, &token, 1, NULL));
    if (action == 18 || action == 19) assert_ok(frit_session_truncate(session, n > 6 ? n - argument % 3 : n));
    if (action == 20) assert_ok(frit_engine_step(w->engine, NULL));
    if (action == 21) token = (frit_token)fork_and_go_on(w, session);
    if (action == 22) token = (frit_token)pick_in_step(w, session, sampler);
    if (action == 23) assert_ok(frit_engine_submit(w->engine, &(uint64_t){0}, NULL));
    w->n_ahead += w->engine->ahead != NULL;
    notes[0] = status == FRIT_OK ? token : -1 - (int64_t)status;
    notes[1] = (int64_t)n_tokens;
    for (int i = 0; i < SESSIONS; i++) {
        notes[2 + 2 * i] = (int64_t)frit_session_length(w->sessions[i]);
        notes[3 + 2 * i] = frit_session_tokens(w->sessions[i])[frit_session_length(w->sessions[i]) - 1];
    }
    // The device decides when a submitted step has run.
    notes[6] = action == 23 ? 0 : (int64_t)frit_session_pending(session);
    notes[7] = action == 23 ? 0 : frit_session_logits(session) != NULL;
}

static void whatever_is_done_gives_what_the_cpu_gives(void **state)
{
    (void)state;
    for (int speculates = 0; speculates < 2; speculates++) {
        world plain, ahead;
        uint64_t random = 88172645463325252u;
        open_world(&plain, TEST_DEVICE_NONE, speculates);
        open_world(&ahead, TEST_DEVICE_ALONE, speculates);
        for (int i = 0; i < ACTIONS; i++) {
            int64_t expected[NOTES], found[NOTES];
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            act(&plain, random >> 16, expected);
            act(&ahead, random >> 16, found);
            for (int k = 0; k < NOTES; k++)
                if (expected[k] != found[k])
                    fail_msg("after action %d (%d) note %d is %lld on the device and %lld on the CPU", i,
                             (int)((random >> 16) % 24), k, (long long)found[k], (long long)expected[k]);
        }
        for (int s = 0; s < SESSIONS; s++)
            assert_memory_equal(frit_session_tokens(plain.sessions[s]), frit_session_tokens(ahead.sessions[s]),
                                frit_session_length(plain.sessions[s]) * sizeof(frit_token));
        assert_int_equal(plain.n_ahead, 0);
        assert_in_range(ahead.n_ahead, ACTIONS / 16, ACTIONS);
        close_world(&plain);
        close_world(&ahead);
    }
}

// ------------------------------------------------------------------------------- time

// Time between two calls belongs to the caller, not to a step.
static void a_caller_that_thinks_makes_no_step_slow(void **state)
{
    (void)state;
    frit_engine *engine = device_engine(TEST_DEVICE_ALONE, &(frit_engine_options){0});
    frit_session *session = begin_session(engine, 3, 4);
    frit_sampler *sampler = make_sampler(&(frit_sampler_options){0});
    for (int i = 0; i < 8; i++) assert_ok(frit_session_next(session, sampler, &(frit_token){0}));
    const double before = engine->cost.decode_ns;
    assert_true(before > 0);
    nanosleep(&(struct timespec){.tv_nsec = 400 * 1000 * 1000}, NULL);
    assert_ok(frit_session_push(session, &(frit_token){5}, 1, NULL));
    assert_true(engine->cost.decode_ns == before);
    frit_sampler_free(sampler);
    frit_session_free(session);
    frit_engine_free(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_runs_ahead_where_nothing_waits_for_its_token),
        cmocka_unit_test(it_ends_where_the_context_does),
        cmocka_unit_test(penalties_of_a_session_that_runs_ahead_are_those_of_its_text),
        cmocka_unit_test(a_session_with_penalties_runs_each_token_once),
        cmocka_unit_test(whatever_is_done_gives_what_the_cpu_gives),
        cmocka_unit_test(a_caller_that_thinks_makes_no_step_slow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
