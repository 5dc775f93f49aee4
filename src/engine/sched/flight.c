// SPDX-License-Identifier: MIT
// Submitting steps, and waiting for them.
//
// A session's n_done counts what was submitted; when a step fails late, it goes back to what was before. Steps are
// landed in order: waited for, and their results handed out. A step that others were submitted after takes these with
// it when it fails, for they read what it wrote.
#include "engine/sched/ahead.h"

#include "base/time.h"

#include <stdio.h>

static frit_flight *flight_of(frit_engine *engine, uint64_t number)
{
    return &engine->flights.ring[number % FRIT_MAX_FLIGHTS];
}

// ------------------------------------------------------------------------------- what sessions know of it

static void mark_submitted(const frit_step *step, frit_session *session, const frit_seq *seq)
{
    if (step->n_picks == 0) return;
    for (int32_t k = 0; k < session->pick.n; k++) {
        frit_pick_request *request = &session->pick.requests[k];
        const size_t begin = (size_t)seq->n_past, end = begin + (size_t)seq->n_rows;
        for (size_t i = request->at; i < request->at + (size_t)request->n; i++)
            request->n_submitted += begin <= i && i < end;
    }
}

static void take_off(const frit_step *step)
{
    for (int32_t r = 0; r < step->n_seqs; r++) {
        frit_session *session = step->owners[r];
        if (step->encodes) {
            session->source.waits = false;
            frit_kv_release(&session->engine->kv, &session->map);   // where the encoder's own positions are
            continue;
        }
        mark_submitted(step, session, &step->seqs[r]);
        session->n_done += (size_t)step->seqs[r].n_rows;
        session->n_flying += (size_t)step->seqs[r].n_rows;
    }
}

// As if it had not been submitted. A state that was written in part is lost.
static void turn_back(const frit_engine *engine, const frit_step *step, frit_status status)
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
        for (int32_t k = 0; k < session->pick.n; k++)
            session->pick.requests[k].n_submitted = session->pick.requests[k].n_run;
        if (engine->kv.state_bytes > 0 && session->failure.status == FRIT_OK) frit_session_fail(session, status);
    }
}

// ------------------------------------------------------------------------------- landing

static void note_failure(frit_flight *flight, frit_status status)
{
    flight->status = status;
    if (status != FRIT_OK) frit_failure_get(&flight->failure);
}

static frit_status tell(const frit_flight *flight)
{
    if (flight->status != FRIT_OK) frit_failure_set(&flight->failure);
    return flight->status;
}

// All that are in flight end with this failure.
static void turn_all_back(frit_engine *engine, frit_status status)
{
    frit_flight *first = flight_of(engine, engine->flights.n_completed + 1);
    note_failure(first, status);
    while (engine->flights.n_completed < engine->flights.n_submitted) {
        frit_flight *flight = flight_of(engine, ++engine->flights.n_completed);
        if (flight != first) frit_step_wait(flight);   // it reads and writes memory until then
        frit_failure_set(&first->failure);
        note_failure(flight, status);
        turn_back(engine, &flight->step, status);
    }
    tell(first);
}

