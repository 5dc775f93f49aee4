// SPDX-License-Identifier: MIT
// Beam search: finds the likeliest continuations of a session.
//
// Each live beam is a session. A step ranks all extensions of live beams by one token, by the sum of log-probabilities.
// The best n_beams that do not end the text are the next live beams; better ones that end it join the list of ended
// beams, which keeps the best n_beams. The first child of a beam takes over its session, other children are forks of
// it. Sums only fall, so the search is over when no live beam is better than the worst ended beam in the list.
#include "engine/engine.h"
#include "engine/model/model.h"

#include <math.h>
#include <stdlib.h>

enum { DEFAULT_BEAMS = 4, MAX_BEAMS = 1024 };

typedef struct hypothesis {
    frit_session *session;   // NULL for ended beams
    frit_token *tokens;      // [n_predict]
    size_t n;
    double logprob;
    bool ended;
} hypothesis;

typedef struct extension {
    int32_t parent;
    frit_token token;
    double logprob;
} extension;

struct frit_beams {
    const frit_session *base;
    int32_t n_beams;
    size_t n_predict;          // most tokens of a beam
    hypothesis *live, *next;   // [n_beams]
    hypothesis *ended;         // [n_beams], best first
    int32_t n_live, n_ended;
    extension *extensions;   // [n_beams * n_top]
    frit_logprob *top;       // [n_top]
    size_t n_top;
};

static void free_beam(hypothesis *b)
{
    frit_session_free(b->session);
    free(b->tokens);
    *b = (hypothesis){0};
}

void frit_beams_free(frit_beams *beams)
{
    if (!beams) return;
    for (int32_t i = 0; i < beams->n_beams; i++) {
        if (beams->live) free_beam(&beams->live[i]);
        if (beams->next) free_beam(&beams->next[i]);
        if (beams->ended) free_beam(&beams->ended[i]);
    }
    free(beams->live);
    free(beams->next);
    free(beams->ended);
    free(beams->extensions);
    free(beams->top);
    free(beams);
}

// ------------------------------------------------------------------------------- making

static size_t count_ends(const frit_model *model)
{
    size_t n = 0;
    for (frit_token t = 0; t < model->info.n_vocab; t++) n += frit_token_is_end(model, t);
    return n;
}

// A beam needs at most its n_beams best extensions and one for each end token.
static frit_status make_beams(frit_beams **out, const frit_session *session, const frit_beam_options *options)
{
    const frit_engine *engine = session->engine;
    const size_t room = (size_t)engine->n_ctx - frit_session_length(session), wanted = (size_t)options->n_predict;
    frit_beams *b = *out = calloc(1, sizeof *b);
    if (!b) return frit_fail_memory(sizeof *b, "beams");
    b->base = session;
    b->n_beams = options->n_beams > 0 ? options->n_beams : DEFAULT_BEAMS;
    b->n_predict = wanted > 0 && wanted < room ? wanted : room;
    const size_t n = (size_t)b->n_beams, n_vocab = (size_t)engine->model->info.n_vocab;
    b->n_top = n + count_ends(engine->model);
    if (b->n_top > n_vocab) b->n_top = n_vocab;
    b->live = calloc(n, sizeof *b->live);
    b->next = calloc(n, sizeof *b->next);
    b->ended = calloc(n, sizeof *b->ended);
    b->extensions = calloc(n * b->n_top, sizeof *b->extensions);
    b->top = calloc(b->n_top, sizeof *b->top);
    if (b->live && b->next && b->ended && b->extensions && b->top) return FRIT_OK;
    return frit_fail_memory(n * b->n_top * sizeof *b->extensions, "beams");
}

