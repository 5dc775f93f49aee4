// SPDX-License-Identifier: MIT
// Writes the rows that sessions were given as sequences of the step's batch.
#include "engine/engine.h"

static const frit_pick_request *last_request(const frit_session *session)
{
    return session->pick.n > 0 ? &session->pick.requests[session->pick.n - 1] : NULL;
}

// The request whose drafts need a snapshot: a recurrent state that has seen drafts cannot forget them. NULL: none.
static const frit_pick_request *request_with_snapshot(const frit_session *session)
{
    const frit_pick_request *request = last_request(session);
    return request && request->n > 1 && session->engine->kv.state_bytes > 0 ? request : NULL;
}

// Takes the snapshot that falls among the sequence's rows, if one is planned. Drops snapshots that a failed step
// left.
static void lay_out_snapshot(frit_engine *engine, frit_session *session, frit_seq *seq)
{
    const frit_pick_request *request = request_with_snapshot(session);
    const size_t at = request ? request->at + 1 : session->snapshot_at;
    if (at <= session->n_done || at > session->n_done + (size_t)session->step.n_rows) return;
    frit_kv_drop_snapshots(&engine->kv, &session->map, (int32_t)session->n_done);
    const frit_kv_snapshot *snapshot = frit_kv_add_snapshot(&engine->kv, &session->map, (int32_t)at, request != NULL);
    if (!snapshot || snapshot->state == 0) return;
    seq->n_copied = (int32_t)(at - session->n_done);
    seq->copy_state = snapshot->state - 1;
}

// Copies the pick requested after token i to the step's lists, for the output row that is laid out next.
static void lay_out_pick(frit_step *step, frit_session *session, size_t i)
{
    frit_pick_request *request = frit_session_find_pick(session, i);
    if (!request) return;
    request->row = step->n_outs;
    if (request->late == FRIT_PICK_OPEN) return;   // picked after the step
    frit_pick *pick = &step->picks[step->n_picks];
    *pick = frit_pick_append(&step->lists, &request->lists, &request->picks[i - request->at]);
    pick->row = step->n_outs;
    frit_pick_count *unknown = frit_pick_unknown(&step->lists, pick);
    if (unknown) unknown->token = ~request[-1].index;   // the session has requested it before
    request->index = step->n_picks++;                   // n_submitted counts it when the step is submitted
}

// Token i, or ~index of the pick that gives it.
static int32_t token_at(const frit_session *session, size_t i)
{
    if (session->tokens[i] >= 0) return session->tokens[i];
    return ~frit_session_find_pick(session, i - 1)->index;
}

// True if the session's rows are forced tokens, one token, and drafts that a pick verifies.
static bool is_verified(const frit_session *session)
{
    const frit_pick_request *request = last_request(session);
    const size_t n_forced = request ? request->at - session->n_done : 0;
    return request && n_forced <= (size_t)session->pick.n_forced &&
           (size_t)session->step.n_rows == n_forced + (size_t)request->n;
}

static void widen_plan_class(frit_step *step, const frit_session *session)
{
    if (!session->adapters.scales) return;
    if (step->adapted.ranks < session->adapters.plan_class.ranks)
        step->adapted.ranks = session->adapters.plan_class.ranks;
    step->adapted.steers = step->adapted.steers || session->adapters.plan_class.steers;
}

static frit_row_class class_of(const frit_session *session)
{
    if (session->n_done < session->prompt.n_long) return FRIT_ROWS_LONG_PREFILL;
    return session->step.prefill || session->engine->rows.only_prefill ? FRIT_ROWS_PREFILL : FRIT_ROWS_DECODE;
}

static frit_row_class class_of_source(const frit_session *session)
{
    const frit_row_rules *rules = &session->engine->rows;
    if (session->step.n_rows >= rules->least[FRIT_ROWS_LONG_PREFILL]) return FRIT_ROWS_LONG_PREFILL;
    return session->engine->step->prefill ? FRIT_ROWS_PREFILL : FRIT_ROWS_DECODE;
}

