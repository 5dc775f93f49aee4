// SPDX-License-Identifier: MIT
// Speculation in sessions: makes drafts, queues them, and counts how often they are right.
#include "engine/spec/speculate.h"
#include "engine/sched/ahead.h"
#include "engine/sched/step_cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_MOST = 16 };

static const double least_gain = 1.02;   // of tokens for the time, by a step with drafts

// ------------------------------------------------------------------------------- making

static const char *const kinds[] = {"auto", "ngram", "draft", "mtp", "none"};

static bool is_kind(const frit_speculate_options *options, const char *kind)
{
    return options->kind && strcmp(options->kind, kind) == 0;
}

static frit_status check_options(const frit_session *session, const frit_speculate_options *options)
{
    bool known = !options->kind;
    for (size_t i = 0; i < FRIT_COUNT(kinds); i++) known = known || strcmp(options->kind, kinds[i]) == 0;
    if (!known)
        return frit_fail(FRIT_E_INVALID, "speculation '%.64s' does not exist; expected auto, ngram, draft, mtp or none",
                         options->kind);
    if (options->max_drafts < 0 || options->max_drafts > FRIT_MAX_DRAFTS)
        return frit_fail(FRIT_E_INVALID, "found %d drafts for a step; expected 0 to %d", options->max_drafts,
                         FRIT_MAX_DRAFTS);
    if (!(options->min_p >= 0 && options->min_p <= 1))
        return frit_fail(FRIT_E_INVALID, "found drafts of probability %g; expected 0 to 1", (double)options->min_p);
    if (is_kind(options, "draft") && !options->draft)
        return frit_fail(FRIT_E_INVALID, "speculation by a draft model needs an engine of that model");
    if (is_kind(options, "mtp") && !(options->draft && options->draft->model->of))
        return frit_fail(FRIT_E_INVALID,
                         "speculation by multi-token prediction needs an engine of the model's layer for it");
    const frit_engine *engine = session->engine;
    const char *path = engine->model->info.path;
    if (engine->model->arch->is_encoder)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: an encoder generates no text", path);
    if (engine->hp.is_bidirectional)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: every token sees all others, so all run again after each", path);
    if (!frit_kv_can_draft(&engine->kv))
        return frit_fail_file(
            FRIT_E_UNSUPPORTED,
            "%s: a state forgets wrong drafts by going back to a copy; the engine was made without copies "
            "(--state-copies)",
            path);
    return FRIT_OK;
}

static frit_status start_speculation(frit_session *session, const frit_speculate_options *options)
{
    const frit_engine *engine = session->engine;
    struct frit_speculation *s = calloc(1, sizeof *s);
    if (!s) return frit_fail_memory(sizeof *s, "speculation");
    s->looks_up = !is_kind(options, "draft") && !is_kind(options, "mtp");
    const bool drafts = options->draft && !is_kind(options, "ngram");
    s->always = options->always;
    s->most = options->max_drafts > 0 ? options->max_drafts : DEFAULT_MOST;
    if (s->most > engine->n_batch - 1) s->most = engine->n_batch - 1;
    const int32_t prefill = engine->rows.least[FRIT_ROWS_PREFILL];
    if (s->most > prefill - 2) s->most = prefill - 2;   // the rows stay decode rows
    frit_status status = frit_ngrams_init(&s->ngrams, (size_t)engine->n_ctx);
    if (status == FRIT_OK && drafts) status = frit_drafter_init(&s->drafter, session, options->draft, options->min_p);
    for (int k = 0; status == FRIT_OK && k < FRIT_MAX_PICK_REQUESTS; k++) {   // a step allocates nothing
        session->pick.requests[k].lists.n_vocab = engine->hp.n_vocab;
        status = frit_pick_request_reserve(&session->pick.requests[k], s->most + 1, 0);
    }
    if (status != FRIT_OK) {
        frit_speculation_free(s);
        return status;
    }
    session->speculation = s;
    return FRIT_OK;
}