// Makes a beam with the tokens of `from` and one more, without a session.
static frit_status extend_beam(const frit_beams *beams, const hypothesis *from, const extension *by, hypothesis *out)
{
    *out = (hypothesis){.n = from->n + 1, .logprob = by->logprob};
    out->tokens = malloc((beams->n_predict + 1) * sizeof *out->tokens);
    if (!out->tokens) return frit_fail_memory((beams->n_predict + 1) * sizeof *out->tokens, "a beam");
    if (from->n > 0) memcpy(out->tokens, from->tokens, from->n * sizeof *out->tokens);
    out->tokens[from->n] = by->token;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- a step

// Orders extensions by falling sum. Ties: the parent that ranked higher, then the lower token.
static int by_rank(const void *a, const void *b)
{
    const extension *x = a, *y = b;
    if (x->logprob != y->logprob) return x->logprob > y->logprob ? -1 : 1;
    if (x->parent != y->parent) return x->parent < y->parent ? -1 : 1;
    return (x->token > y->token) - (x->token < y->token);
}

static frit_status list_extensions(frit_beams *beams, size_t *n)
{
    const size_t n_vocab = (size_t)beams->base->engine->model->info.n_vocab;
    *n = 0;
    for (int32_t i = 0; i < beams->n_live; i++) {
        const hypothesis *b = &beams->live[i];
        FRIT_TRY(frit_logprobs_top(frit_session_logits(b->session), n_vocab, beams->top, beams->n_top));
        for (size_t k = 0; k < beams->n_top; k++)
            if (beams->top[k].logprob > -INFINITY)
                beams->extensions[(*n)++] =
                    (extension){i, beams->top[k].token, b->logprob + (double)beams->top[k].logprob};
    }
    qsort(beams->extensions, *n, sizeof *beams->extensions, by_rank);
    return FRIT_OK;
}

// Inserts a beam into the list of ended beams, and frees the worst one if there are too many.
static void add_ended(frit_beams *beams, hypothesis *ended)
{
    int32_t at = beams->n_ended;
    while (at > 0 && beams->ended[at - 1].logprob < ended->logprob) at--;
    if (at == beams->n_beams) {
        free_beam(ended);
        return;
    }
    if (beams->n_ended == beams->n_beams)
        free_beam(&beams->ended[beams->n_beams - 1]);
    else
        beams->n_ended++;
    memmove(&beams->ended[at + 1], &beams->ended[at], (size_t)(beams->n_ended - 1 - at) * sizeof *ended);
    beams->ended[at] = *ended;
}

static frit_status choose_next(frit_beams *beams, size_t n_extensions, int32_t *parents, int32_t *n_next)
{
    const frit_model *model = beams->base->engine->model;
    *n_next = 0;
    for (size_t i = 0; i < n_extensions; i++) {
        const extension *e = &beams->extensions[i];
        const bool ends = frit_token_is_end(model, e->token);
        if (*n_next == beams->n_beams) break;
        hypothesis made;
        FRIT_TRY(extend_beam(beams, &beams->live[e->parent], e, &made));
        made.ended = ends;
        if (ends) {
            add_ended(beams, &made);
        } else {
            parents[*n_next] = e->parent;
            beams->next[(*n_next)++] = made;
        }
    }
    return FRIT_OK;
}

// Gives the sessions of beams to their children. Frees sessions without children first, so that there are never more
// than n_beams.
static frit_status pass_sessions(frit_beams *beams, const int32_t *parents, int32_t n_next)
{
    for (int32_t i = 0; i < beams->n_live; i++) {
        bool has_child = false;
        for (int32_t k = 0; k < n_next; k++) has_child |= parents[k] == i;
        if (has_child) continue;
        frit_session_free(beams->live[i].session);
        beams->live[i].session = NULL;
    }
    for (int32_t k = n_next - 1; k >= 0; k--) {   // a beam's last child is a fork, its first takes the session
        bool is_first = true;
        for (int32_t j = 0; j < k; j++) is_first &= parents[j] != parents[k];
        hypothesis *parent = &beams->live[parents[k]];
        if (is_first) {
            beams->next[k].session = parent->session;
            parent->session = NULL;
        } else {
            FRIT_TRY(frit_session_fork(&beams->next[k].session, parent->session));
        }
    }
    return FRIT_OK;
}

static frit_status run_pending(frit_session *session)
{
    while (frit_session_pending(session) > 0) FRIT_TRY(frit_engine_step(session->engine, NULL));
    return frit_session_status(session);
}

// Extends all beams by one token. After the last step no logits are needed.
static frit_status extend_all(frit_beams *beams, bool is_last)
{
    int32_t n_next = 0;
    size_t n_extensions;
    FRIT_TRY(list_extensions(beams, &n_extensions));
    int32_t *parents = calloc((size_t)beams->n_beams, sizeof *parents);
    if (!parents) return frit_fail_memory((size_t)beams->n_beams * sizeof *parents, "beams");
    frit_status status = choose_next(beams, n_extensions, parents, &n_next);
    if (status == FRIT_OK && !is_last) status = pass_sessions(beams, parents, n_next);
    free(parents);
    for (int32_t i = 0; i < beams->n_live; i++) free_beam(&beams->live[i]);
    hypothesis *live = beams->live;
    beams->live = beams->next;
    beams->next = live;
    beams->n_live = n_next;
    FRIT_TRY(status);
    for (int32_t i = 0; i < n_next && !is_last; i++)
        FRIT_TRY(frit_session_push(beams->live[i].session, &beams->live[i].tokens[beams->live[i].n - 1], 1, NULL));
    for (int32_t i = 0; i < n_next && !is_last; i++) FRIT_TRY(run_pending(beams->live[i].session));
    return FRIT_OK;
}

static bool is_over(const frit_beams *beams)
{
    if (beams->n_live == 0) return true;
    return beams->n_ended == beams->n_beams && beams->ended[beams->n_beams - 1].logprob >= beams->live[0].logprob;
}

static frit_status search(frit_beams *beams)
{
    FRIT_TRY(frit_session_fork(&beams->live[0].session, beams->base));
    beams->n_live = 1;
    for (size_t i = 0; i < beams->n_predict && !is_over(beams); i++)
        FRIT_TRY(extend_all(beams, i + 1 == beams->n_predict));
    // Beams that reached the length limit count as ended ones.
    for (int32_t i = 0; i < beams->n_live; i++) {
        frit_session_free(beams->live[i].session);
        beams->live[i].session = NULL;
        hypothesis cut = beams->live[i];
        beams->live[i] = (hypothesis){0};
        add_ended(beams, &cut);
    }
    beams->n_live = 0;
    return FRIT_OK;
}

frit_status frit_beam_search(frit_beams **out, frit_session *session, const frit_beam_options *options)
{
    static const frit_beam_options defaults;
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(session);
    FRIT_REQUIRE_UNUSED(options);
    if (!options) options = &defaults;
    if (options->n_beams < 0 || options->n_beams > MAX_BEAMS)
        return frit_fail(FRIT_E_INVALID, "n_beams is %d; expected 1 to %d, or 0 for %d", (int)options->n_beams,
                         (int)MAX_BEAMS, (int)DEFAULT_BEAMS);
    if (options->n_predict < 0)
        return frit_fail(FRIT_E_INVALID, "n_predict is %d; expected 0 or more", (int)options->n_predict);
    FRIT_TRY(run_pending(session));
    if (!frit_session_logits(session))
        return frit_fail(FRIT_E_INVALID, "the session has no logits; beams need those of its last token");
    frit_beams *beams = NULL;
    frit_status status = make_beams(&beams, session, options);
    if (status == FRIT_OK) status = search(beams);
    if (status != FRIT_OK) {
        frit_beams_free(beams);
        return status;
    }
    *out = beams;
    return FRIT_OK;
}

bool frit_beams_get(const frit_beams *beams, size_t i, frit_beam *beam)
{
    FRIT_REQUIRE_OR(false, beams);
    FRIT_REQUIRE_OR(false, beam);
    if (i >= (size_t)beams->n_ended) return false;
    const hypothesis *b = &beams->ended[i];
    *beam = (frit_beam){.tokens = b->tokens, .n_tokens = b->n, .logprob = b->logprob, .ended = b->ended};
    return true;
}
