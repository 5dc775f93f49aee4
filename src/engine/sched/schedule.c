// SPDX-License-Identifier: MIT
// Chooses the rows of the next step.
//
// 1. One row for every session that had something to run and got no row in the last step, so that no session starves.
//    Prompts get this row only if decode rows fill the step.
// 2. Single queued tokens and the drafts that follow them, the decode rows: they are what people wait for.
// 3. Prompts, by the sessions' priorities and weights (prompt_share.c), with what is left of n_batch rows.
//
// A session's rows are decode rows or prefill rows by the number of its own queued tokens (frit_row_class), and a
// prompt is cut so that its last part is long enough to be prefill rows too. So what a session computes does not depend
// on other sessions. Parts of a prompt are about equally long, so that sessions that generate wait about equally long
// for each. If all devices can mix the classes, a step has decode rows and then prefill rows. Otherwise steps of decode
// rows and of prefill rows alternate.
//
// Where the rows of a picture see each other, a step has all of them or none, even if it gets more rows of prompts so.
//
// Models in which every token sees all others run all rows of a session in one step. Sessions share the step as long as
// they fit whole.
//
// Pages are taken here, for the rows that are scheduled. A prompt begins only when the cache has pages for all of it; a
// session that finds none waits until others release pages. If all sessions wait, the one that has run least, among
// those with the lowest priority, releases its pages and runs again later.
//
// Sessions form a queue; a session that had rows goes to its end, so that sessions of equal priority alternate. A step
// gives either logits or hidden states: the first row with a result decides, and rows with the other kind wait.
#include "engine/sched/ahead.h"
#include "engine/sched/prompt_share.h"

#include "base/time.h"

// Tokens before this index are known, or picks of steps that were submitted.
static size_t end_of_known(const frit_session *session)
{
    const size_t n = session->n_tokens, first = n > FRIT_MAX_PICK_REQUESTS ? n - FRIT_MAX_PICK_REQUESTS : 0;
    for (size_t i = first > session->n_done ? first : session->n_done; i < n; i++) {
        const frit_pick_request *request = session->tokens[i] < 0 ? frit_session_find_pick(session, i - 1) : NULL;
        if (request && (request->n_submitted == 0 || request->late != FRIT_PICK_ON_TIME)) return i;
    }
    return n;
}

static size_t count_known(const frit_session *session)
{
    if (session->source.waits || session->prefix.is_reading || session->failure.status != FRIT_OK) return 0;
    return end_of_known(session) - session->n_done;
}

static size_t count_ready(const frit_session *session)
{
    return frit_session_soft_awaits(session) ? 0 : count_known(session);
}

// Tokens that may run in the step that is being made and have no row in it yet.
static size_t count_pending(const frit_session *session)
{
    const size_t n_rows = (size_t)session->step.n_rows;   // of its source, if that runs
    return session->failure.status == FRIT_OK && session->step.n_ready > n_rows ? session->step.n_ready - n_rows : 0;
}

// True if one token waits, with forced tokens before it or drafts that a pick verifies after it.
static bool is_decode(const frit_session *session)
{
    const frit_pick_request *request = session->pick.n > 0 ? &session->pick.requests[session->pick.n - 1] : NULL;
    const size_t n = count_pending(session), n_forced = (size_t)session->pick.n_forced;
    return n > 0 && (n <= 1 + n_forced || (request && request->n > 1 && request->at - session->n_done <= n_forced));
}

static bool generates(const frit_session *session)
{
    return session->n_done > 0 && is_decode(session);
}

static bool is_prompt(const frit_session *session)
{
    return count_pending(session) > 0 && (session->engine->hp.is_bidirectional || !is_decode(session));
}

static int32_t count_decode_rows(const frit_engine *engine)
{
    int32_t n = 0;
    for (const frit_session *s = engine->sessions; s; s = s->next)
        if (!s->step.prefill && is_decode(s)) n += (int32_t)count_pending(s);
    return n;
}