frit_status frit_session_speculate(frit_session *session, const frit_speculate_options *options)
{
    FRIT_REQUIRE(session);
    FRIT_REQUIRE_UNUSED(options);
    FRIT_TRY(frit_session_check_usable(session));
    const frit_speculate_options chosen = options ? *options : (frit_speculate_options){0};
    const bool none = is_kind(&chosen, "none");
    if (!none) FRIT_TRY(check_options(session, &chosen));
    struct frit_speculation *before = session->speculation;
    session->speculation = NULL;
    const frit_status status = none ? FRIT_OK : start_speculation(session, &chosen);
    if (status == FRIT_OK)
        frit_speculation_free(before);
    else
        session->speculation = before;
    return status;
}

void frit_speculation_free(struct frit_speculation *speculation)
{
    if (!speculation) return;
    frit_ngrams_deinit(&speculation->ngrams);
    frit_drafter_deinit(&speculation->drafter);
    free(speculation);
}

frit_status frit_speculation_fork(frit_session *to, const frit_session *from)
{
    const struct frit_speculation *s = from->speculation;
    if (!s) return FRIT_OK;
    const frit_speculate_options options = {.kind = s->looks_up ? "auto" : "draft",
                                            .max_drafts = s->most,
                                            .always = s->always,
                                            .draft = s->drafter.session ? s->drafter.session->engine : NULL,
                                            .min_p = s->drafter.min_p};
    FRIT_TRY(start_speculation(to, &options));
    memcpy(to->speculation->matches, s->matches, sizeof s->matches);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- how many drafts

// Longer matches are right more often, so each class of lengths has its own average.
static int match_class_of(int32_t n_match)
{
    static const int32_t first[FRIT_MATCH_CLASSES] = {2, 3, 4, 6, 10, FRIT_MATCH_FORCED};
    int c = FRIT_MATCH_CLASSES - 1;
    while (c > 0 && n_match < first[c]) c--;
    return c;
}

static double rate_of(const struct frit_speculation *s, int c)
{
    static const double expected[FRIT_MATCH_CLASSES] = {0.3, 0.45, 0.6, 0.75, 0.85, 0.85};   // before anything is known
    enum { WEIGHT = 2 };
    return frit_acceptance_rate(&s->matches[c], expected[c], WEIGHT);
}

// Counts the drafts at the beginning that equal the text.
static int32_t count_right(const frit_drafted *draft, const frit_token *tokens, size_t n)
{
    int32_t i = 0;
    while (i < draft->n && draft->at + (size_t)i < n && draft->tokens[i] == tokens[draft->at + (size_t)i]) i++;
    return i;
}

// Updates the acceptance rates of matches up to the first draft that is wrong.
static void learn_from_match(struct frit_speculation *s, int32_t n_right, size_t n)
{
    const frit_drafted *draft = &s->draft;
    for (int32_t i = 0; i <= n_right && i < draft->n && draft->at + (size_t)i < n; i++)
        frit_acceptance_count(&s->matches[match_class_of(draft->n_match + i)], i < n_right);
}

// Updates the acceptance rates from the last drafts, including drafts that were not verified.
static void learn_from_tokens(struct frit_speculation *s, const frit_token *tokens, size_t n)
{
    const int32_t n_right = count_right(&s->draft, tokens, n);
    if (s->drafter.session) frit_drafter_count_right(&s->drafter, s->by_drafter ? n_right : 0);
    if (!s->by_drafter) learn_from_match(s, n_right, n);
    s->draft.n = 0;
}

// The number of drafts with which the next step gives the most tokens for its time. The tokens and drafts of all
// sessions count.
static int32_t choose_n_drafts(struct frit_speculation *s, const frit_engine *engine, int32_t most)
{
    int32_t n_rows, n_best = 0;
    double n_tokens, reached = 1, n_right = 0, n_best_right = 0;
    frit_step_cost_next(engine, &n_rows, &n_tokens);
    const double without = frit_step_cost_decode(engine, n_rows);
    double best = without > 0 ? least_gain * n_tokens / without : INFINITY;
    for (int32_t n = 1; n <= most; n++) {
        reached *= rate_of(s, match_class_of(s->draft.n_match + n - 1));
        n_right += reached;
        const double rate = (n_tokens + n_right) / (frit_step_cost_decode(engine, n_rows + n) + n * s->mask_ns);
        if (rate <= best && !s->always) continue;
        best = rate;
        n_best = n;
        n_best_right = n_right;
    }
    s->n_expected = n_best_right;
    return n_best;
}

// Adds the session's drafts to the engine's count, which other sessions read when they choose how many drafts to make.
static void count_queued(const struct frit_speculation *s, frit_engine *engine)
{
    engine->drafts.n_queued += s->n_drafts;
    engine->drafts.n_expected += s->n_drafts > 0 ? s->n_expected : 0;
}

// ------------------------------------------------------------------------------- drafts

static const char *why_not(const frit_session *session, const frit_sampler *sampler)
{
    if (!sampler->is_pick) return "the sampler has stages that steps do not run";
    if (sampler->n_vocab != session->engine->hp.n_vocab) return "the sampler is for another vocabulary";
    return NULL;
}

static bool is_ready(const frit_session *session)
{
    const size_t n = session->n_tokens;
    return session->failure.status == FRIT_OK && n > session->n_done &&
           n - session->n_done <= 1 + (size_t)session->pick.n_forced && session->n_flying == 0 &&
           session->pick.n == 0 && session->results.n_pushes == 0 && session->results.needs_logits &&
           session->tokens[n - 1] >= 0;
}

// How many of `most` drafts there is room for, in the context and in a step of decode rows.
static int32_t draft_room(const frit_session *session, size_t most)
{
    const frit_engine *engine = session->engine;
    const int32_t prefill = engine->rows.least[FRIT_ROWS_PREFILL];
    const int32_t n_step = engine->n_batch < prefill ? engine->n_batch : prefill - 1;
    const size_t n_waiting = session->n_tokens - session->n_done;
    const size_t n_left = (size_t)n_step > n_waiting ? (size_t)n_step - n_waiting : 0;
    if (most > n_left) most = n_left;
    const size_t n_ctx = (size_t)engine->n_ctx, n = session->n_tokens;
    const size_t room = n + 1 < n_ctx ? n_ctx - n - 1 : 0;   // the token after the drafts needs a position too
    if (most > room) most = room;
    const size_t wanted = (size_t)session->speculation->most;
    return (int32_t)(most < wanted ? most : wanted);
}

// How many drafts come before one that ends the text, or that is a part of a picture.
static int32_t count_before_end(const frit_model *model, const frit_drafted *draft)
{
    int32_t n = 0;
    while (n < draft->n && draft->tokens[n] < FRIT_FIRST_SOFT && !frit_token_is_end(model, draft->tokens[n])) n++;
    return n;
}

// How many of the tokens the sampler's grammar allows, one after another.
static int32_t count_allowed(frit_sampler *sampler, const frit_token *tokens, int32_t most)
{
    frit_sampler_mark marks[FRIT_MAX_DRAFTS];
    int32_t n = 0;
    if (!sampler->constraint) return most;
    while (n < most && frit_sampler_try(sampler, tokens[n], &marks[n])) n++;
    for (int32_t i = n; i-- > 0;) frit_sampler_go_back(sampler, &marks[i]);
    return n;
}

// Drafts text that the grammar forces, or what followed the same tokens earlier in the text. At most `most` drafts are
// verified. If there is a draft model and its drafts are probably better, sets n_requested instead.
static void make_drafts(frit_session *session, frit_sampler *sampler, int32_t most)
{
    enum { LONG_MATCH = 4, LEAST_FORCED = 2 };   // better than drafts of a model
    struct frit_speculation *s = session->speculation;
    frit_drafted *draft = &s->draft;
    draft->at = session->n_tokens;
    draft->n = s->n_drafts = s->n_requested = 0;
    s->by_drafter = false;
    if (!sampler->constraint) s->mask_ns = 0;
    if (s->looks_up) {
        if (sampler->constraint) draft->n = frit_constraint_forced(sampler->constraint, draft->tokens, s->most);
        draft->n_match = FRIT_MATCH_FORCED;
        frit_ngrams_follow(&s->ngrams, session->tokens, session->n_tokens);
        if (draft->n < LEAST_FORCED) draft->n = frit_ngrams_draft(&s->ngrams, draft->tokens, s->most, &draft->n_match);
        draft->n = count_allowed(sampler, draft->tokens, count_before_end(session->engine->model, draft));
        s->n_drafts = choose_n_drafts(s, session->engine, draft->n < most ? draft->n : most);
    }
    // A draft model has not seen the session's pictures.
    if (s->drafter.session && session->soft.n == 0 && (s->n_drafts == 0 || draft->n_match < LONG_MATCH))
        s->n_requested = most;
    else
        count_queued(s, session->engine);
}

bool frit_speculation_waits(frit_session *session)
{
    struct frit_speculation *s = session->speculation;
    if (!s) return false;
    if (s->drafter.session) return true;
    if (!s->looks_up) return false;
    learn_from_tokens(s, session->tokens, session->n_tokens);
    frit_drafted *draft = &s->draft;
    draft->at = session->n_tokens;
    frit_ngrams_follow(&s->ngrams, session->tokens, session->n_tokens);
    draft->n = frit_ngrams_draft(&s->ngrams, draft->tokens, s->most, &draft->n_match);
    return choose_n_drafts(s, session->engine, count_before_end(session->engine->model, draft)) > 0;
}

bool frit_speculation_is_forced(frit_session *session, const frit_sampler *sampler)
{
    enum { AHEAD = 2 };   // tokens that two steps give without drafts
    struct frit_speculation *s = session->speculation;
    frit_token tokens[FRIT_MAX_DRAFTS];
    if (!s || !s->looks_up || !sampler->constraint) return false;
    const int32_t n = frit_constraint_forced(sampler->constraint, tokens, s->most);
    if (n <= AHEAD) return false;
    learn_from_tokens(s, session->tokens, session->n_tokens);
    s->draft.n_match = FRIT_MATCH_FORCED;
    return choose_n_drafts(s, session->engine, n - AHEAD) > 0;
}

// Runs the draft models of items i and later whose draft models are on the same engine, together.
static void run_drafters(frit_draft_item *items, size_t n_items, size_t i)
{
    frit_drafter *first = NULL, **end = &first;
    const frit_engine *engine = items[i].session->engine;
    const frit_engine *draft = items[i].session->speculation->drafter.session->engine;
    for (; i < n_items; i++) {
        struct frit_speculation *s = items[i].session->speculation;
        if (!s || s->n_requested == 0 || items[i].session->engine != engine || s->drafter.session->engine != draft)
            continue;
        frit_drafter *d = &s->drafter;
        d->job = (frit_drafting){items[i].session, items[i].sampler, s->draft.tokens, s->n_requested, s->always};
        d->next = NULL;
        *end = d;
        end = &d->next;
        s->n_requested = 0;
    }
    if (draft) frit_drafters_run(first);   // NULL: the engine was freed
    for (frit_drafter *d = first, *next; d; d = next) {
        next = d->next;
        const frit_session *session = d->job.session;
        struct frit_speculation *s = session->speculation;
        s->by_drafter = draft && (d->n > 0 || d->status != FRIT_OK);
        if (s->by_drafter) s->draft.n = s->n_drafts = d->n;
        if (s->by_drafter) s->n_expected = d->n_tokens;
        count_queued(s, session->engine);
        if (draft && d->status != FRIT_OK) frit_drafter_deinit(d);   // the session continues without the draft model
    }
}

frit_status frit_sessions_draft(frit_draft_item *items, size_t n_items)
{
    FRIT_REQUIRE_ITEMS(items, n_items);
    FRIT_REQUIRE_UNUSED_ITEMS(items, n_items);
    for (size_t i = 0; i < n_items; i++) {
        const frit_session *session = items[i].session;
        const frit_sampler *sampler = items[i].sampler;
        items[i].n_drafts = 0;
        FRIT_REQUIRE(session);
        FRIT_REQUIRE(sampler);
        FRIT_TRY(frit_session_check_usable(session));
    }
    for (size_t i = 0; i < n_items; i++) {
        frit_session *session = items[i].session;
        struct frit_speculation *s = session->speculation;
        if (!s) continue;
        s->n_drafts = s->n_requested = 0;
        s->info.why_not = why_not(session, items[i].sampler);
        if (s->info.why_not || !is_ready(session)) continue;
        learn_from_tokens(s, session->tokens, session->n_tokens);
        make_drafts(session, items[i].sampler, draft_room(session, items[i].max_drafts));
    }
    for (size_t i = 0; i < n_items; i++)
        if (items[i].session->speculation && items[i].session->speculation->n_requested > 0)
            run_drafters(items, n_items, i);
    for (size_t i = 0; i < n_items; i++) {
        frit_session *session = items[i].session;
        const struct frit_speculation *s = session->speculation;
        if (!s || s->n_drafts == 0) continue;
        const size_t n = (size_t)s->n_drafts;
        memcpy(session->tokens + session->n_tokens, s->draft.tokens, n * sizeof *session->tokens);
        session->n_tokens += n;
        items[i].n_drafts = n;
    }
    return FRIT_OK;
}

frit_status frit_session_draft(frit_session *session, frit_sampler *sampler, size_t max_drafts, size_t *n_drafts)
{
    FRIT_REQUIRE(n_drafts);
    *n_drafts = 0;
    FRIT_REQUIRE(session);
    FRIT_REQUIRE(sampler);
    frit_draft_item item = {.session = session, .sampler = sampler, .max_drafts = max_drafts};
    const frit_status status = frit_sessions_draft(&item, 1);
    *n_drafts = item.n_drafts;
    return status;
}

frit_status frit_session_predict(frit_session *session, const frit_token *tokens, size_t n_tokens)
{
    enum { BEFORE = FRIT_LONGEST_MATCH };   // tokens of the session that the prediction follows
    FRIT_REQUIRE(session);
    FRIT_REQUIRE_ITEMS(tokens, n_tokens);
    FRIT_TRY(frit_session_check_usable(session));
    struct frit_speculation *s = session->speculation;
    if (!s || !s->looks_up || (n_tokens == 0 && s->ngrams.n_predicted == 0)) return FRIT_OK;
    if (n_tokens == 0) return frit_ngrams_set_prediction(&s->ngrams, NULL, 0);
    const size_t n_ctx = (size_t)session->engine->n_ctx, n = n_tokens < n_ctx ? n_tokens : n_ctx;
    const size_t n_before = session->n_tokens < BEFORE ? session->n_tokens : BEFORE;
    frit_token *prediction = malloc((n_before + n) * sizeof *prediction);
    if (!prediction) return frit_fail_memory((n_before + n) * sizeof *prediction, "a prediction");
    if (n_before > 0) memcpy(prediction, session->tokens + session->n_tokens - n_before, n_before * sizeof *prediction);
    memcpy(prediction + n_before, tokens, n * sizeof *prediction);
    const frit_status status = frit_ngrams_set_prediction(&s->ngrams, prediction, n_before + n);
    free(prediction);
    return status;
}

void frit_speculation_measure_masks(frit_session *session, int32_t n, double ns)
{
    enum { MASKS = 8 };   // masks that the average remembers
    struct frit_speculation *s = session->speculation;
    if (!s || n == 0) return;
    s->mask_ns += s->mask_ns > 0 ? (ns / n - s->mask_ns) / MASKS : ns / n;
}

void frit_speculation_count(frit_session *session, int32_t n_drafted, int32_t n_accepted)
{
    struct frit_speculation *s = session->speculation;
    if (!s) return;
    s->info.n_drafted += (uint64_t)n_drafted;
    s->info.n_accepted += (uint64_t)n_accepted;
}

frit_status frit_session_get_speculation(const frit_session *session, frit_speculation_info *info)
{
    FRIT_REQUIRE(info);
    *info = (frit_speculation_info){0};
    FRIT_REQUIRE(session);
    if (session->speculation) *info = session->speculation->info;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- generating

static frit_status verify(frit_session *session, frit_sampler *sampler, size_t n_drafts, frit_picked *picked)
{
    FRIT_TRY(frit_session_pick(session, sampler, &(frit_pick_options){.n_drafts = n_drafts}));
    while (frit_session_pending(session) > 0) {
        int32_t n_rows;
        FRIT_TRY(frit_engine_step(session->engine, &n_rows));
        if (n_rows == 0) return frit_fail(FRIT_E_INTERNAL, "the session's tokens find no room in a step");
    }
    FRIT_TRY(frit_session_status(session));
    return frit_session_picked(session, picked);
}

// Writes the accepted drafts, which the session has, and the token after them. After the end of a grammar no token
// follows.
static frit_status accept_tokens(frit_session *session, frit_sampler *sampler, const frit_picked *picked,
                                 frit_token *tokens, size_t *n_tokens)
{
    const size_t n_drafts = (size_t)picked->n_accepted, n_before = session->n_tokens - n_drafts;
    memcpy(tokens, session->tokens + n_before, n_drafts * sizeof *tokens);
    tokens[n_drafts] = picked->token;
    FRIT_TRY(frit_sampler_set_position(sampler, n_before + session->shift.n_dropped));
    for (size_t n = 0; n <= n_drafts && (n == 0 || !frit_sampler_is_over(sampler)); *n_tokens = ++n)
        FRIT_TRY(frit_sampler_accept(sampler, tokens[n]));
    if (*n_tokens > n_drafts) return frit_session_push(session, &picked->token, 1, NULL);
    return frit_session_truncate(session, n_before + *n_tokens);
}

// Pushes tokens that a grammar forces; they run later.
static frit_status push_forced(frit_session *session, frit_sampler *sampler, frit_token *tokens, size_t capacity,
                               size_t *n_tokens)
{
    while (*n_tokens < capacity && !frit_sampler_is_over(sampler)) {
        frit_token *token = &tokens[*n_tokens];
        FRIT_TRY(frit_session_push_forced(session, sampler, token));
        if (*token < 0) return FRIT_OK;
        FRIT_TRY(frit_sampler_set_position(sampler, session->n_tokens + session->shift.n_dropped - 1));
        FRIT_TRY(frit_sampler_accept(sampler, *token));
        ++*n_tokens;
    }
    return FRIT_OK;
}

// Drops drafts that no step has verified. After a preemption the token before them may have run in a step without them,
// which gave a pick and no logits: then it runs again.
static frit_status drop_unverified(frit_session *session, size_t n_before)
{
    const frit_token last = session->tokens[n_before - 1];
    FRIT_TRY(frit_session_truncate(session, n_before));
    if (frit_session_pending(session) > 0 || frit_session_logits(session)) return FRIT_OK;
    FRIT_TRY(frit_session_truncate(session, n_before - 1));
    return frit_session_push(session, &last, 1, NULL);
}

frit_status frit_session_next_tokens(frit_session *session, frit_sampler *sampler, frit_token *tokens, size_t capacity,
                                     size_t *n_tokens)
{
    FRIT_REQUIRE(n_tokens);
    *n_tokens = 0;
    FRIT_REQUIRE(session);
    FRIT_REQUIRE(sampler);
    FRIT_REQUIRE_ITEMS(tokens, capacity);
    size_t n_drafts = 0;
    frit_picked picked;
    if (capacity == 0) return FRIT_OK;
    if (frit_ahead_continues(session, sampler)) {
        FRIT_TRY(frit_ahead_next(session, sampler, tokens));
        *n_tokens = 1;
        return FRIT_OK;
    }
    FRIT_TRY(frit_session_settle_all(session));
    FRIT_TRY(push_forced(session, sampler, tokens, capacity, n_tokens));
    if (*n_tokens > 0) return FRIT_OK;
    FRIT_TRY(frit_session_draft(session, sampler, capacity - 1, &n_drafts));
    const size_t n_before = session->n_tokens - n_drafts;
    const frit_status status = n_drafts > 0 ? verify(session, sampler, n_drafts, &picked) : FRIT_E_LIMIT;
    if (status == FRIT_OK) return accept_tokens(session, sampler, &picked, tokens, n_tokens);
    // Without drafts: they may have found no room in the cache. A failed session gives its status.
    if (n_drafts > 0 && session->failure.status == FRIT_OK) FRIT_TRY(drop_unverified(session, n_before));
    FRIT_TRY(frit_session_next(session, sampler, tokens));
    *n_tokens = 1;
    return FRIT_OK;
}