// Writes the session's rows as one sequence of the batch.
static void lay_out_rows(frit_engine *engine, frit_session *session)
{
    frit_step *step = engine->step;
    int32_t row = step->n_rows;
    step->seqs[step->n_seqs] = (frit_seq){.first_row = row,
                                          .n_rows = session->step.n_rows,
                                          .n_past = (int32_t)session->n_done,
                                          .state = session->map.state - 1,
                                          .n_source = (int32_t)session->source.n,
                                          .row_class = class_of(session)};
    lay_out_snapshot(engine, session, &step->seqs[step->n_seqs]);
    widen_plan_class(step, session);
    step->keeps_hidden = step->keeps_hidden || session->hidden;
    step->decodes = step->decodes && (session->step.n_rows <= 1 + session->pick.n_forced || is_verified(session));
    step->owners[step->n_seqs++] = session;
    for (size_t i = session->n_done; i < session->n_done + (size_t)session->step.n_rows; i++, row++) {
        step->tokens[row] = token_at(session, i);
        step->positions[row] = frit_session_rotary(session, i);
        if (step->given) frit_hidden_copy(session, i, step->given + (size_t)row * (size_t)engine->hp.n_embd);
        if (frit_session_result(session, i) == FRIT_RESULT_NONE) continue;
        lay_out_pick(step, session, i);
        step->out_rows[step->n_outs++] = row;
    }
    step->n_rows = row;
}

// Writes the session's source as one sequence of the batch.
static void lay_out_source(const frit_engine *engine, frit_session *session)
{
    frit_step *step = engine->step;
    int32_t row = step->n_rows;
    step->seqs[step->n_seqs] = (frit_seq){
        .first_row = row, .n_rows = session->step.n_rows, .state = -1, .row_class = class_of_source(session)};
    widen_plan_class(step, session);
    step->decodes = false;
    step->owners[step->n_seqs++] = session;
    for (int32_t i = 0; i < session->step.n_rows; i++, row++) {
        step->tokens[row] = session->source.tokens[i];
        step->positions[row] = i;
        if (session->source.options.output == FRIT_OUTPUT_EMBEDDINGS) step->out_rows[step->n_outs++] = row;
    }
    step->n_rows = row;
}

static void lay_out_session(frit_engine *engine, frit_session *session)
{
    if (session->step.n_rows == 0) return;
    if (engine->step->encodes)
        lay_out_source(engine, session);
    else
        lay_out_rows(engine, session);
}

// Lays out the sessions with single rows, or those with more.
static void lay_out_by_rows(frit_engine *engine, bool single)
{
    for (frit_session *s = engine->sessions; s; s = s->next)
        if ((s->step.n_rows == 1) == single) lay_out_session(engine, s);
}

// Lays out decode rows, then prefill rows.
static void lay_out_by_class(frit_engine *engine)
{
    frit_step *step = engine->step;
    step->prefill = false;
    for (frit_session *s = engine->sessions; s; s = s->next) {
        if (!s->step.prefill) lay_out_session(engine, s);
        step->prefill = step->prefill || (s->step.prefill && s->step.n_rows > 0);
    }
    step->n_decode_rows = step->prefill ? step->n_rows : 0;
    step->n_decode_outs = step->prefill ? step->n_outs : 0;
    for (frit_session *s = engine->sessions; s; s = s->next)
        if (s->step.prefill) lay_out_session(engine, s);
}

void frit_schedule_lay_out(frit_engine *engine)
{
    frit_step *step = engine->step;
    step->n_rows = step->n_outs = step->n_picks = 0;
    step->lists.n_vocab = engine->hp.n_vocab;
    frit_pick_lists_clear(&step->lists);
    step->adapted = (frit_adapter_class){0};
    step->keeps_hidden = false;
    step->n_decode_rows = step->n_decode_outs = 0;
    if (engine->rows.mixes_classes && !step->encodes) {
        lay_out_by_class(engine);
    } else {
        lay_out_by_rows(engine, true);   // devices may have another kernel for them, from the first row on
        lay_out_by_rows(engine, false);
    }
    frit_soft_lay_out(engine);
}