frit_status frit_flight_wait(frit_engine *engine)
{
    if (engine->flights.n_completed == engine->flights.n_submitted) return FRIT_OK;
    frit_flight *flight = flight_of(engine, engine->flights.n_completed + 1);
    const bool is_old = flight->is_ahead && frit_step_poll(flight);
    const frit_status status = frit_step_wait(flight);
    if (status != FRIT_OK) {
        turn_all_back(engine, status);
        return status;
    }
    engine->flights.n_completed++;
    const uint64_t now = frit_time_ns();
    const uint64_t start =
        flight->start_ns > engine->flights.completed_ns ? flight->start_ns : engine->flights.completed_ns;
    if (!is_old) frit_schedule_measure(engine, &flight->step, now - start);
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

void frit_flight_drop_all(frit_engine *engine)
{
    for (; engine->flights.n_completed < engine->flights.n_submitted; engine->flights.n_completed++)
        frit_step_wait(flight_of(engine, engine->flights.n_completed + 1));
}

// ------------------------------------------------------------------------------- the interface

// Whether its results must be handed out before the device runs anything else.
static bool keeps_others_waiting(const frit_engine *engine)
{
    const frit_flight *last = &engine->flights.ring[engine->flights.n_submitted % FRIT_MAX_FLIGHTS];
    return engine->flights.n_completed < engine->flights.n_submitted && last->output.wants_rows;
}

static frit_status start(frit_engine *engine, frit_flight *flight)
{
    flight->number = 0;
    flight->is_ahead = false;
    flight->start_ns = frit_time_ns();
    engine->in_step = true;
    const frit_status status = frit_step_submit(engine, flight);
    engine->in_step = false;
    FRIT_TRY(status);
    take_off(&flight->step);
    engine->drafts.n_queued = 0;
    engine->drafts.n_expected = 0;
    flight->status = FRIT_OK;
    flight->number = ++engine->flights.n_submitted;
    return FRIT_OK;
}

frit_status frit_engine_submit(frit_engine *engine, uint64_t *step, int32_t *n_rows)
{
    FRIT_REQUIRE(engine);
    if (step) *step = 0;
    if (n_rows) *n_rows = 0;
    if (engine->in_step) return frit_fail(FRIT_E_INVALID, "a step cannot be started from within a row function");
    frit_ahead_cancel(engine);
    if (keeps_others_waiting(engine)) FRIT_TRY(frit_flight_wait_all(engine));
    if (engine->flights.n_submitted - engine->flights.n_completed == FRIT_MAX_FLIGHTS)
        FRIT_TRY(frit_flight_wait(engine));
    frit_flight *flight = flight_of(engine, engine->flights.n_submitted + 1);
    engine->step = &flight->step;
    engine->step->prefill = flight_of(engine, engine->flights.n_submitted)->step.prefill;   // kinds of steps take turns
    FRIT_TRY(frit_step_reserve_picks(engine));
    frit_schedule(engine);
    if (flight->step.n_rows == 0 && engine->flights.n_completed < engine->flights.n_submitted &&
        frit_schedule_waiting(engine) > 0) {
        FRIT_TRY(frit_flight_wait_all(engine));   // others may have what these wait for
        frit_schedule(engine);
    }
    if (flight->step.n_rows == 0) return frit_schedule_check(engine);
    FRIT_TRY(start(engine, flight));
    if (step) *step = flight->number;
    if (n_rows) *n_rows = flight->step.n_rows;
    return FRIT_OK;
}

// FRIT_E_INVALID for a step that was not submitted; FRIT_OK for one of which nothing is known any more.
static frit_status status_of(frit_engine *engine, uint64_t step)
{
    const frit_flight *flight = flight_of(engine, step);
    return flight->number == step ? tell(flight) : FRIT_OK;
}

static frit_status check(const frit_engine *engine, uint64_t step)
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
    FRIT_TRY(check(engine, step));
    while (engine->flights.n_completed < step) {
        if (!frit_step_poll(flight_of(engine, engine->flights.n_completed + 1))) return FRIT_OK;
        if (frit_flight_wait(engine) != FRIT_OK) break;
    }
    *done = true;
    return status_of(engine, step);
}

frit_status frit_engine_wait(frit_engine *engine, uint64_t step)
{
    FRIT_REQUIRE(engine);
    FRIT_TRY(check(engine, step));
    while (engine->flights.n_completed < step)
        if (frit_flight_wait(engine) != FRIT_OK) break;   // of this one or one before: both have it then
    return status_of(engine, step);
}

frit_status frit_engine_step(frit_engine *engine, int32_t *n_rows)
{
    FRIT_REQUIRE(engine);
    uint64_t step;
    if (n_rows) *n_rows = 0;
    if (engine->in_step) return frit_fail(FRIT_E_INVALID, "a step cannot be started from within a row function");
    frit_ahead_cancel(engine);
    FRIT_TRY(frit_flight_wait_all(engine));
    int32_t n;
    FRIT_TRY(frit_engine_submit(engine, &step, &n));
    if (step > 0) FRIT_TRY(frit_engine_wait(engine, step));
    if (n_rows) *n_rows = n;
    return FRIT_OK;
}