// Rows of prompts in a step of a device with a queue, where sessions generate: so many that the step has whole tiles.
static int32_t queue_room(const frit_engine *engine)
{
    enum { TILE = 128 };
    const int32_t room = frit_schedule_queue_budget(&engine->cost);
    if (room > engine->n_batch) return room;
    const int32_t n_decode = count_decode_rows(engine), n = (n_decode + room + TILE / 2) / TILE * TILE - n_decode;
    return n < FRIT_LEAST_BUDGET ? room : n;
}

// Rows of prompts that the next step may have.
static int32_t prompt_room(const frit_engine *engine)
{
    // A part of twice the least size takes little longer than one of the least size, and gives prompts twice the rows.
    // If steps mix row classes, sessions that generate wait for each of them, so the least part is enough.
    const int32_t part = engine->rows.least[FRIT_ROWS_PREFILL], named = engine->schedule.prompt_budget;
    const int32_t least = part == INT32_MAX ? 0 : (engine->rows.mixes_classes ? 1 : 2) * part;
    if (named < 0) return engine->n_batch;
    for (const frit_session *s = engine->sessions; s; s = s->next) {
        if (!generates(s)) continue;
        if (named > 0) return named > least ? named : least;
        if (least == 0 && frit_ahead_has_queue(engine)) return queue_room(engine);
        if (engine->rows.mixes_classes) return frit_schedule_mixed_budget(&engine->cost, least);
        return frit_schedule_budget(&engine->cost, least > 0 ? least : FRIT_LEAST_BUDGET);
    }
    return engine->n_batch;
}

// Rows of a step. Where devices work one after the other, prompts are cut so that each device has a part.
static int32_t most_rows(const frit_engine *engine)
{
    enum { LEAST = 256 };   // rows from which products are about as fast as with any number
    const int32_t n = engine->n_batch / (2 * engine->schedule.n_stages), least = n > LEAST ? n : LEAST;
    return engine->schedule.divides && least < engine->n_batch ? least : engine->n_batch;
}

// Sessions that generate in a step. Where devices work one after the other, each has a step with some of the sessions:
// of those that can run now and of those in flight, which run in the steps after.
static int32_t most_decoding(const frit_engine *engine)
{
    int32_t n = 0;
    if (!engine->schedule.divides) return INT32_MAX;
    for (const frit_session *s = engine->sessions; s; s = s->next) n += s->n_flying > 0 || is_decode(s);
    return (n + engine->schedule.n_stages - 1) / engine->schedule.n_stages;
}

// How many of n more rows of the session find pages.
static size_t count_fitting(const frit_engine *engine, const frit_session *session, size_t n)
{
    const int32_t n_done = (int32_t)session->n_done, n_taken = session->step.n_rows;
    if (n > count_pending(session)) n = count_pending(session);
    if (n > (size_t)engine->n_batch) n = (size_t)engine->n_batch;
    if (n_done == 0 && !frit_prefix_has_room(session)) return 0;
    const int32_t fits = frit_kv_fitting(&engine->kv, &session->map, n_done, n_taken + (int32_t)n);
    return fits > n_taken ? (size_t)(fits - n_taken) : 0;
}

// How many of the session's next n rows the step can have with their results.
static size_t count_with_results(const frit_engine *engine, const frit_session *session, size_t n)
{
    const frit_step *step = engine->step;
    frit_result kind = step->result;
    int32_t n_outs = step->n_outs;
    for (size_t i = 0; i < n; i++) {
        const frit_result result = frit_session_result(session, session->n_done + (size_t)session->step.n_rows + i);
        if (result == FRIT_RESULT_NONE) continue;
        if (kind != FRIT_RESULT_NONE && kind != result) return i;
        if (result == FRIT_RESULT_LOGITS && n_outs == engine->schedule.max_outs) return i;
        kind = result;
        n_outs++;
    }
    return n;
}

