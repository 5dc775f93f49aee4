// SPDX-License-Identifier: MIT
// A session's timeline: pushing, forgetting, reading its logits.
//
//     tokens  [ done: in the cache ............ | queued ........ ]
//              0                        n_done ^        n_tokens ^
//
// Truncating a session releases pages at the end. A recurrent state, or a window whose pages were released, can only go
// back to a snapshot: tokens after the snapshot that are kept are queued again, and run without results, but for the
// last token's logits. In models in which every token sees all others, all tokens run again when their number changes.
//
// A snapshot is taken shortly before the end of each push of several tokens, because callers usually go back to the end
// of a prompt: to try an answer again, or because templates render the opening of an answer in another way once another
// message follows.
#include "base/grow.h"
#include "engine/sched/ahead.h"
#include "engine/spec/speculate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SNAPSHOT_BEFORE = 16 };   // tokens at the end of a push

frit_status frit_session_new(frit_session **out, frit_engine *engine)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(engine);
    if (engine->in_step) return frit_fail(FRIT_E_INVALID, "a session cannot be made from within a row function");
    frit_session *session = calloc(1, sizeof *session);
    if (!session) return frit_fail_memory(sizeof *session, "a session");
    size_t n_vocab = (size_t)engine->hp.n_vocab;
    size_t n_sessions = 1;
    for (const frit_session *s = engine->sessions; s; s = s->next) n_sessions++;
    session->prefix.n_known = -1;
    session->prompt.weight = 1;
    session->tokens = calloc((size_t)engine->n_ctx, sizeof *session->tokens);
    session->results.logits = calloc(n_vocab, sizeof *session->results.logits);
    frit_status status =
        session->tokens && session->results.logits
            ? frit_kv_map_reserve(&engine->kv, &session->map, engine->n_ctx)
            : frit_fail_memory((size_t)engine->n_ctx * sizeof(frit_token) + n_vocab * sizeof(float), "a session");
    if (status == FRIT_OK) status = frit_step_reserve_tables(engine, n_sessions, (size_t)engine->adapters.n);
    if (status != FRIT_OK) {
        frit_session_free(session);
        return status;
    }
    session->engine = engine;
    status = frit_prefix_join(session);
    if (status != FRIT_OK) {
        session->engine = NULL;   // it is not in the engine's list yet
        frit_session_free(session);
        return status;
    }
    frit_session **end = &engine->sessions;
    while (*end) end = &(*end)->next;
    *end = session;
    *out = session;
    return FRIT_OK;
}

void frit_session_free(frit_session *session)
{
    if (!session) return;
    if (session->engine) {
        session->results.n_pushes = 0;   // its row functions are not called any more
        if (session->engine->ahead == session) session->engine->ahead = NULL;
        frit_flight_wait_all(session->engine);
        frit_prefix_cache(session, true);
        frit_prefix_leave(session);
        frit_session **at = &session->engine->sessions;
        while (*at != session) at = &(*at)->next;
        *at = session->next;
        frit_kv_release(&session->engine->kv, &session->map);
        frit_kv_release_source(&session->engine->kv, &session->map);
    }
    frit_kv_map_free(&session->map);
    free(session->source.tokens);
    free(session->tokens);
    frit_session_free_picks(session);
    frit_speculation_free(session->speculation);
    frit_hidden_release(session);
    frit_session_soft_free(session);
    free(session->results.pushes);
    free(session->results.logits);
    free(session->note.text);
    free(session->adapters.scales);
    free(session);
}

frit_status frit_session_check_usable(const frit_session *session)
{
    if (!session->engine) return frit_fail(FRIT_E_INVALID, "the session's engine was freed");
    if (session->engine->in_step)
        return frit_fail(FRIT_E_INVALID, "a session cannot be used from within a row function");
    frit_ahead_cancel(session->engine);
    return FRIT_OK;
}

// A step that fails keeps its status, and its tokens are queued again.
frit_status frit_session_settle(const frit_session *session)
{
    FRIT_TRY(frit_session_check_usable(session));
    frit_flight_wait_session(session);
    return FRIT_OK;
}

