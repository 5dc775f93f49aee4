// SPDX-License-Identifier: MIT
// Which rows run in the next step.
//
// 1. One row for every session that had something to run and got no row in the last step: no session starves.
// 2. Single queued tokens and the drafts that follow them, the decode rows: they are what people wait for.
// 3. Prompts, by the sessions' priorities and weights (prompt_share.c), with what is left of n_batch rows.
//
// Where many rows run by other kernels, which round differently, sessions with many queued tokens run by these, and all
// others by those for few rows. A prompt is cut so that its last part has many rows too. So what a session computes
// depends on its own queue alone, whatever other sessions run. Parts of a prompt are about equally long, so that none
// of those that a stream waits for is much longer than the others. Where devices can, a step has rows of both kinds:
// those of prompts last. Otherwise steps are of two kinds that take turns.
//
// Where every token sees all others, a session's rows run in one step, and sessions share it as long as they fit whole.
//
// While some session generates, a step has few prompt rows, so that no session waits long for the next token: as many
// as take 2.75 times as long as a step without prompts, by what steps took before. One in a hundred steps takes a
// quarter longer than most, and the wait is to stay within five times the one without prompts. Where kinds of rows are
// mixed, the wait is the step, which is to take three and a half times as long.
//
// Pages are taken here, for the rows that are scheduled. A prompt begins only when the cache has pages for all of it;
// a session that finds none waits until others give pages back. Where all wait, of those with the lowest priority the
// one that has run least gives its pages back, and runs again later.
//
// Sessions form a queue; a session that had rows goes to its end, so that equal ones take turns. A step gives either
// logits or hidden states: the first row with a result decides, and rows of the other kind wait.
#include "engine/engine.h"
#include "engine/sched/prompt_share.h"
#include "engine/sched/step_cost.h"

// Up to here the session's tokens are known, or picks of the step before this one.
static size_t end_of_known(const frit_session *session)
{
    const size_t n = session->n_tokens, first = n > FRIT_MAX_PICK_REQUESTS ? n - FRIT_MAX_PICK_REQUESTS : 0;
    for (size_t i = first > session->n_done ? first : session->n_done; i < n; i++) {
        const frit_pick_request *request = session->tokens[i] < 0 ? frit_session_find_pick(session, i - 1) : NULL;
        if (request && request->n_submitted == 0) return i;
    }
    return n;
}

static size_t count_ready(const frit_session *session)
{
    if (session->source.waits || session->prefix.is_reading || session->failure.status != FRIT_OK)
        return 0;   // it looks at the source
    return end_of_known(session) - session->n_done;
}

// Of tokens that could run in the step that is being made, those that it has not.
static size_t pending(const frit_session *session)
{
    const size_t n_taken = (size_t)session->step.n_rows;   // of its source, where that runs
    return session->failure.status == FRIT_OK && session->step.n_ready > n_taken ? session->step.n_ready - n_taken : 0;
}

enum { LEAST_BUDGET = 16, FIRST_BUDGET = 64, TILE = 16 };
static const double gap = 2.75, mixed_gap = 3.5;

int32_t frit_schedule_budget(const frit_step_cost *pace, int32_t least)
{
    if (pace->decode_ns <= 0 || pace->prompt_row_ns <= 0) return FIRST_BUDGET > least ? FIRST_BUDGET : least;
    const double n = gap * pace->decode_ns / pace->prompt_row_ns;
    return n < least ? least : n < INT32_MAX ? (int32_t)n : INT32_MAX;
}

// What a step of such rows takes however few they are, in rows: weights become tiles once for all of them.
static int32_t fixed_rows(int32_t least)
{
    return 2 * least;
}

int32_t frit_schedule_mixed_budget(const frit_step_cost *pace, int32_t least)
{
    if (pace->decode_ns <= 0 || pace->mixed_row_ns <= 0) return FIRST_BUDGET > least ? FIRST_BUDGET : least;
    const double n = mixed_gap * pace->decode_ns / pace->mixed_row_ns - fixed_rows(least);
    if (n < least) return least;
    return n < INT32_MAX - TILE ? ((int32_t)n + TILE / 2) / TILE * TILE : INT32_MAX;
}

static void average(double *of, double now)
{
    enum { MEMORY = 8 };   // steps that it remembers
    *of += *of > 0 ? (now - *of) / MEMORY : now;
}

