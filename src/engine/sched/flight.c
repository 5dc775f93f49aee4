// SPDX-License-Identifier: MIT
// Submitting steps, and waiting for them.
//
// A session's n_done counts tokens that were submitted; if a step fails later, n_done goes back. Steps complete in
// order: the host waits for a step, then delivers its results. If a step fails, the steps submitted after it fail too:
// they read its output.
#include "engine/sched/ahead.h"
#include "engine/sched/late.h"

#include "base/time.h"

#include <stdio.h>

uint64_t frit_flight_most(const frit_engine *engine)
{
    enum { USUAL = 2 };
    const int32_t n = engine->schedule.n_stages;
    return n > FRIT_MAX_FLIGHTS ? FRIT_MAX_FLIGHTS : n > USUAL ? (uint64_t)n : USUAL;
}

static frit_flight *flight_of(frit_engine *engine, uint64_t number)
{
    return &engine->flights.ring[number % FRIT_MAX_FLIGHTS];
}

// ------------------------------------------------------------------------------- sessions of a step

static void count_submitted(frit_session *session, const frit_seq *seq)
{
    for (int32_t k = 0; k < session->pick.n; k++) {
        frit_pick_request *request = &session->pick.requests[k];
        const size_t begin = (size_t)seq->n_past, end = begin + (size_t)seq->n_rows;
        for (size_t i = request->at; i < request->at + (size_t)request->n; i++)
            request->n_submitted += begin <= i && i < end;
    }
}

// Counts the rows of a step that was submitted.
static void mark_in_flight(const frit_step *step)
{
    for (int32_t r = 0; r < step->n_seqs; r++) {
        frit_session *session = step->owners[r];
        if (step->encodes) {
            session->source.waits = false;
            frit_kv_release(&session->engine->kv, &session->map);   // the encoder's own positions
            continue;
        }
        count_submitted(session, &step->seqs[r]);
        session->n_done += (size_t)step->seqs[r].n_rows;
        session->n_flying += (size_t)step->seqs[r].n_rows;
    }
}

// Queues a failed step's rows again. A recurrent state that was written in part is lost, so its session fails.
static void requeue_rows(const frit_engine *engine, const frit_step *step, frit_status status)
{
    for (int32_t r = 0; r < step->n_seqs; r++) {
        frit_session *session = step->owners[r];
        const frit_seq *seq = &step->seqs[r];
        if (step->encodes) {
            session->source.waits = true;
            continue;
        }
        session->n_flying -= (size_t)seq->n_rows;
        if (session->n_done > (size_t)seq->n_past) session->n_done = (size_t)seq->n_past;
        for (int32_t k = 0; k < session->pick.n; k++) frit_late_requeue(&session->pick.requests[k]);
        if (engine->kv.state_bytes > 0 && session->failure.status == FRIT_OK) frit_session_fail(session, status);
    }
}

// ------------------------------------------------------------------------------- waiting

static void set_failure(frit_flight *flight, frit_status status)
{
    flight->status = status;
    if (status != FRIT_OK) frit_failure_get(&flight->failure);
}

// The status of a completed step, with its sentence.
static frit_status status_of_flight(const frit_flight *flight)
{
    if (flight->status != FRIT_OK) frit_failure_set(&flight->failure);
    return flight->status;
}

// All steps in flight fail.
static void fail_all(frit_engine *engine, frit_status status)
{
    frit_flight *first = flight_of(engine, engine->flights.n_completed + 1);
    set_failure(first, status);
    while (engine->flights.n_completed < engine->flights.n_submitted) {
        frit_flight *flight = flight_of(engine, ++engine->flights.n_completed);
        if (flight != first) frit_step_wait(engine, flight);   // until then it reads and writes memory
        frit_failure_set(&first->failure);
        set_failure(flight, status);
        flight->late.n = 0;
        requeue_rows(engine, &flight->step, status);
    }
    status_of_flight(first);
}