frit_status frit_session_settle_all(const frit_session *session)
{
    FRIT_TRY(frit_session_check_usable(session));
    frit_flight_wait_all(session->engine);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- status

frit_status frit_session_status(const frit_session *session)
{
    FRIT_REQUIRE(session);
    if (session->failure.status != FRIT_OK) frit_failure_set(&session->failure.error);
    return session->failure.status;
}

void frit_session_fail(frit_session *session, frit_status status)
{
    frit_failure_get(&session->failure.error);
    session->failure.status = status;
    session->results.n_pushes = 0;
    session->results.logits_at = 0;
    frit_session_clear_picks(session);
    frit_prefix_drop(session);
}

// ------------------------------------------------------------------------------- pushing

static frit_status check_tokens(frit_session *session, const frit_token *tokens, size_t n)
{
    const frit_engine *engine = session->engine;
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < 0 || (tokens[i] >= engine->hp.n_vocab && tokens[i] < FRIT_FIRST_SOFT))
            return frit_fail(FRIT_E_INVALID, "token %zu of %zu is %d, this model's ids are 0 to %d", i, n, tokens[i],
                             engine->hp.n_vocab - 1);
    FRIT_TRY(frit_session_soft_reserve(session, tokens, n));
    return frit_session_make_room(session, n);
}

void frit_session_run_again(frit_session *session)
{
    if (session->results.n_delivered < session->n_done) session->results.n_delivered = session->n_done;
    frit_prefix_cache(session, true);
    session->n_done = 0;
    frit_kv_release(&session->engine->kv, &session->map);
}

// For models that run all rows of a session in one step: makes room for them, and checks that all pending results are
// of one kind.
static frit_status prepare_whole(const frit_session *session, size_t n, frit_output output)
{
    const bool hidden = output == FRIT_OUTPUT_EMBEDDINGS;
    for (size_t i = session->n_done; i < session->n_tokens && output != FRIT_OUTPUT_NONE; i++) {
        const frit_result result = frit_session_result(session, i);
        if (i + 1 == session->n_tokens && session->results.n_pushes == 0)
            break;   // the logits after the last push are not needed any more
        if (result != FRIT_RESULT_NONE && (result == FRIT_RESULT_HIDDEN) != hidden)
            return frit_fail(FRIT_E_INVALID, "tokens that wait want %s, and all must run in one step",
                             hidden ? "logits" : "hidden states");
    }
    return frit_engine_grow(session->engine, session->n_tokens + n);
}

static frit_status reserve_push(frit_session *session)
{
    return FRIT_GROW(session->results.pushes, session->results.capacity, session->results.n_pushes + 1,
                     "a queue of pushes");
}

// Plans a snapshot shortly before the end of the push, at the beginning of a page.
static void plan_snapshot(frit_session *session, size_t n_tokens)
{
    const size_t end = session->n_tokens + n_tokens;
    const size_t at = end > SNAPSHOT_BEFORE ? (end - SNAPSHOT_BEFORE) / FRIT_PAGE_TOKENS * FRIT_PAGE_TOKENS : 0;
    if (at > session->n_tokens) session->snapshot_at = at;
}

static frit_status check_logits(const frit_model *model, frit_output output)
{
    if (!model->arch->is_encoder) return FRIT_OK;
    if (!frit_arch_has_logits(model->arch, &model->weights))
        return frit_fail_file(FRIT_E_UNSUPPORTED,
                              "%s: an encoder has no logits: it gives embeddings and generates no text",
                              model->info.path);
    if (output == FRIT_OUTPUT_ALL) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED,
                          "%s: an encoder's masked-LM head gives logits of every token, not of the last",
                          model->info.path);
}

static frit_status push(frit_session *session, const frit_token *tokens, size_t n_tokens, frit_push_options chosen)
{
    bool has_rows = chosen.output == FRIT_OUTPUT_ALL || chosen.output == FRIT_OUTPUT_EMBEDDINGS;
    FRIT_TRY(frit_session_check_usable(session));
    FRIT_TRY(frit_session_status(session));
    if ((unsigned)chosen.output > FRIT_OUTPUT_EMBEDDINGS)
        return frit_fail(FRIT_E_INVALID, "output %d does not exist", (int)chosen.output);
    if (has_rows && !chosen.row)
        return frit_fail(FRIT_E_INVALID, "a push with results for every token needs a row function");
    const bool wants_logits = chosen.output == FRIT_OUTPUT_LAST || chosen.output == FRIT_OUTPUT_ALL;
    if (wants_logits) FRIT_TRY(check_logits(session->engine->model, chosen.output));
    if (n_tokens == 0) return FRIT_OK;
    if (session->engine->model->arch->is_encoder_decoder && session->source.n == 0)
        return frit_fail(FRIT_E_INVALID, "the decoder has no source to look at: frit_session_encode comes first");
    FRIT_TRY(check_tokens(session, tokens, n_tokens));
    const bool is_whole = session->engine->hp.is_bidirectional;
    if (is_whole) FRIT_TRY(frit_session_settle_all(session));   // tokens that ran are queued again
    if (is_whole) FRIT_TRY(prepare_whole(session, n_tokens, chosen.output));
    if (has_rows) FRIT_TRY(reserve_push(session));
    if (has_rows)
        session->results.pushes[session->results.n_pushes++] = (frit_row_push){session->n_tokens, n_tokens, chosen};
    plan_snapshot(session, n_tokens);
    memcpy(session->tokens + session->n_tokens, tokens, n_tokens * sizeof *tokens);
    frit_session_soft_take(session, tokens, n_tokens);
    if (is_whole) frit_session_run_again(session);
    session->n_tokens += n_tokens;
    if (n_tokens > 1) session->pick.n_forced = 0;
    session->results.needs_logits = wants_logits;
    return FRIT_OK;
}