void frit_schedule_measure(frit_engine *engine, const frit_step *step, uint64_t step_ns)
{
    frit_step_cost *pace = &engine->cost;
    const int32_t least = engine->rows.least[FRIT_ROWS_PREFILL];
    frit_step_cost_measure(engine, step, step_ns);
    if (step->n_seqs == step->n_rows)
        average(&pace->decode_ns, (double)step_ns);
    else if (step->n_decode_rows > 0)
        average(&pace->mixed_row_ns, (double)step_ns / (step->n_rows - step->n_decode_rows + fixed_rows(least)));
    else if (step->n_rows >= LEAST_BUDGET)   // not too few to say anything
        average(&pace->prompt_row_ns, (double)step_ns / step->n_rows);
}

// What waits is one token, after those that a grammar forced, or that and drafts that a pick verifies.
static bool is_decode(const frit_session *session)
{
    const frit_pick_request *request = session->pick.n > 0 ? &session->pick.requests[session->pick.n - 1] : NULL;
    const size_t n = pending(session), n_forced = (size_t)session->pick.n_forced;
    return n > 0 && (n <= 1 + n_forced || (request && request->n > 1 && request->at - session->n_done <= n_forced));
}

static bool generates(const frit_session *session)
{
    return session->n_done > 0 && is_decode(session);
}

static bool is_prompt(const frit_session *session)
{
    return pending(session) > 0 && (session->engine->hp.is_bidirectional || !is_decode(session));
}

// Rows of prompts that the next step may have.
static int32_t prompt_room(const frit_engine *engine)
{
    // Twice the least part of a prompt: it takes little longer than that, and gives prompts twice the rows. Where rows
    // are mixed, sessions that generate have no steps of their own between these, so the least part may do.
    const int32_t part = engine->rows.least[FRIT_ROWS_PREFILL], named = engine->schedule.prompt_budget;
    const int32_t least = part == INT32_MAX ? 0 : (engine->rows.mixes_classes ? 1 : 2) * part;
    if (named < 0) return engine->n_batch;
    for (const frit_session *s = engine->sessions; s; s = s->next) {
        if (!generates(s)) continue;
        if (named > 0) return named > least ? named : least;
        if (engine->rows.mixes_classes) return frit_schedule_mixed_budget(&engine->cost, least);
        return frit_schedule_budget(&engine->cost, least > 0 ? least : LEAST_BUDGET);
    }
    return engine->n_batch;
}

// How many rows more of the session find pages, of n.
static size_t fitting(const frit_engine *engine, const frit_session *session, size_t n)
{
    const int32_t n_done = (int32_t)session->n_done, n_taken = session->step.n_rows;
    if (n > pending(session)) n = pending(session);
    if (n > (size_t)engine->n_batch) n = (size_t)engine->n_batch;
    if (n_done == 0 && !frit_prefix_has_room(session)) return 0;
    const int32_t fits = frit_kv_fitting(&engine->kv, &session->map, n_done, n_taken + (int32_t)n);
    return fits > n_taken ? (size_t)(fits - n_taken) : 0;
}

// Takes up to n rows more of the session, as far as there are pages and the step has room for rows and results.
static void take(frit_engine *engine, frit_session *session, size_t n)
{
    frit_step *step = engine->step;
    const size_t room = step->n_rows < step->most_rows ? (size_t)(step->most_rows - step->n_rows) : 0;
    n = fitting(engine, session, n < room ? n : room);
    if (n == 0) return;
    const frit_status status =
        frit_kv_extend(&engine->kv, &session->map, (int32_t)session->n_done, session->step.n_rows + (int32_t)n);
    if (status != FRIT_OK) {   // the device failed
        frit_session_fail(session, status);
        return;
    }
    for (; n > 0; n--) {
        frit_result result = frit_session_result(session, session->n_done + (size_t)session->step.n_rows);
        if (result != FRIT_RESULT_NONE) {
            if (step->result != FRIT_RESULT_NONE && step->result != result) return;
            if (result == FRIT_RESULT_LOGITS && step->n_outs == engine->schedule.max_outs) return;
            step->result = result;
            step->n_outs++;
        }
        session->step.n_rows++;
        step->n_rows++;
    }
}

// Drafts that the session verifies are the rows after token request->at; a state that has seen them cannot forget them.
static const frit_pick_request *verified(const frit_session *session)
{
    const frit_pick_request *request = session->pick.n > 0 ? &session->pick.requests[session->pick.n - 1] : NULL;
    return request && request->n > 1 && session->engine->kv.state_bytes > 0 ? request : NULL;
}

