// SPDX-License-Identifier: MIT
// Drafts by a smaller model: keeping its session in step, and going on as long as drafts pay.
#include "engine/drafter.h"
#include "base/time.h"
#include "engine/engine.h"

#include <math.h>
#include <string.h>

enum { MEMORY = 50 };   // drafts of a class that its average remembers

static const double most_lost = 0.01;   // of the time of all steps

// ------------------------------------------------------------------------------- making

static bool has_piece(const frit_vocab *vocab, int32_t i, const frit_vocab_entry *entry)
{
    const frit_str piece = vocab->entries[i].piece;
    return piece.len == entry->piece.len && memcmp(piece.ptr, entry->piece.ptr, piece.len) == 0;
}

static frit_status check_vocab(const frit_model *model, const frit_model *draft)
{
    const frit_vocab *a = &model->vocab, *b = &draft->vocab;
    if (model->info.n_vocab != draft->info.n_vocab)
        return frit_fail(FRIT_E_INVALID, "%s: a draft model for %s needs the same vocabulary: %d tokens, found %d",
                         draft->info.path, model->info.path, model->info.n_vocab, draft->info.n_vocab);
    for (int32_t i = 0; a->entries && b->entries && i < a->n && i < b->n; i++)
        if (!has_piece(b, i, &a->entries[i]))
            return frit_fail(FRIT_E_INVALID,
                             "%s: a draft model for %s needs the same vocabulary: token %d is '%.*s', expected '%.*s'",
                             draft->info.path, model->info.path, i, (int)b->entries[i].piece.len,
                             b->entries[i].piece.ptr, (int)a->entries[i].piece.len, a->entries[i].piece.ptr);
    return FRIT_OK;
}

frit_status frit_drafter_init(frit_drafter *drafter, const frit_session *session, frit_engine *engine, float min_p)
{
    *drafter = (frit_drafter){.min_p = min_p};
    const char *path = engine->model->info.path;
    if (engine == session->engine)
        return frit_fail(FRIT_E_INVALID, "%s: a draft model needs an engine of its own", path);
    if (engine->model->arch->is_encoder || engine->model->arch->is_encoder_decoder || engine->hp.is_bidirectional)
        return frit_fail(FRIT_E_UNSUPPORTED, "%s: a draft model continues texts token by token", path);
    FRIT_TRY(check_vocab(session->engine->model, engine->model));
    return frit_session_new(&drafter->session, engine);
}

void frit_drafter_free(frit_drafter *drafter)
{
    frit_session_free(drafter->session);
    *drafter = (frit_drafter){0};
}

// ------------------------------------------------------------------------------- what drafts are worth

// The surer the draft model is, the more often it is right.
static int8_t class_of(float logprob)
{
    static const double least[FRIT_DRAFTER_CLASSES] = {0, 0.3, 0.5, 0.7, 0.9};
    const double p = exp((double)logprob);
    int8_t c = FRIT_DRAFTER_CLASSES - 1;
    while (c > 0 && p < least[c]) c--;
    return c;
}

static double right_of(const frit_drafter *d, int c)
{
    static const double expected[FRIT_DRAFTER_CLASSES] = {0.3, 0.45, 0.6, 0.75, 0.9};   // before anything is known
    enum { WEIGHT = 2 };
    return (d->n_right[c] + WEIGHT * expected[c]) / (d->n_tried[c] + WEIGHT);
}

// Of a draft that is not known yet.
static double right_of_next(const frit_drafter *d)
{
    double n_right = 0, n = 0;
    for (int c = 0; c < FRIT_DRAFTER_CLASSES; c++) {
        n_right += (d->n_tried[c] + 1) * right_of(d, c);
        n += d->n_tried[c] + 1;
    }
    return n_right / n;
}

void frit_drafter_learn(frit_drafter *d, const frit_engine *engine, int32_t n_right)
{
    for (int32_t i = 0; i < d->n && i <= n_right; i++) {
        const int c = d->classes[i];
        d->n_tried[c] += 1 - d->n_tried[c] / MEMORY;
        d->n_right[c] += (i < n_right ? 1 : 0) - d->n_right[c] / MEMORY;
    }
    const double one = frit_pace_few(engine, 1), step = frit_pace_few(engine, 1 + d->n);
    if (d->n > 0) d->lost_ns += d->draft_ns + step - one * (n_right + 1);
    if (d->lost_ns < 0) d->lost_ns = 0;
    d->all_ns += one * (n_right + 1);
    d->n = 0;
}

