// SPDX-License-Identifier: MIT
// How prompts share the rows that steps have for them: by priority, then by weight.
//
// Each session has a time, which advances by 1 / weight with each prompt row that runs. Among the waiting prompts of
// the highest priority, the prompt with the least time is next and takes all rows that are left. So over several steps
// waiting prompts get rows in proportion to their weights, and none starves. A prompt that begins to wait starts at the
// least time of the waiting prompts of its priority or, if there are none, at the time of the prompt that began last.
// So a session saves up no rows while it has no prompt, and rows that no other prompt could use do not count.
#include "engine/engine.h"
#include "engine/sched/prompt_share.h"

#include "base/time.h"

enum { MAX_WEIGHT = 1000 };

frit_status frit_session_set_share(frit_session *session, int32_t weight, int32_t priority)
{
    FRIT_REQUIRE(session);
    FRIT_TRY(frit_session_check_usable(session));
    if (weight < 1 || weight > MAX_WEIGHT)
        return frit_fail(FRIT_E_INVALID, "a session's weight is %d; expected 1 to %d", weight, MAX_WEIGHT);
    if (priority != session->prompt.priority) session->prompt.waits = false;   // it begins to wait anew
    session->prompt.weight = weight;
    session->prompt.priority = priority;
    return FRIT_OK;
}

static double start_time(const frit_engine *engine, const frit_session *session)
{
    const frit_session *least = NULL;
    for (const frit_session *s = engine->sessions; s; s = s->next) {
        if (!s->prompt.waits || s->prompt.priority != session->prompt.priority) continue;
        if (!least || s->prompt.time < least->prompt.time) least = s;
    }
    return least ? least->prompt.time : engine->schedule.prompt_time;
}

void frit_prompt_share_update(frit_engine *engine, bool (*is_prompt)(const frit_session *session))
{
    for (frit_session *s = engine->sessions; s; s = s->next) {
        s->prompt.was_offered = false;
        if (!is_prompt(s)) s->prompt.waits = false;
    }
    for (frit_session *s = engine->sessions; s; s = s->next) {
        if (s->prompt.waits || !is_prompt(s)) continue;
        const double first = start_time(engine, s);
        if (s->prompt.time < first) s->prompt.time = first;
        s->prompt.waits = true;
    }
}

static bool comes_before(const frit_session_prompt *a, const frit_session_prompt *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->time < b->time;
}

frit_session *frit_prompt_share_next(frit_engine *engine)
{
    frit_session *next = NULL;
    for (frit_session *s = engine->sessions; s; s = s->next)
        if (s->prompt.waits && !s->prompt.was_offered && (!next || comes_before(&s->prompt, &next->prompt))) next = s;
    if (next) next->prompt.was_offered = true;
    return next;
}

void frit_prompt_share_count(frit_session *session)
{
    frit_session_prompt *share = &session->prompt;
    if (!share->waits) return;
    if (session->engine->schedule.prompt_time < share->time) session->engine->schedule.prompt_time = share->time;
    share->time += (double)session->step.n_rows / share->weight;
}