frit_status frit_flight_wait(frit_engine *engine)
{
    if (engine->flights.n_completed == engine->flights.n_submitted) return FRIT_OK;
    frit_flight *flight = flight_of(engine, engine->flights.n_completed + 1);
    if (flight->number == engine->flights.n_submitted) {
        const frit_status submitted = frit_late_submit(engine);
        if (submitted != FRIT_OK) {
            fail_all(engine, submitted);
            return submitted;
        }
    }
    const bool was_done = flight->is_ahead && frit_step_poll(engine, flight);
    const frit_status status = frit_step_wait(engine, flight);
    if (status != FRIT_OK) {
        fail_all(engine, status);
        return status;
    }
    engine->flights.n_completed++;
    const uint64_t now = frit_time_ns();
    const uint64_t start =
        flight->start_ns > engine->flights.completed_ns ? flight->start_ns : engine->flights.completed_ns;
    const bool made_plan = engine->plans.n_made != flight->n_plans;   // by this step or by one submitted after it
    if (!was_done && !made_plan) frit_schedule_measure(engine, &flight->step, now - start);
    engine->flights.completed_ns = now;
    const bool was_in_step = engine->in_step;
    engine->in_step = true;   // row functions are called
    frit_step_deliver(engine, flight);
    engine->in_step = was_in_step;
    return FRIT_OK;
}

frit_status frit_flight_wait_all(frit_engine *engine)
{
    frit_status status = FRIT_OK;
    while (status == FRIT_OK && engine->flights.n_completed < engine->flights.n_submitted)
        status = frit_flight_wait(engine);
    return status;
}

// True if a step in flight has rows of the session. Rows of sources are not counted by sessions.
static bool is_in_flight(const frit_session *session)
{
    const frit_engine *engine = session->engine;
    bool is = session->n_flying > 0;
    for (uint64_t i = engine->flights.n_completed + 1; i <= engine->flights.n_submitted; i++)
        is = is || engine->flights.ring[i % FRIT_MAX_FLIGHTS].step.encodes;
    return is;
}

void frit_flight_wait_session(const frit_session *session)
{
    frit_engine *engine = session->engine;
    while (engine->flights.n_completed < engine->flights.n_submitted && is_in_flight(session))
        if (frit_flight_wait(engine) != FRIT_OK) return;
}

void frit_flight_drop_all(frit_engine *engine)
{
    for (; engine->flights.n_completed < engine->flights.n_submitted; engine->flights.n_completed++) {
        frit_step_wait(engine, flight_of(engine, engine->flights.n_completed + 1));
        flight_of(engine, engine->flights.n_completed + 1)->late.n = 0;
    }
}

// ------------------------------------------------------------------------------- the interface

// True if the results of the last step must be delivered before a device runs another one.
static bool must_deliver_first(const frit_engine *engine)
{
    const frit_flight *last = &engine->flights.ring[engine->flights.n_submitted % FRIT_MAX_FLIGHTS];
    return engine->flights.n_completed < engine->flights.n_submitted && last->output.wants_rows;
}

static frit_status start_step(frit_engine *engine, frit_flight *flight)
{
    flight->number = 0;
    flight->is_ahead = false;
    flight->start_ns = frit_time_ns();
    flight->n_plans = engine->plans.n_made;
    engine->in_step = true;
    const frit_status status = frit_step_submit(engine, flight);
    engine->in_step = false;
    FRIT_TRY(status);
    mark_in_flight(&flight->step);
    flight->n_plans_after = engine->plans.n_made;
    engine->drafts.n_queued = 0;
    engine->drafts.n_expected = 0;
    flight->status = FRIT_OK;
    flight->number = ++engine->flights.n_submitted;
    return FRIT_OK;
}

// Chooses the rows of the step, and runs a piece of a picture for which a session waits: after sessions have looked for
// their tokens in the cache.
static void schedule(frit_engine *engine, bool waits_for_pictures)
{
    frit_schedule(engine);
    while (frit_media_advance(engine) && waits_for_pictures && engine->step->n_rows == 0) frit_schedule(engine);
}