// Returns how many of n more rows the session can have in the step, by pages and results. Rows of a picture that see
// each other come together, and may be more than n.
static size_t count_addable(frit_engine *engine, const frit_session *session, size_t n)
{
    const size_t first = session->n_done + (size_t)session->step.n_rows, n_pending = count_pending(session);
    const size_t most = count_with_results(engine, session, count_fitting(engine, session, n));
    size_t whole = frit_session_soft_rows(session, first, most);
    if (whole <= most) return whole;
    // The rest of a prompt is long enough to be prefill rows too, or it runs with the picture.
    if (session->step.prefill && n_pending - whole < (size_t)engine->rows.least[FRIT_ROWS_PREFILL]) whole = n_pending;
    if (whole > (size_t)(engine->n_batch - engine->step->n_rows)) {
        engine->schedule.prompt_first = true;   // the next step has room
        return 0;
    }
    return count_with_results(engine, session, count_fitting(engine, session, whole)) == whole ? whole : 0;
}

// Gives the session up to n more rows, or a whole picture, as far as there are pages and the step has room for rows and
// results.
static void add_rows(frit_engine *engine, frit_session *session, size_t n)
{
    frit_step *step = engine->step;
    const size_t room = step->n_rows < step->most_rows ? (size_t)(step->most_rows - step->n_rows) : 0;
    n = count_addable(engine, session, n < room ? n : room);
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
            step->result = result;
            step->n_outs++;
        }
        session->step.n_rows++;
        step->n_rows++;
    }
}

// Moves sessions with rows to the end of the queue. Both groups keep their order.
static void rotate_queue(frit_engine *engine)
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

// True if the next step has prefill rows, where steps do not mix row classes: they alternate if both classes wait.
static bool is_prefill_next(const frit_engine *engine)
{
    bool has_prefill = false, has_decode = false;
    for (const frit_session *s = engine->sessions; s; s = s->next) {
        has_prefill = has_prefill || (count_pending(s) > 0 && s->step.prefill);
        has_decode = has_decode || (count_pending(s) > 0 && !s->step.prefill);
    }
    return has_prefill && (!has_decode || !engine->step->prefill);
}

// True if the step can give all results of the session's next n rows beside the results that it gives already.
static bool has_room_for_results(const frit_engine *engine, const frit_session *session, size_t n)
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

// Gives a prompt of prefill rows its next part, of `room` rows at most. False if another step could have given a part.
static bool add_part(frit_engine *engine, frit_session *session, int32_t room)
{
    const int32_t in_step = engine->n_batch - engine->step->n_rows, most = room < in_step ? room : in_step;
    if (most < engine->rows.least[FRIT_ROWS_PREFILL]) return false;
    const size_t n =
        frit_prefill_chunk(count_pending(session), (size_t)most, count_fitting(engine, session, (size_t)in_step),
                           (size_t)engine->rows.least[FRIT_ROWS_PREFILL]);
    if (n == 0) return true;
    const bool has_results = has_room_for_results(engine, session, n);
    if (has_results) add_rows(engine, session, n);
    return has_results;
}

// True if the step may have rows of the session's class.
static bool has_class(const frit_engine *engine, const frit_session *session)
{
    return engine->rows.mixes_classes || engine->rows.only_prefill || session->step.prefill == engine->step->prefill;
}

// Gives a prompt rows and subtracts them from `room`. False if another step could have given it a part.
static bool add_prompt(frit_engine *engine, frit_session *session, int32_t *room)
{
    const int32_t before = session->step.n_rows;
    bool suited = true;
    if (!has_class(engine, session)) return true;
    if (session->step.prefill)
        suited = add_part(engine, session, *room);
    else if (*room > 0)
        add_rows(engine, session, (size_t)*room);
    *room -= session->step.n_rows - before;
    return suited;
}