frit_status frit_session_push(frit_session *session, const frit_token *tokens, size_t n_tokens,
                              const frit_push_options *options)
{
    FRIT_REQUIRE(session);
    FRIT_REQUIRE_ITEMS(tokens, n_tokens);
    FRIT_REQUIRE_UNUSED(options);
    if (!options || options->n_media == 0)
        return push(session, tokens, n_tokens, options ? *options : (frit_push_options){0});
    FRIT_REQUIRE_ITEMS(options->media, options->n_media);
    for (size_t i = 0; i < options->n_media; i++) FRIT_REQUIRE(options->media[i]);
    FRIT_TRY(frit_session_check_usable(session));
    frit_soft_run **runs;
    size_t n_runs;
    FRIT_TRY(frit_media_enter(&runs, &n_runs, session->engine, options->media, options->n_media));
    const frit_status status = push(session, tokens, n_tokens, *options);
    frit_media_leave(runs, n_runs);
    return status;
}

// ------------------------------------------------------------------------------- sources

void frit_session_release_source(frit_session *session)
{
    if (session->engine) frit_kv_release_source(&session->engine->kv, &session->map);
    session->source.n = 0;
    session->source.waits = false;
}

frit_status frit_session_set_source(frit_session *session, const void *tokens, size_t n)
{
    if (!session->source.tokens)
        session->source.tokens = calloc((size_t)session->engine->n_ctx, sizeof *session->source.tokens);
    if (!session->source.tokens)
        return frit_fail_memory((size_t)session->engine->n_ctx * sizeof(frit_token), "a source");
    memcpy(session->source.tokens, tokens, n * sizeof *session->source.tokens);
    session->source.n = n;
    session->source.waits = true;
    session->source.options = (frit_push_options){.output = FRIT_OUTPUT_NONE};
    return FRIT_OK;
}

static frit_status check_source(const frit_session *session, const frit_token *tokens, size_t n,
                                const frit_push_options *options)
{
    const frit_engine *engine = session->engine;
    if (!engine->model->arch->is_encoder_decoder)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: only encoder-decoders have a source to encode",
                              engine->model->info.path);
    if (options->output == FRIT_OUTPUT_ALL)
        return frit_fail(FRIT_E_INVALID, "an encoder has no logits: sources give hidden states or nothing");
    if (options->output == FRIT_OUTPUT_EMBEDDINGS && !options->row)
        return frit_fail(FRIT_E_INVALID, "a source with results for every token needs a row function");
    if (n == 0) return frit_fail(FRIT_E_INVALID, "a source of no tokens cannot be encoded");
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= engine->hp.n_vocab)
            return frit_fail(FRIT_E_INVALID, "token %zu of %zu is %d, this model's ids are 0 to %d", i, n, tokens[i],
                             engine->hp.n_vocab - 1);
    if (n > (size_t)engine->n_ctx)
        return frit_fail(FRIT_E_LIMIT, "a source of %zu tokens is longer than the context of %d", n, engine->n_ctx);
    return FRIT_OK;
}