// A snapshot within these rows, where the session wants one. One that a failed step left is not good.
static void lay_out_snapshot(frit_engine *engine, frit_session *session, frit_seq *seq)
{
    const frit_pick_request *request = verified(session);
    const size_t at = request ? request->at + 1 : session->snapshot_at;
    if (at <= session->n_done || at > session->n_done + (size_t)session->step.n_rows) return;
    frit_kv_drop_snapshots(&engine->kv, &session->map, (int32_t)session->n_done);
    const frit_kv_snapshot *snapshot = frit_kv_add_snapshot(&engine->kv, &session->map, (int32_t)at, request != NULL);
    if (!snapshot || snapshot->state == 0) return;
    seq->n_copied = (int32_t)(at - session->n_done);
    seq->copy_state = snapshot->state - 1;
}

// What the row's logits are wanted for, where that is a token. The pick's row is one of the output.
static void lay_out_pick(frit_step *step, frit_session *session, size_t i)
{
    frit_pick_request *request = frit_session_find_pick(session, i);
    if (!request) return;
    frit_pick *pick = &step->picks[step->n_picks];
    *pick = frit_pick_append(&step->lists, &request->lists, &request->picks[i - request->at]);
    pick->row = step->n_outs;
    request->index = step->n_picks++;   // only where the step is submitted does it count as sent
}

static int32_t token_at(const frit_session *session, size_t i)
{
    if (session->tokens[i] >= 0) return session->tokens[i];
    return ~frit_session_find_pick(session, i - 1)->index;
}

static bool is_verified(const frit_session *session)
{
    const frit_pick_request *request = session->pick.n > 0 ? &session->pick.requests[session->pick.n - 1] : NULL;
    const size_t n_forced = request ? request->at - session->n_done : 0;
    return request && n_forced <= (size_t)session->pick.n_forced &&
           (size_t)session->step.n_rows == n_forced + (size_t)request->n;
}

static void widen_adapted(frit_step *step, const frit_session *session)
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

// Writes the rows that the session has been given as one sequence of the batch.
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
    widen_adapted(step, session);
    step->keeps_hidden = step->keeps_hidden || session->hidden;
    step->decodes = step->decodes && (session->step.n_rows <= 1 + session->pick.n_forced || is_verified(session));
    step->owners[step->n_seqs++] = session;
    for (size_t i = session->n_done; i < session->n_done + (size_t)session->step.n_rows; i++, row++) {
        step->tokens[row] = token_at(session, i);
        step->positions[row] = (int32_t)i;
        if (step->given) frit_hidden_copy(session, i, step->given + (size_t)row * (size_t)engine->hp.n_embd);
        if (frit_session_result(session, i) == FRIT_RESULT_NONE) continue;
        lay_out_pick(step, session, i);
        step->out_rows[step->n_outs++] = row;
    }
    step->n_rows = row;
}

// The same of a source, all of it.
static void lay_out_source(const frit_engine *engine, frit_session *session)
{
    frit_step *step = engine->step;
    int32_t row = step->n_rows;
    step->seqs[step->n_seqs] = (frit_seq){
        .first_row = row, .n_rows = session->step.n_rows, .state = -1, .row_class = class_of_source(session)};
    widen_adapted(step, session);
    step->decodes = false;
    step->owners[step->n_seqs++] = session;
    for (int32_t i = 0; i < session->step.n_rows; i++, row++) {
        step->tokens[row] = session->source.tokens[i];
        step->positions[row] = i;
        if (session->source.options.output == FRIT_OUTPUT_EMBEDDINGS) step->out_rows[step->n_outs++] = row;
    }
    step->n_rows = row;
}

static void lay_out(frit_engine *engine, frit_session *session)
{
    if (session->step.n_rows == 0) return;
    if (engine->step->encodes)
        lay_out_source(engine, session);
    else
        lay_out_rows(engine, session);
}

