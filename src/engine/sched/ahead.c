// SPDX-License-Identifier: MIT
// Steps that run before the host knows the token before them (ahead.h).
//
//     tokens  [ known ........... | t | ? ]
//                  in flight, picked ^   ^ picked by the step that is submitted now
#include "engine/sched/ahead.h"
#include "engine/sched/late.h"

#include "engine/spec/speculate.h"

// ------------------------------------------------------------------------------- when

bool frit_ahead_has_queue(const frit_engine *engine)
{
    const frit_shape_class *plan = engine->flights.ring[engine->flights.n_submitted % FRIT_MAX_FLIGHTS].plan;
    return plan && plan->segments.n == engine->schedule.n_stages && frit_flight_runs_picks(plan) &&
           plan->planned[0].device->backend->queues;
}

// True if the device that embeds a token is the one that picks it: the host need not know the token.
static bool has_tokens(const frit_engine *engine)
{
    return frit_ahead_has_queue(engine) && engine->schedule.n_stages == 1;
}

static bool is_alone(const frit_session *session)
{
    for (const frit_session *s = session->engine->sessions; s; s = s->next)
        if (s != session && frit_session_pending(s) > 0) return false;
    return true;
}

// True if the sampler's picks do not depend on tokens that are not known yet, apart from their counts.
static bool is_independent(const frit_sampler *sampler)
{
    return sampler->is_pick && !sampler->constraint && sampler->forced_left.len == 0;
}

// True if the session's next step may be submitted before its token is known. Its pick may be late if may_be_late.
static bool may_continue(const frit_session *session, const frit_sampler *sampler, bool may_be_late)
{
    const frit_engine *engine = session->engine;
    const bool may_be_picked =
        is_independent(sampler) || (may_be_late && sampler->is_pick && frit_late_is_possible(session));
    return may_be_picked && has_tokens(engine) && !engine->hp.is_bidirectional && !engine->observer &&
           !session->hidden && !session->mtp.of && session->results.n_pushes == 0 &&
           session->n_tokens + 1 < (size_t)engine->n_ctx;
}

static bool may_run(frit_session *session, const frit_sampler *sampler)
{
    return may_continue(session, sampler, false) && session->engine->kv.state_bytes == 0 && is_alone(session) &&
           !frit_speculation_waits(session);
}

// True if the sampler would request the pick that is in flight: it may differ from the sampler of the call before.
static bool requests_same_pick(frit_session *session, frit_sampler *sampler)
{
    const frit_pick_request *request = &session->pick.requests[0];
    frit_pick_request *now = &session->pick.requests[1];   // only its memory is used
    const uint64_t position = sampler->position;
    frit_pick pick;
    frit_pick_lists_clear(&now->lists);
    now->lists.n_vocab = session->engine->hp.n_vocab;
    frit_sampler_set_position(sampler, request->position);
    const frit_status status = frit_sampler_add_pick(sampler, &now->lists, &pick);
    frit_sampler_set_position(sampler, position);
    const size_t n_bytes = (size_t)now->lists.n_biases * sizeof *now->lists.biases;
    if (status != FRIT_OK) return false;
    if (!frit_sampler_has_counts(sampler, &request->lists, &request->picks[0], pick.n_counts)) return false;
    pick.n_counts = request->picks[0].n_counts;   // some may be 0
    return memcmp(&pick, &request->picks[0], sizeof pick) == 0 &&
           (n_bytes == 0 || memcmp(now->lists.biases, request->lists.biases, n_bytes) == 0);
}

bool frit_ahead_continues(frit_session *session, frit_sampler *sampler)
{
    const frit_engine *engine = session->engine;
    return engine && !engine->in_step && engine->ahead == session && session->failure.status == FRIT_OK &&
           session->pick.n == 1 && is_independent(sampler) && sampler->n_vocab == engine->hp.n_vocab &&
           requests_same_pick(session, sampler);
}

// ------------------------------------------------------------------------------- running

// Submits a step of the queued tokens, with a pick after the last one. False if nothing was submitted.
static bool submit_step(frit_session *session, frit_sampler *sampler)
{
    frit_engine *engine = session->engine;
    uint64_t step = 0;
    if (frit_session_pick(session, sampler, NULL) != FRIT_OK) return false;
    if (frit_engine_submit(engine, &step, NULL) == FRIT_OK && step > 0) {
        engine->flights.ring[step % FRIT_MAX_FLIGHTS].is_ahead = true;
        return true;
    }
    if (session->pick.n > 0) session->pick.n--;
    return false;
}

void frit_ahead_begin(frit_session *session, frit_sampler *sampler)
{
    const bool is_ready = session->pick.n == 0 && session->n_flying == 0 && session->results.needs_logits &&
                          session->n_tokens == session->n_done + 1;
    if (is_ready && may_run(session, sampler) && submit_step(session, sampler)) session->engine->ahead = session;
}

// Undoes frit_session_push_picked, after which no pick was requested and no step submitted.
static void undo_push(frit_session *session)
{
    session->n_tokens--;
    session->pick.requests[session->pick.n - 1].is_pushed = false;
}

static bool submit_next(frit_session *session, frit_sampler *sampler)
{
    if (frit_session_push_picked(session) != FRIT_OK) return false;
    if (submit_step(session, sampler)) return true;
    undo_push(session);
    return false;
}

// Forgets the last token, which is not needed, whether or not its step failed. The session's status stays.
static void forget_last(frit_session *session)
{
    const frit_status status = session->failure.status;
    frit_session_truncate(session, session->n_tokens - 1);
    session->failure.status = status;
}