frit_status frit_session_encode(frit_session *session, const frit_token *tokens, size_t n_tokens,
                                const frit_push_options *options)
{
    FRIT_REQUIRE(session);
    FRIT_REQUIRE_ITEMS(tokens, n_tokens);
    FRIT_REQUIRE_UNUSED(options);
    const frit_push_options chosen = options ? *options : (frit_push_options){.output = FRIT_OUTPUT_NONE};
    FRIT_TRY(frit_session_settle_all(session));
    FRIT_TRY(check_source(session, tokens, n_tokens, &chosen));
    FRIT_TRY(frit_engine_grow(session->engine, n_tokens));   // before the session is changed
    FRIT_TRY(frit_session_truncate(session, 0));
    frit_session_release_source(session);
    FRIT_TRY(frit_session_set_source(session, tokens, n_tokens));
    session->source.options = chosen;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- results

frit_result frit_session_result(const frit_session *session, size_t i)
{
    for (size_t q = 0; q < session->results.n_pushes && i >= session->results.n_delivered; q++) {
        const frit_row_push *push = &session->results.pushes[q];
        if (i - push->first < push->n)   // wraps around for tokens before the push
            return push->options.output == FRIT_OUTPUT_ALL ? FRIT_RESULT_LOGITS : FRIT_RESULT_HIDDEN;
    }
    const bool wanted =
        (i + 1 == session->n_tokens && session->results.needs_logits) || frit_session_find_pick(session, i);
    return wanted ? FRIT_RESULT_LOGITS : FRIT_RESULT_NONE;
}

// Goes back in the cache to n_keep tokens or fewer, and sets n_done to how many. If that fails, all tokens run again.
static frit_status go_back(frit_session *session, size_t n_keep)
{
    frit_engine *engine = session->engine;
    int32_t n_done = (int32_t)session->n_done;
    if (engine->hp.is_bidirectional && n_keep < session->n_done) n_keep = 0;
    const frit_status status = frit_kv_truncate(&engine->kv, &session->map, (int32_t)n_keep, &n_done);
    session->n_done = (size_t)n_done;
    return status;
}

void frit_session_run_from(frit_session *session, size_t first)
{
    if (first >= session->n_done) return;
    session->prefix.n_known = -1;
    if (session->results.n_delivered < session->n_done) session->results.n_delivered = session->n_done;
    (void)go_back(session, first);   // if it fails, all tokens run again
}

frit_status frit_session_truncate(frit_session *session, size_t n_keep)
{
    FRIT_REQUIRE(session);
    const bool keeps_all = n_keep >= session->n_done && frit_session_knows(session, session->n_done);
    FRIT_TRY(keeps_all ? frit_session_check_usable(session) : frit_session_settle(session));
    if (n_keep > session->n_tokens)
        return frit_fail(FRIT_E_INVALID, "a session of %zu tokens cannot be truncated to %zu", session->n_tokens,
                         n_keep);
    if (frit_session_soft_floor(session, n_keep) != n_keep)
        return frit_fail(FRIT_E_INVALID, "the first %zu tokens cannot be kept: token %zu is within a picture", n_keep,
                         n_keep);
    if (!frit_session_knows(session, n_keep))
        return frit_fail(FRIT_E_INVALID, "the first %zu tokens cannot be kept: the last of them is not known yet",
                         n_keep);
    frit_prefix_cache(session, n_keep == 0);
    session->failure.status = FRIT_OK;
    frit_session_clear_picks(session);
    if (n_keep == 0) session->shift.n_dropped = 0;
    if (n_keep == session->n_tokens) return FRIT_OK;
    session->n_tokens = n_keep;
    frit_session_soft_drop(session, n_keep);
    if (session->prompt.n_long > n_keep) session->prompt.n_long = n_keep;
    session->prefix.n_known = -1;
    if (session->results.n_delivered < session->n_done) session->results.n_delivered = session->n_done;
    if (session->results.n_delivered > n_keep) session->results.n_delivered = n_keep;
    const frit_status status = go_back(session, n_keep);
    while (session->results.n_pushes > 0 && session->results.pushes[session->results.n_pushes - 1].first >= n_keep)
        session->results.n_pushes--;
    if (session->results.n_pushes > 0) {
        frit_row_push *last = &session->results.pushes[session->results.n_pushes - 1];
        if (last->n > n_keep - last->first) last->n = n_keep - last->first;
    }
    session->results.needs_logits = !session->engine->model->arch->is_encoder;   // after the last queued token, if any
    if (session->prefix.n_cached > n_keep) session->prefix.n_cached = n_keep;
    if (session->results.logits_at > n_keep) session->results.logits_at = 0;
    if (session->snapshot_at > n_keep) session->snapshot_at = 0;
    return status;
}

frit_status frit_session_stop(frit_session *session)
{
    FRIT_REQUIRE(session);
    // Row functions of the caller are not called after the return, and unknown tokens would stay unknown.
    const bool must_wait = session->results.n_pushes > 0 || !frit_session_knows(session, session->n_done);
    if (must_wait) FRIT_TRY(frit_session_settle(session));
    return frit_session_truncate(session, frit_session_soft_floor(session, session->n_done));
}

size_t frit_session_pending(const frit_session *session)
{
    FRIT_REQUIRE_OR(0, session);
    if (session->failure.status != FRIT_OK) return 0;
    const bool is_ahead = session->engine && session->engine->ahead == session;
    if (is_ahead && session->n_flying == 0 && session->n_done == session->n_tokens) return 1;   // it will be cancelled
    return session->n_tokens - session->n_done + session->n_flying + (session->source.waits ? session->source.n : 0);
}

size_t frit_session_length(const frit_session *session)
{
    FRIT_REQUIRE_OR(0, session);
    return session->n_tokens;
}

const frit_token *frit_session_tokens(const frit_session *session)
{
    FRIT_REQUIRE_OR(NULL, session);
    return session->tokens;
}

const frit_token *frit_session_source(const frit_session *session, size_t *n_tokens)
{
    FRIT_REQUIRE_OR(NULL, n_tokens);
    *n_tokens = 0;
    FRIT_REQUIRE_OR(NULL, session);
    *n_tokens = session->source.n;
    return session->source.n > 0 ? session->source.tokens : NULL;
}

const float *frit_session_logits(const frit_session *session)
{
    FRIT_REQUIRE_OR(NULL, session);
    const bool there = session->results.logits_at > 0 && session->results.logits_at == session->n_tokens &&
                       session->n_done == session->n_tokens && session->n_flying == 0;
    return there ? session->results.logits : NULL;
}

static bool is_full(const frit_session *session)
{
    return session->n_tokens == (size_t)session->engine->n_ctx && !session->shift.on;
}

// Requests the next token from the step that runs the last one, if that is queued and steps can run the sampler.
static bool request_pick(frit_session *session, frit_sampler *sampler)
{
    const size_t n = session->n_tokens;
    return frit_session_pending(session) > 0 && sampler->is_pick && session->results.needs_logits &&
           !is_full(session) && session->pick.n == 0 && n > session->n_done &&
           frit_session_pick(session, sampler, NULL) == FRIT_OK;
}

static frit_status run_pending(frit_session *session)
{
    while (frit_session_pending(session) > 0) {
        int32_t n_rows;
        FRIT_TRY(frit_engine_step(session->engine, &n_rows));
        if (n_rows == 0 && frit_session_pending(session) > 0)
            return frit_fail(FRIT_E_INTERNAL, "the session's tokens find no room in a step");
    }
    return frit_session_status(session);
}

static frit_status sample(frit_session *session, frit_sampler *sampler, frit_token *token)
{
    const float *logits = frit_session_logits(session);
    if (!logits)
        return frit_fail(FRIT_E_INVALID, session->n_tokens > 0 ? "the last push asked for no logits to sample from"
                                                               : "the session is empty: push a token first");
    if (sampler->n_vocab != session->engine->hp.n_vocab)
        return frit_fail(FRIT_E_INVALID, "the sampler is for %d tokens, the model has %d", sampler->n_vocab,
                         session->engine->hp.n_vocab);
    if (is_full(session)) return frit_fail(FRIT_E_LIMIT, "the context of %d tokens is full", session->engine->n_ctx);
    FRIT_TRY(frit_sampler_set_position(sampler, session->n_tokens + session->shift.n_dropped));
    return frit_sampler_sample(sampler, logits, token);
}

static frit_status accept_last(const frit_session *session, frit_sampler *sampler, frit_token token)
{
    FRIT_TRY(frit_sampler_set_position(sampler, session->n_tokens + session->shift.n_dropped - 1));
    return frit_sampler_accept(sampler, token);
}

frit_status frit_session_next(frit_session *session, frit_sampler *sampler, frit_token *token)
{
    FRIT_REQUIRE(session);
    FRIT_REQUIRE(sampler);
    FRIT_REQUIRE(token);
    if (frit_ahead_continues(session, sampler)) return frit_ahead_next(session, sampler, token);
    FRIT_TRY(frit_session_settle_all(session));
    frit_picked picked = {0};
    frit_token forced;
    FRIT_TRY(frit_session_push_forced(session, sampler, &forced));
    if (forced >= 0) {
        *token = forced;
        return accept_last(session, sampler, forced);
    }
    const bool asked = request_pick(session, sampler);
    frit_status status = run_pending(session);
    if (asked && status != FRIT_OK) frit_session_clear_picks(session);
    FRIT_TRY(status);
    if (asked)
        FRIT_TRY(frit_session_picked(session, &picked));
    else
        FRIT_TRY(sample(session, sampler, &picked.token));
    FRIT_TRY(frit_session_push(session, &picked.token, 1, NULL));
    *token = picked.token;
    FRIT_TRY(accept_last(session, sampler, picked.token));
    frit_ahead_begin(session, sampler);
    return FRIT_OK;
}