// Where kinds of rows are mixed, those of sessions with few come first.
static void lay_out_all(frit_engine *engine)
{
    frit_step *step = engine->step;
    const bool mixes = engine->rows.mixes_classes && !step->encodes;
    if (mixes) step->prefill = false;
    for (frit_session *s = engine->sessions; s; s = s->next) {
        if (!mixes || !s->step.prefill) lay_out(engine, s);
        if (mixes) step->prefill = step->prefill || (s->step.prefill && s->step.n_rows > 0);
    }
    step->n_decode_rows = mixes && step->prefill ? step->n_rows : 0;
    step->n_decode_outs = mixes && step->prefill ? step->n_outs : 0;
    for (frit_session *s = engine->sessions; s && mixes; s = s->next)
        if (s->step.prefill) lay_out(engine, s);
}

// Moves the sessions with rows after those without; both keep their order.
static void rotate(frit_engine *engine)
{
    frit_session *waiting = NULL, **waiting_end = &waiting, *served = NULL, **served_end = &served;
    for (frit_session *s = engine->sessions; s; s = s->next) {
        frit_session ***end = s->step.n_rows > 0 ? &served_end : &waiting_end;
        **end = s;
        *end = &s->next;
    }
    *served_end = NULL;
    *waiting_end = served;
    engine->sessions = waiting;
}

// Whether the next step is for sessions with many queued tokens: alternating, if there are others.
static bool is_turn_of_prefill(const frit_engine *engine)
{
    bool has_prefill = false, has_decode = false;
    for (const frit_session *s = engine->sessions; s; s = s->next) {
        has_prefill = has_prefill || (pending(s) > 0 && s->step.prefill);
        has_decode = has_decode || (pending(s) > 0 && !s->step.prefill);
    }
    return has_prefill && (!has_decode || !engine->step->prefill);
}

size_t frit_schedule_part(size_t n, size_t wanted, size_t fits, size_t least)
{
    const size_t by_wish = (n + wanted - 1) / wanted, by_least = n / least;
    const size_t n_parts = by_wish < by_least ? by_wish : by_least;
    size_t part = n_parts > 0 ? (n + n_parts - 1) / n_parts : 0;
    const size_t tiles = part / TILE * TILE;   // where the others, none of them with more tiles, can have the rest
    if (tiles >= least && n - tiles <= (n_parts - 1) * (tiles + TILE)) part = tiles;
    if (part > fits) part = n - fits < least && n > least ? n - least : fits;
    return part < least || part > fits ? 0 : part;
}

// Whether the step can give all results of the session's next n rows, beside those that it gives already.
static bool suits(const frit_engine *engine, const frit_session *session, size_t n)
{
    const frit_step *step = engine->step;
    int32_t n_outs = step->n_outs;
    for (size_t i = 0; i < n && step->n_outs > 0; i++) {
        const frit_result result = frit_session_result(session, session->n_done + i);
        if (result == FRIT_RESULT_NONE) continue;
        if (result != step->result || (result == FRIT_RESULT_LOGITS && n_outs++ == engine->schedule.max_outs))
            return false;
    }
    return true;
}

// The next part of a prompt with many rows, of which the step may have `room`. False: another step could have it.
static bool take_part(frit_engine *engine, frit_session *session, int32_t room)
{
    const int32_t in_step = engine->n_batch - engine->step->n_rows, most = room < in_step ? room : in_step;
    if (most < engine->rows.least[FRIT_ROWS_PREFILL]) return false;
    const size_t n = frit_schedule_part(pending(session), (size_t)most, fitting(engine, session, (size_t)in_step),
                                        (size_t)engine->rows.least[FRIT_ROWS_PREFILL]);
    if (n == 0) return true;
    const bool has_results = suits(engine, session, n);
    if (has_results) take(engine, session, n);
    return has_results;
}

// Whether the next step may have rows of the session.
static bool is_of_step(const frit_engine *engine, const frit_session *session)
{
    return engine->rows.mixes_classes || engine->rows.only_prefill || session->step.prefill == engine->step->prefill;
}

// The same of any prompt. What it takes is no longer room.
static bool take_prompt(frit_engine *engine, frit_session *session, int32_t *room)
{
    const int32_t before = session->step.n_rows;
    bool suited = true;
    if (!is_of_step(engine, session)) return true;
    if (session->step.prefill)
        suited = take_part(engine, session, *room);
    else if (*room > 0)
        take(engine, session, (size_t)*room);
    *room -= session->step.n_rows - before;
    return suited;
}