frit_status frit_flight_submit(frit_engine *engine, bool divides, bool waits_for_pictures, uint64_t *step,
                               int32_t *n_rows)
{
    frit_ahead_cancel(engine);
    if (must_deliver_first(engine)) FRIT_TRY(frit_flight_wait_all(engine));
    if (engine->flights.n_submitted - engine->flights.n_completed >= frit_flight_most(engine))
        FRIT_TRY(frit_flight_wait(engine));
    FRIT_TRY(frit_late_submit(engine));
    engine->schedule.divides = divides && engine->schedule.n_stages > 1;
    frit_flight *flight = flight_of(engine, engine->flights.n_submitted + 1);
    engine->step = &flight->step;
    engine->step->prefill =
        flight_of(engine, engine->flights.n_submitted)->step.prefill;   // row classes of steps alternate
    FRIT_TRY(frit_step_reserve_picks(engine));
    schedule(engine, waits_for_pictures);
    if (flight->step.n_rows == 0 && engine->flights.n_completed < engine->flights.n_submitted &&
        frit_schedule_waiting(engine) > 0) {
        FRIT_TRY(frit_flight_wait_all(engine));   // completed steps may release pages that sessions wait for
        frit_schedule(engine);
    }
    if (flight->step.n_rows == 0) return frit_schedule_check(engine);
    frit_late_lose(engine);
    FRIT_TRY(start_step(engine, flight));
    if (step) *step = flight->number;
    if (n_rows) *n_rows = flight->step.n_rows;
    return FRIT_OK;
}

frit_status frit_engine_submit(frit_engine *engine, uint64_t *step, int32_t *n_rows)
{
    FRIT_REQUIRE(engine);
    if (step) *step = 0;
    if (n_rows) *n_rows = 0;
    if (engine->in_step) return frit_fail(FRIT_E_INVALID, "a step cannot be started from within a row function");
    return frit_flight_submit(engine, true, true, step, n_rows);
}

// The status of a completed step; FRIT_OK for a step that is too old to be known.
static frit_status status_of_step(frit_engine *engine, uint64_t step)
{
    const frit_flight *flight = flight_of(engine, step);
    return flight->number == step ? status_of_flight(flight) : FRIT_OK;
}

// FRIT_E_INVALID for a step that was not submitted.
static frit_status check_step(const frit_engine *engine, uint64_t step)
{
    if (engine->in_step) return frit_fail(FRIT_E_INVALID, "a row function cannot wait for a step");
    if (step > 0 && step <= engine->flights.n_submitted) return FRIT_OK;
    return frit_fail(FRIT_E_INVALID, "step %llu was not submitted: the last one is %llu", (unsigned long long)step,
                     (unsigned long long)engine->flights.n_submitted);
}

frit_status frit_engine_poll(frit_engine *engine, uint64_t step, bool *done)
{
    FRIT_REQUIRE(engine);
    FRIT_REQUIRE(done);
    *done = false;
    FRIT_TRY(check_step(engine, step));
    while (engine->flights.n_completed < step) {
        if (!frit_step_poll(engine, flight_of(engine, engine->flights.n_completed + 1))) return FRIT_OK;
        if (frit_flight_wait(engine) != FRIT_OK) break;
    }
    *done = true;
    return status_of_step(engine, step);
}

frit_status frit_engine_wait(frit_engine *engine, uint64_t step)
{
    FRIT_REQUIRE(engine);
    FRIT_TRY(check_step(engine, step));
    while (engine->flights.n_completed < step)
        if (frit_flight_wait(engine) != FRIT_OK) break;   // of this step or of one before: both have the status
    return status_of_step(engine, step);
}

frit_status frit_engine_step(frit_engine *engine, int32_t *n_rows)
{
    FRIT_REQUIRE(engine);
    uint64_t step = 0;
    if (n_rows) *n_rows = 0;
    if (engine->in_step) return frit_fail(FRIT_E_INVALID, "a step cannot be started from within a row function");
    frit_ahead_cancel(engine);
    FRIT_TRY(frit_flight_wait_all(engine));
    int32_t n = 0;
    FRIT_TRY(frit_flight_submit(engine, false, true, &step, &n));
    if (step > 0) FRIT_TRY(frit_engine_wait(engine, step));
    if (n_rows) *n_rows = n;
    return FRIT_OK;
}