// True if decode rows leave the step so many rows that a part of a prompt follows them.
static bool has_room_for_prompts(const frit_engine *engine)
{
    return engine->step->most_rows - count_decode_rows(engine) >= FRIT_LEAST_BUDGET;
}

// Gives one row to each session that got none in the last step, unless prompts get theirs after the decode rows. Then
// gives its rows to each session that generates.
static void add_single_rows(frit_engine *engine, int32_t *room)
{
    const bool prompts_follow = has_room_for_prompts(engine);
    int32_t left = engine->step->most_decoding;
    for (frit_session *s = engine->sessions; s; s = s->next) {
        const bool is_prompt = !is_decode(s);
        if (is_prompt && prompts_follow) continue;
        if (!s->step.waited || s->step.prefill || s->step.n_rows > 0 || !has_class(engine, s)) continue;
        if (!is_prompt && left == 0) continue;
        add_rows(engine, s, 1);
        if (is_prompt) *room -= s->step.n_rows;
        left -= !is_prompt && s->step.n_rows > 0;
    }
    for (frit_session *s = engine->sessions; s && left > 0; s = s->next) {
        if (s->step.n_rows > 0 || s->step.prefill || !is_decode(s) || !has_class(engine, s)) continue;
        add_rows(engine, s, SIZE_MAX);
        left -= s->step.n_rows > 0;
    }
}