// One row for each session that got none in the last step, and single tokens.
static void take_single(frit_engine *engine, int32_t *room)
{
    for (frit_session *s = engine->sessions; s; s = s->next) {
        const bool is_prompt = !is_decode(s);
        if (!s->step.waited || s->step.prefill || s->step.n_rows > 0 || !is_of_step(engine, s)) continue;
        take(engine, s, 1);
        if (is_prompt) *room -= s->step.n_rows;
    }
    for (frit_session *s = engine->sessions; s; s = s->next)
        if (s->step.n_rows == 0 && !s->step.prefill && is_decode(s) && is_of_step(engine, s)) take(engine, s, SIZE_MAX);
}

// A prompt comes before single tokens after a step that could have given it no row, or not the results that it wants.
// Single tokens leave room for a part of a prompt.
static void take_rows(frit_engine *engine)
{
    frit_step *step = engine->step;
    int32_t room = prompt_room(engine);
    bool has_prefill = false;
    for (const frit_session *s = engine->sessions; s; s = s->next) has_prefill = has_prefill || s->step.prefill;
    frit_session *s = engine->schedule.prompt_first ? frit_prompt_share_next(engine) : NULL;
    bool is_first = !s;
    if (s) take_prompt(engine, s, &room);
    engine->schedule.prompt_first = false;
    if (engine->rows.mixes_classes && has_prefill && is_first) step->most_rows -= engine->rows.least[FRIT_ROWS_PREFILL];
    take_single(engine, &room);
    step->most_rows = engine->n_batch;
    for (; (s = frit_prompt_share_next(engine)) != NULL; is_first = false) {
        const bool suited = take_prompt(engine, s, &room);
        if (is_first && !suited) engine->schedule.prompt_first = engine->rows.mixes_classes;
    }
}

static size_t count_results(const frit_session *session, frit_result *kind)
{
    size_t n = 0;
    *kind = FRIT_RESULT_NONE;
    for (size_t i = session->n_done; i < session->n_tokens; i++) {
        const frit_result result = frit_session_result(session, i);
        if (result == FRIT_RESULT_NONE) continue;
        *kind = result;
        n++;
    }
    return n;
}

static void take_whole(frit_engine *engine)
{
    const frit_step *step = engine->step;
    for (frit_session *s; (s = frit_prompt_share_next(engine)) != NULL;) {
        frit_result kind;
        const size_t n_outs = count_results(s, &kind);
        const bool suits = s->step.prefill == step->prefill &&
                           (kind == FRIT_RESULT_NONE || step->result == FRIT_RESULT_NONE || kind == step->result);
        const bool fits = pending(s) <= (size_t)(engine->n_batch - step->n_rows) &&
                          (kind != FRIT_RESULT_LOGITS || n_outs <= (size_t)(engine->schedule.max_outs - step->n_outs));
        if (suits && fits && fitting(engine, s, SIZE_MAX) == pending(s)) take(engine, s, SIZE_MAX);
    }
}

// Sources come before tokens, for those wait for them; whole, and many rows apart from few as everywhere.
static void take_sources(frit_engine *engine)
{
    frit_step *step = engine->step;
    for (frit_session *s = engine->sessions; s; s = s->next) {
        const bool prefill = s->source.n >= (size_t)engine->rows.least[FRIT_ROWS_PREFILL];
        if (!s->source.waits || s->failure.status != FRIT_OK || s->source.n > (size_t)(engine->n_batch - step->n_rows))
            continue;
        if (step->encodes && prefill != step->prefill) continue;
        if (!frit_kv_source_fits(&engine->kv, &s->map, (int32_t)s->source.n)) continue;
        const frit_status status = frit_kv_extend_source(&engine->kv, &s->map, (int32_t)s->source.n);
        if (status != FRIT_OK) {
            frit_session_fail(s, status);
            continue;
        }
        step->encodes = true;
        step->prefill = prefill;
        s->step.n_rows = (int32_t)s->source.n;
        step->n_rows += s->step.n_rows;
    }
}

// A prompt with so many queued tokens stays a long one until they have run.
static void note_long(const frit_engine *engine, frit_session *session)
{
    const size_t n = session->n_tokens - session->n_done;
    if (session->prompt.n_long > session->n_tokens) session->prompt.n_long = session->n_tokens;
    if (n >= (size_t)engine->rows.least[FRIT_ROWS_LONG_PREFILL] && !is_decode(session))
        session->prompt.n_long = session->n_tokens;
}

