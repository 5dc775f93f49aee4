// SPDX-License-Identifier: MIT
// Late picks (late.h).
#include "engine/sched/late.h"
#include "engine/sched/ahead.h"

#include "base/grow.h"

#include <stdlib.h>

// ------------------------------------------------------------------------------- when

bool frit_late_is_needed(const frit_session *session, const frit_sampler *sampler)
{
    const bool is_known = session->n_tokens > 0 && session->tokens[session->n_tokens - 1] >= 0;
    return !is_known && (sampler->constraint || sampler->forced_left.len > 0);
}

static frit_flight *last_flight(frit_engine *engine)
{
    return &engine->flights.ring[engine->flights.n_submitted % FRIT_MAX_FLIGHTS];
}

static bool picks_late(const frit_flight *flight)
{
    return flight->plan->segments.n == 1 && flight->plan->planned[0].device->backend->pick;
}

bool frit_late_is_possible(const frit_session *session)
{
    frit_engine *engine = session->engine;
    return frit_ahead_has_queue(engine) && picks_late(last_flight(engine)) && engine->kv.state_bytes == 0;
}

// ------------------------------------------------------------------------------- states

// Queues the request's row again, with the pick. No step has rows of the session.
static void run_again(frit_session *session, frit_pick_request *request)
{
    frit_session_run_from(session, request->at);
    request->n_submitted = 0;
    request->late = FRIT_PICK_ON_TIME;
}

frit_status frit_late_made(frit_session *session, frit_pick_request *request)
{
    if (request->late == FRIT_PICK_LOST) frit_flight_wait_session(session);   // a failed step queues the row again
    if (request->late == FRIT_PICK_LOST)
        run_again(session, request);
    else
        request->late = request->n_submitted > 0 ? FRIT_PICK_MADE : FRIT_PICK_ON_TIME;
    return frit_session_status(session);
}

void frit_late_lose(frit_engine *engine)
{
    for (frit_session *s = engine->sessions; s; s = s->next)
        for (int32_t k = 0; k < s->pick.n; k++) {
            frit_pick_request *request = &s->pick.requests[k];
            if (request->late == FRIT_PICK_OPEN && request->n_submitted > 0) request->late = FRIT_PICK_LOST;
        }
}

void frit_late_requeue(frit_pick_request *request)
{
    request->n_submitted = request->n_run;
    if (request->late == FRIT_PICK_MADE) request->late = FRIT_PICK_ON_TIME;
    if (request->late == FRIT_PICK_LOST) request->late = FRIT_PICK_OPEN;
}

// ------------------------------------------------------------------------------- submitting

// Called for each request of a late pick that has been made.
typedef void (*request_fn)(void *ctx, frit_session *session, frit_pick_request *request);

static void for_each_made(const frit_engine *engine, request_fn call, void *ctx)
{
    for (frit_session *s = engine->sessions; s; s = s->next)
        for (int32_t k = 0; k < s->pick.n; k++)
            if (s->pick.requests[k].late == FRIT_PICK_MADE) call(ctx, s, &s->pick.requests[k]);
}

typedef struct late_room {
    size_t n;
    frit_pick_room lists;
} late_room;

static void add_room(void *ctx, frit_session *session, frit_pick_request *request)
{
    late_room *room = ctx;
    const frit_pick_lists *lists = &request->lists;
    (void)session;
    room->n++;
    room->lists.n_biases += lists->n_biases;
    room->lists.n_counts += lists->n_counts;
    room->lists.n_masks += lists->n_masks;
    room->lists.n_tops += lists->n_tops;
}

static frit_status reserve(frit_late_picks *late, const late_room *room)
{
    static const char what[] = "the late picks of a step";
    FRIT_TRY(FRIT_GROW(late->picks, late->picks_capacity, room->n, what));
    FRIT_TRY(FRIT_GROW(late->picked, late->picked_capacity, room->n, what));
    FRIT_TRY(FRIT_GROW(late->owners, late->owners_capacity, room->n, what));
    FRIT_TRY(FRIT_GROW(late->at, late->at_capacity, room->n, what));
    return frit_pick_lists_reserve(&late->lists, &room->lists);
}

static void add_pick(void *ctx, frit_session *session, frit_pick_request *request)
{
    frit_flight *flight = ctx;
    frit_late_picks *late = &flight->late;
    late->picks[late->n] = frit_pick_append(&late->lists, &request->lists, &request->picks[0]);
    late->picks[late->n].row = request->row;
    late->owners[late->n] = session;
    late->at[late->n] = request->at;
    request->index = flight->step.n_picks + late->n++;
}

static void mark_submitted(void *ctx, frit_session *session, frit_pick_request *request)
{
    (void)ctx, (void)session;
    request->late = FRIT_PICK_ON_TIME;
}

static void run_one_again(void *ctx, frit_session *session, frit_pick_request *request)
{
    (void)ctx;
    run_again(session, request);
}

static frit_status submit(frit_engine *engine, frit_flight *flight, const late_room *room)
{
    const frit_planned_segment *planned = &flight->plan->planned[0];
    const frit_backend *backend = planned->device->backend;
    frit_late_picks *late = &flight->late;
    late->n = 0;
    late->lists.n_vocab = engine->hp.n_vocab;
    frit_pick_lists_clear(&late->lists);
    FRIT_TRY(reserve(late, room));
    for_each_made(engine, add_pick, flight);
    late->output = (frit_step_output){.taken = flight->step.taken, .picked = late->picked, .tops = late->lists.tops};
    const frit_batch batch = {.picks = late->picks, .n_picks = late->n, .lists = late->lists};
    frit_ticket ticket;
    const frit_status status = backend->pick(planned->device, planned->exec, &batch, &late->output, &ticket);
    if (status != FRIT_OK) {
        late->n = 0;
        return status;
    }
    flight->tickets[flight->plan->segments.list[0].device] = ticket;
    for_each_made(engine, mark_submitted, NULL);
    return FRIT_OK;
}

// The step has been delivered, so no other call waits for its late picks.
static frit_status finish(const frit_engine *engine, frit_flight *flight)
{
    const frit_status status = frit_step_wait(engine, flight);
    if (status == FRIT_OK) {
        frit_step_deliver_late(flight);
        return FRIT_OK;
    }
    for (int32_t i = 0; i < flight->late.n; i++) {
        frit_session *session = flight->late.owners[i];
        frit_pick_request *request = frit_session_find_pick(session, flight->late.at[i]);
        if (request) run_again(session, request);
    }
    flight->late.n = 0;
    return status;
}

frit_status frit_late_submit(frit_engine *engine)
{
    frit_flight *flight = last_flight(engine);
    late_room room = {0};
    for_each_made(engine, add_room, &room);
    if (room.n == 0) return FRIT_OK;
    if (flight->n_plans_after != engine->plans.n_made) {   // the logits are gone, and no step is in flight
        for_each_made(engine, run_one_again, NULL);
        return FRIT_OK;
    }
    FRIT_TRY(submit(engine, flight, &room));
    return engine->flights.n_completed == engine->flights.n_submitted ? finish(engine, flight) : FRIT_OK;
}

void frit_late_free(frit_late_picks *late)
{
    free(late->picks);
    free(late->picked);
    free(late->owners);
    free(late->at);
    frit_pick_lists_free(&late->lists);
    *late = (frit_late_picks){0};
}