// Whether one draft more is expected to give more tokens for the time. Where not, some are drafted all the same now and
// then, to see whether the text has become easier.
static bool pays(const frit_drafter *d, const frit_engine *engine, int32_t n, double n_tokens, double reached)
{
    const double without = frit_pace_few(engine, 1), one = frit_pace_few(d->session->engine, 1);
    if (without <= 0) return false;
    if (one <= 0) return true;
    const double now = frit_pace_few(engine, 1 + n) + n * one, next = frit_pace_few(engine, 2 + n) + (n + 1) * one;
    if ((n_tokens + reached * right_of_next(d)) * now > n_tokens * next) return true;
    return n == 0 && d->lost_ns + next < most_lost * d->all_ns;
}

// ------------------------------------------------------------------------------- drafting

// The draft model's session gets the tokens that it does not have. The last one has not run.
static frit_status follow(frit_drafter *d, const frit_session *session)
{
    const frit_token *own = frit_session_tokens(d->session);
    const size_t n = session->n_tokens, n_own = frit_session_length(d->session);
    size_t n_same = 0;
    while (n_same < n && n_same < n_own && own[n_same] == session->tokens[n_same]) n_same++;
    if (n_same == n) n_same--;
    FRIT_TRY(frit_session_truncate(d->session, n_same));
    return frit_session_push(d->session, session->tokens + n_same, n - n_same, NULL);
}

static frit_status pick(frit_session *session, frit_sampler *sampler, frit_picked *picked)
{
    FRIT_TRY(frit_session_pick(session, sampler, &(frit_pick_options){.logprobs = true}));
    while (frit_session_pending(session) > 0) {
        int32_t n_rows;
        FRIT_TRY(frit_engine_step(session->engine, &n_rows));
        if (n_rows == 0) return frit_fail(FRIT_E_INTERNAL, "the draft's tokens find no room in a step");
    }
    FRIT_TRY(frit_session_status(session));
    return frit_session_picked(session, picked);
}

frit_status frit_drafter_guess(frit_drafter *d, const frit_session *session, frit_sampler *sampler, bool always,
                               frit_token *guess, int32_t most, int32_t *n_guess)
{
    frit_sampler_mark marks[FRIT_MAX_DRAFTS];
    const int32_t n_ctx = d->session->engine ? d->session->engine->n_ctx : 0;   // 0: the engine was freed
    const uint64_t position = sampler->position;
    double n_tokens = 1, reached = 1;
    int32_t n = 0;
    *n_guess = d->n = 0;
    if (session->n_tokens + (size_t)most + 1 > (size_t)n_ctx) return FRIT_OK;
    if (most == 0 || (!always && !pays(d, session->engine, 0, n_tokens, reached))) return FRIT_OK;
    const bool is_first = frit_session_length(d->session) == 0;   // the prompt runs in the draft model too
    uint64_t start = frit_time_ns();
    frit_status status = follow(d, session);
    while (status == FRIT_OK && n < most && (n == 0 || always || pays(d, session->engine, n, n_tokens, reached))) {
        frit_picked picked;
        status = pick(d->session, sampler, &picked);
        if (status != FRIT_OK || (double)picked.logprob < log((double)d->min_p + 1e-9)) break;
        if (is_first && n == 0) start = frit_time_ns();
        if (frit_token_is_end(session->engine->model, picked.token)) break;
        d->classes[n] = class_of(picked.logprob);
        reached *= right_of(d, d->classes[n]);
        n_tokens += reached;
        guess[n] = picked.token;
        frit_sampler_try(sampler, picked.token, &marks[n++]);
        status = frit_session_push(d->session, &picked.token, 1, NULL);
    }
    for (int32_t i = n; i-- > 0;) frit_sampler_go_back(sampler, &marks[i]);
    sampler->position = position;
    d->draft_ns = (double)(frit_time_ns() - start);
    if (status != FRIT_OK) {
        frit_session_truncate(d->session, 0);
        return status;
    }
    *n_guess = d->n = n;
    return FRIT_OK;
}