// Picks rows: how many of each session.
static void pick(frit_engine *engine)
{
    frit_step *step = engine->step;
    step->n_rows = step->n_outs = step->n_seqs = 0;
    step->result = FRIT_RESULT_NONE;
    step->most_rows = engine->n_batch;
    for (frit_session *s = engine->sessions; s; s = s->next) s->step.n_rows = 0;
    for (frit_session *s = engine->sessions; s; s = s->next) {
        s->prefix.is_reading = false;
        if (s->n_done > 0) s->prefix.n_known = -1;
        if (s->n_done == 0 && count_ready(s) > 0) s->prefix.is_reading = !frit_prefix_begin(s);
        s->step.n_ready = count_ready(s);
        s->step.prefill =
            s->failure.status == FRIT_OK && s->step.n_ready >= (size_t)engine->rows.least[FRIT_ROWS_PREFILL];
        note_long(engine, s);
    }
    frit_prompt_share_update(engine, is_prompt);
    step->encodes = false;
    step->decodes = true;
    take_sources(engine);
    if (!step->encodes) step->prefill = engine->rows.only_prefill || is_turn_of_prefill(engine);
    if (step->encodes)
        step->result = FRIT_RESULT_HIDDEN;
    else if (engine->hp.is_bidirectional)
        take_whole(engine);
    else
        take_rows(engine);
}

static bool waits(const frit_session *session)
{
    const bool has_rows = pending(session) > 0 || (session->source.waits && session->failure.status == FRIT_OK);
    return has_rows && session->step.n_rows == 0;
}

// After a context shift keys have seen tokens that left: run again, they would be others.
static bool gives_way(const frit_session *session, const frit_session *least)
{
    if (!least) return true;
    const bool is_shifted = session->shift.n_dropped > 0, least_is = least->shift.n_dropped > 0;
    if (is_shifted != least_is) return least_is;
    if (session->prompt.priority != least->prompt.priority) return session->prompt.priority < least->prompt.priority;
    return session->n_done < least->n_done;
}

// All sessions with something to run wait for pages. Of those that began, if there are several, the one of the lowest
// priority that has run least gives its pages back.
static bool evict(frit_engine *engine)
{
    frit_session *least = NULL;
    int n_begun = 0;
    for (frit_session *s = engine->sessions; s; s = s->next) {
        if (s->n_flying > 0) return false;   // it may give pages back
        if (!waits(s) || s->n_done == 0) continue;
        n_begun++;
        if (s->source.n == 0 && gives_way(s, least)) least = s;
    }
    if (n_begun < 2 || !least) return false;
    frit_session_run_again(least);
    return true;
}

int32_t frit_schedule_waiting(const frit_engine *engine)
{
    int32_t n = 0;
    for (const frit_session *s = engine->sessions; s; s = s->next) n += waits(s);
    return n;
}

frit_status frit_schedule_check(const frit_engine *engine)
{
    const int32_t n = frit_schedule_waiting(engine);
    if (engine->step->n_rows > 0 || n == 0) return FRIT_OK;
    char free_pages[64] = "";
    frit_kv_describe(&engine->kv, free_pages, sizeof free_pages);
    return frit_fail(
        FRIT_E_LIMIT,
        "the cache is full: %d session%s for room in it, and no other one runs: %s; truncate or free a session", n,
        n == 1 ? " waits" : "s wait", free_pages);
}

void frit_schedule(frit_engine *engine)
{
    frit_step *step = engine->step;
    // What is in flight may have to run again.
    for (frit_session *s = engine->sessions; s; s = s->next) {
        frit_prefix_cache(s, false);
        frit_kv_unref_passed(&engine->kv, &s->map, (int32_t)(s->n_done - s->n_flying));
    }
    frit_kv_disk_land(&engine->kv);
    do pick(engine);
    while (step->n_rows == 0 && (frit_kv_disk_wait(&engine->kv) || evict(engine)));

    step->n_rows = step->n_outs = step->n_picks = 0;
    step->lists.n_vocab = engine->hp.n_vocab;
    frit_pick_lists_clear(&step->lists);
    step->adapted = (frit_adapter_class){0};
    step->keeps_hidden = false;
    for (frit_session *s = engine->sessions; s; s = s->next) {
        s->step.waited = s->step.n_rows == 0 && pending(s) > 0;
        frit_prompt_share_count(s);
    }
    lay_out_all(engine);
    frit_step_fill_tables(engine);
    rotate(engine);
}
