// SPDX-License-Identifier: MIT
// Hidden states of the last tokens of sessions, which layers for multi-token prediction read. Steps of sessions that
// store them give the states of all rows beside logits (FRIT_PLAN_NEXT). A session stores as many states as a step has
// rows, and MORE.
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

enum { MORE = 64 };

static frit_status reserve_flights(frit_engine *engine)
{
    const size_t n = (size_t)engine->n_batch * (size_t)engine->hp.n_embd;
    for (int i = 0; i < FRIT_MAX_FLIGHTS; i++) {
        frit_flight *flight = &engine->flights.ring[i];
        if (!flight->hidden) flight->hidden = calloc(n, sizeof *flight->hidden);
        if (!flight->hidden) return frit_fail_memory(n * sizeof *flight->hidden, "hidden states");
    }
    return FRIT_OK;
}

frit_status frit_hidden_acquire(frit_session *session)
{
    frit_engine *engine = session->engine;
    const size_t width = (size_t)engine->hp.n_embd, capacity = (size_t)engine->n_batch + MORE;
    if (session->hidden) {
        session->hidden->n_users++;
        return FRIT_OK;
    }
    FRIT_TRY(reserve_flights(engine));
    frit_hidden *hidden = calloc(1, sizeof *hidden);
    float *rows = hidden ? calloc(capacity * width, sizeof *rows) : NULL;
    if (!rows) {
        free(hidden);
        return frit_fail_memory(capacity * width * sizeof *rows, "hidden states");
    }
    *hidden = (frit_hidden){.rows = rows, .capacity = capacity, .width = width, .n_users = 1};
    session->hidden = hidden;
    return FRIT_OK;
}

void frit_hidden_release(frit_session *session)
{
    if (!session->hidden || --session->hidden->n_users > 0) return;
    free(session->hidden->rows);
    free(session->hidden);
    session->hidden = NULL;
}

void frit_hidden_store(frit_hidden *hidden, size_t at, const float *rows, size_t n)
{
    const size_t width = hidden->width, capacity = hidden->capacity;
    if (n > capacity) {
        rows += (n - capacity) * width;
        at += n - capacity;
        n = capacity;
    }
    const bool follows = at >= hidden->first && at - hidden->first <= hidden->n;
    if (!follows) hidden->first = at;
    hidden->n = at - hidden->first;   // drops states of tokens that were truncated
    if (hidden->n + n > capacity) {
        const size_t lower = capacity / 2, room = capacity - n, keep = lower < room ? lower : room;
        const size_t drop = hidden->n > keep ? hidden->n - keep : 0;
        memmove(hidden->rows, hidden->rows + drop * width, (hidden->n - drop) * width * sizeof *rows);
        hidden->first += drop;
        hidden->n -= drop;
    }
    memcpy(hidden->rows + hidden->n * width, rows, n * width * sizeof *rows);
    hidden->n += n;
}

void frit_hidden_shift(frit_hidden *hidden, size_t n_keep, size_t n_drop)
{
    const size_t from = n_keep + n_drop;
    if (!hidden || hidden->first + hidden->n <= n_keep) return;
    if (hidden->first < from) {   // states of tokens that left go, and all before them
        const size_t n_gone = from - hidden->first < hidden->n ? from - hidden->first : hidden->n;
        memmove(hidden->rows, hidden->rows + n_gone * hidden->width,
                (hidden->n - n_gone) * hidden->width * sizeof *hidden->rows);
        hidden->n -= n_gone;
        hidden->first = from;
    }
    hidden->first -= n_drop;
}

const float *frit_hidden_row(const frit_hidden *hidden, size_t at)
{
    const bool is_there = hidden && at >= hidden->first && at - hidden->first < hidden->n;
    return is_there ? hidden->rows + (at - hidden->first) * hidden->width : NULL;
}

// Zeros for states that are not stored any more, which only a session that runs again needs, make its drafts worse.
void frit_hidden_copy(const frit_session *session, size_t i, float *row)
{
    const frit_mtp_text *text = &session->mtp;
    const size_t width = (size_t)session->engine->hp.n_embd;
    const float *state = NULL;
    if (text->of && i < text->n_true)
        state = frit_hidden_row(text->of->hidden, text->base + i);
    else if (text->of && i > 0)
        state = frit_hidden_row(session->hidden, i - 1);
    if (state)
        memcpy(row, state, width * sizeof *row);
    else
        memset(row, 0, width * sizeof *row);
}