// A prompt that got no row (or no result) in the last step goes first in this one. Otherwise decode rows go first, and
// leave room for a part of a prompt.
static void choose_rows(frit_engine *engine)
{
    frit_step *step = engine->step;
    int32_t room = prompt_room(engine);
    bool has_prefill = false;
    for (const frit_session *s = engine->sessions; s; s = s->next) has_prefill = has_prefill || s->step.prefill;
    frit_session *s = engine->schedule.prompt_first ? frit_prompt_share_next(engine) : NULL;
    bool is_first = !s;
    if (s) add_prompt(engine, s, &room);
    engine->schedule.prompt_first = false;
    if (engine->rows.mixes_classes && has_prefill && is_first) step->most_rows -= engine->rows.least[FRIT_ROWS_PREFILL];
    add_single_rows(engine, &room);
    step->most_rows = most_rows(engine);
    for (; (s = frit_prompt_share_next(engine)) != NULL; is_first = false) {
        const bool suited = add_prompt(engine, s, &room);
        if (is_first && !suited && engine->rows.mixes_classes) engine->schedule.prompt_first = true;
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

// Gives rows to sessions that fit whole.
static void choose_whole_sessions(frit_engine *engine)
{
    const frit_step *step = engine->step;
    for (frit_session *s; (s = frit_prompt_share_next(engine)) != NULL;) {
        frit_result kind;
        const size_t n_outs = count_results(s, &kind);
        const bool suits = s->step.prefill == step->prefill &&
                           (kind == FRIT_RESULT_NONE || step->result == FRIT_RESULT_NONE || kind == step->result);
        const bool fits = count_pending(s) <= (size_t)(engine->n_batch - step->n_rows) &&
                          (kind != FRIT_RESULT_LOGITS || n_outs <= (size_t)(engine->schedule.max_outs - step->n_outs));
        if (suits && fits && count_fitting(engine, s, SIZE_MAX) == count_pending(s)) add_rows(engine, s, SIZE_MAX);
    }
}

// Sources of encoder-decoders come first, because tokens wait for them. They run whole, and a step has sources of one
// row class.
static void choose_sources(frit_engine *engine)
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

// A prompt that is long when it is queued stays FRIT_ROWS_LONG_PREFILL until all of it has run.
static void update_long_prompt(const frit_engine *engine, frit_session *session)
{
    const size_t n = session->n_tokens - session->n_done;
    if (session->prompt.n_long > session->n_tokens) session->prompt.n_long = session->n_tokens;
    if (n >= (size_t)engine->rows.least[FRIT_ROWS_LONG_PREFILL] && !is_decode(session))
        session->prompt.n_long = session->n_tokens;
}

// Chooses how many rows each session has in the step.
static void choose_all(frit_engine *engine)
{
    frit_step *step = engine->step;
    step->n_rows = step->n_outs = step->n_seqs = 0;
    step->result = FRIT_RESULT_NONE;
    step->most_rows = most_rows(engine);
    for (frit_session *s = engine->sessions; s; s = s->next) s->step.n_rows = 0;
    for (frit_session *s = engine->sessions; s; s = s->next) {
        s->prefix.is_reading = false;
        if (s->n_done > 0) s->prefix.n_known = -1;
        if (s->n_done == 0 && count_known(s) > 0) s->prefix.is_reading = !frit_prefix_begin(s);
        s->step.n_ready = count_ready(s);
        s->step.prefill =
            s->failure.status == FRIT_OK && s->step.n_ready >= (size_t)engine->rows.least[FRIT_ROWS_PREFILL];
        update_long_prompt(engine, s);
    }
    step->most_decoding = most_decoding(engine);
    frit_prompt_share_update(engine, is_prompt);
    step->encodes = false;
    step->decodes = true;
    choose_sources(engine);
    if (!step->encodes) step->prefill = engine->rows.only_prefill || is_prefill_next(engine);
    if (step->encodes)
        step->result = FRIT_RESULT_HIDDEN;
    else if (engine->hp.is_bidirectional)
        choose_whole_sessions(engine);
    else
        choose_rows(engine);
}

static bool has_no_rows(const frit_session *session)
{
    const bool has_rows = count_pending(session) > 0 || (session->source.waits && session->failure.status == FRIT_OK);
    return has_rows && session->step.n_rows == 0;
}

// True if the session is preempted before `least`. Sessions with a context shift are last: their keys have seen
// tokens that left, and would be different ones if they ran again.
static bool is_preempted_before(const frit_session *session, const frit_session *least)
{
    if (!least) return true;
    const bool is_shifted = session->shift.n_dropped > 0, least_is = least->shift.n_dropped > 0;
    if (is_shifted != least_is) return least_is;
    if (session->prompt.priority != least->prompt.priority) return session->prompt.priority < least->prompt.priority;
    return session->n_done < least->n_done;
}

// Called when all sessions with something to run wait for pages. If several of them have begun, preempts the one that
// has run least among those of the lowest priority.
static bool preempt_session(frit_engine *engine)
{
    frit_session *least = NULL;
    int n_begun = 0;
    for (frit_session *s = engine->sessions; s; s = s->next) {
        if (s->n_flying > 0) return false;   // it may release pages
        if (!has_no_rows(s) || s->n_done == 0) continue;
        n_begun++;
        if (s->source.n == 0 && is_preempted_before(s, least)) least = s;
    }
    if (n_begun < 2 || !least) return false;
    frit_session_run_again(least);
    return true;
}

int32_t frit_schedule_waiting(const frit_engine *engine)
{
    int32_t n = 0;
    for (const frit_session *s = engine->sessions; s; s = s->next) n += has_no_rows(s);
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
    // Pages of tokens in flight stay: the tokens may have to run again.
    for (frit_session *s = engine->sessions; s; s = s->next) {
        frit_prefix_cache(s, false);
        frit_kv_unref_passed(&engine->kv, &s->map, (int32_t)(s->n_done - s->n_flying));
    }
    frit_kv_disk_land(&engine->kv);
    do choose_all(engine);
    while (step->n_rows == 0 && (frit_kv_disk_wait(&engine->kv) || preempt_session(engine)));

    for (frit_session *s = engine->sessions; s; s = s->next) {
        s->step.waited = s->step.n_rows == 0 && count_pending(s) > 0;
        frit_prompt_share_count(s);
    }
    frit_schedule_lay_out(engine);
    frit_step_fill_tables(engine);
    rotate_queue(engine);
}