static frit_status wait_for_pick(frit_session *session)
{
    frit_engine *engine = session->engine;
    const frit_pick_request *request = &session->pick.requests[0];
    while (session->pick.n > 0 && request->n_run < request->n &&
           engine->flights.n_completed < engine->flights.n_submitted)
        FRIT_TRY(frit_flight_wait(engine));
    return frit_session_status(session);
}

frit_status frit_ahead_next(frit_session *session, frit_sampler *sampler, frit_token *token)
{
    frit_engine *engine = session->engine;
    frit_picked picked;
    engine->ahead = NULL;
    const bool continues = may_run(session, sampler) && submit_next(session, sampler);
    frit_status status = wait_for_pick(session);
    if (status == FRIT_OK) status = frit_session_picked(session, &picked);
    if (status == FRIT_OK && !continues) status = frit_session_push(session, &picked.token, 1, NULL);
    if (status != FRIT_OK) {
        if (continues) forget_last(session);
        frit_session_clear_picks(session);
        return status;
    }
    *token = picked.token;
    engine->ahead = continues ? session : NULL;
    FRIT_TRY(frit_sampler_set_position(sampler, session->n_tokens + session->shift.n_dropped - 1));
    return frit_sampler_accept(sampler, picked.token);
}

// ------------------------------------------------------------------------------- cancelling

void frit_ahead_cancel(frit_engine *engine)
{
    frit_session *session = engine->ahead;
    if (!session) return;
    engine->ahead = NULL;
    frit_flight_wait_all(engine);   // if the step fails, the token is queued again
    if (session->failure.status != FRIT_OK) return;
    const frit_token last = session->tokens[session->n_tokens - 1];
    if (frit_session_truncate(session, session->n_tokens - 1) == FRIT_OK) frit_session_push(session, &last, 1, NULL);
}

// ------------------------------------------------------------------------------- several sessions

// True if drafts would gain time: of earlier text, or of text that a grammar forces. A session with drafts skips the
// step that is in flight, and beside many other sessions it loses more than drafts gain.
static bool drafts_gain(frit_session *session, const frit_sampler *sampler)
{
    enum { MOST_SESSIONS = 4 };   // in a step
    const frit_engine *engine = session->engine;
    const frit_step *last = &engine->flights.ring[engine->flights.n_submitted % FRIT_MAX_FLIGHTS].step;
    return last->n_seqs <= MOST_SESSIONS &&
           (frit_speculation_is_forced(session, sampler) || frit_speculation_waits(session));
}

// True if the session's last token is in flight, with the only pick that waits.
static bool is_last_in_flight(const frit_session *session)
{
    const frit_pick_request *request = &session->pick.requests[0];
    return session->pick.n == 1 && request->n == 1 && request->n_submitted == 1 && request->n_run == 0 &&
           request->at + 1 == session->n_tokens && session->n_done == session->n_tokens;
}

frit_status frit_session_pick_ahead(frit_session *session, frit_sampler *sampler, const frit_pick_options *options,
                                    bool *requested)
{
    FRIT_REQUIRE(requested);
    *requested = false;
    FRIT_REQUIRE(session);
    FRIT_REQUIRE(sampler);
    FRIT_REQUIRE_UNUSED(options);
    FRIT_TRY(frit_session_check_usable(session));
    FRIT_TRY(frit_session_status(session));
    if (session->pick.n == 1) FRIT_TRY(frit_session_complete_pick(session, sampler));
    const bool has_drafts = options && options->n_drafts > 0, may_be_late = options && options->late;
    if (has_drafts || !is_last_in_flight(session) || !may_continue(session, sampler, may_be_late) ||
        drafts_gain(session, sampler))
        return FRIT_OK;
    FRIT_TRY(frit_session_push_picked(session));
    const frit_status status = frit_session_pick(session, sampler, options);
    if (status != FRIT_OK) undo_push(session);
    *requested = status == FRIT_OK;
    return status;
}

// True if most sessions of the step in flight wait for its tokens, and no more sessions than these have something to
// run. A step of few sessions takes as long as one of many, so the step after the tokens is the better one. Where
// devices work one after the other, a step of other sessions keeps the first one busy.
static bool should_wait_first(const frit_engine *engine)
{
    int32_t n_waiting = 0, n_ready = 0;
    if (engine->schedule.n_stages > 1) return false;
    for (const frit_session *s = engine->sessions; s; s = s->next) {
        const bool is_ready = s->n_tokens > s->n_done || s->source.waits;
        n_ready += is_ready;
        n_waiting += !is_ready && s->n_flying > 0 && s->pick.n > 0;
    }
    return n_waiting > n_ready;
}

frit_status frit_engine_advance(frit_engine *engine, int32_t *n_rows)
{
    FRIT_REQUIRE(engine);
    uint64_t step = 0;
    int32_t n = 0;
    if (n_rows) *n_rows = 0;
    if (engine->in_step) return frit_fail(FRIT_E_INVALID, "a step cannot be started from within a row function");
    frit_ahead_cancel(engine);
    const bool is_busy = engine->flights.n_submitted > engine->flights.n_completed;
    if (!is_busy || !should_wait_first(engine)) FRIT_TRY(frit_flight_submit(engine, true, false, &step, &n));
    if (n_rows) *n_rows = n;
    const bool is_full = engine->flights.n_submitted - engine->flights.n_completed >= frit_flight_most(engine);
    if (step > 0 && !is_full && frit_ahead_has_queue(engine)) return FRIT_OK;   // the next call submits another step
    return frit_flight_wait(engine);
}
