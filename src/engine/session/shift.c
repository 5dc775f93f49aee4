// SPDX-License-Identifier: MIT
// The context shift: which models allow it, when it happens, and how it changes a session.
//
//     tokens  [ kept | dropped | ran ........ | queued ]  ->  [ kept | ran ........ | queued ]
//                                      n_done ^                        n_done ^
//
// Only tokens that ran and whose results were delivered leave. When a shift happens depends on the number of tokens
// alone, so the text does not depend on other sessions, on drafts, or on how the prompt was cut.
//
// After the shift the remaining tokens have the positions of a shorter text, in the page table and in rotations.
#include "engine/engine.h"
#include "engine/spec/speculate.h"

#include "base/number.h"

#include <string.h>

static int32_t whole_pages(int64_t n)
{
    return (int32_t)(n / FRIT_PAGE_TOKENS * FRIT_PAGE_TOKENS);
}

static int32_t round_up(int32_t n)
{
    return frit_kv_pages_of(n) * FRIT_PAGE_TOKENS;
}

// ------------------------------------------------------------------------------- which models

enum { TIMES = 2 };   // refusals say the size of a context this many times as long

static double mib_of(uint64_t token_bytes, int64_t n_tokens)
{
    return (double)token_bytes * (double)n_tokens / (1 << 20);
}

// Bytes of one token in a cache of this type; 0: the model's heads do not allow the type.
static frit_status token_bytes(const frit_engine *engine, frit_dtype type, uint64_t *n_bytes)
{
    const frit_kv *kv = &engine->kv;
    frit_arena arena = {0};
    frit_cache_spec *specs = frit_arena_new(&arena, frit_cache_spec, (size_t)kv->n_layers + 1);
    if (!specs) return frit_fail_memory((size_t)kv->n_layers * sizeof *specs, "a cache's layers");
    for (int32_t i = 0; i < kv->n_layers; i++) specs[i] = kv->layers[i].spec;
    const frit_kv_shape shape = {.specs = specs, .n_layers = kv->n_layers, .types = {type, type}};
    *n_bytes = frit_kv_can(&shape) ? frit_kv_token_bytes(&shape) : 0;
    frit_arena_free(&arena);
    return FRIT_OK;
}

// Refuses a shift, and says how much memory a longer context takes.
static frit_status refuse_shift(const frit_engine *engine, const char *why)
{
    const int64_t n = engine->n_ctx, more = TIMES * n;
    const uint64_t now = engine->kv_token_bytes;
    const char *path = engine->model->info.path;
    uint64_t small = 0;
    FRIT_TRY(token_bytes(engine, FRIT_DTYPE_Q8_0, &small));
    if (now == 0)
        return frit_fail_file(FRIT_E_UNSUPPORTED,
                              "%s: no context shift: %s; a context above %lld tokens takes no more memory", path, why,
                              (long long)n);
    if (small == 0 || small >= now)
        return frit_fail_file(
            FRIT_E_UNSUPPORTED,
            "%s: no context shift: %s; the cache of %lld tokens takes %.1f MiB, of %lld tokens %.1f MiB", path, why,
            (long long)n, mib_of(now, n), (long long)more, mib_of(now, more));
    return frit_fail_file(
        FRIT_E_UNSUPPORTED,
        "%s: no context shift: %s; the cache of %lld tokens takes %.1f MiB, of %lld tokens %.1f MiB, or "
        "%.1f MiB with cache types q8_0",
        path, why, (long long)n, mib_of(now, n), (long long)more, mib_of(now, more), mib_of(small, more));
}

static frit_status check_model(frit_engine *engine)
{
    char why[FRIT_ERROR_BYTES];
    const frit_status status = frit_engine_find_rotations(engine);
    if (status != FRIT_E_UNSUPPORTED) return status;
    frit_format(why, sizeof why, "%s", frit_error());
    return refuse_shift(engine, why);
}

// ------------------------------------------------------------------------------- how much

// The longest attention window of a layer, if it is shorter than the context; otherwise 0.
static int32_t window_of(const frit_engine *engine)
{
    int32_t window = 0;
    for (int32_t g = 0; g < engine->kv.n_groups; g++) {
        const frit_kv_group *group = &engine->kv.groups[g];
        if (!group->of_source && group->window > window && group->window < engine->n_ctx) window = group->window;
    }
    return window;
}

// Chooses how many tokens stay and leave. After the tokens that leave, a page or the longest window stays.
static frit_status choose_shift(const frit_engine *engine, const frit_shift_options *options, frit_session_shift *out)
{
    const int32_t window = window_of(engine), n_ctx = engine->n_ctx, page = FRIT_PAGE_TOKENS;
    if (options->n_keep < 0 || options->n_drop < 0)
        return frit_fail(FRIT_E_INVALID, "a context shift keeps %d tokens and drops %d; expected 0 or more",
                         options->n_keep, options->n_drop);
    const int64_t asked = options->n_keep > page ? options->n_keep : page;
    const int64_t n_keep = (asked + page - 1) / page * page, n_stay = window > page ? window - 1 : page;
    const int64_t most = whole_pages(n_ctx - n_keep - n_stay);
    const char *of_window = window > page ? ", and its layers look back at a window" : "";
    if (n_ctx < n_keep + n_stay + page)
        return frit_fail(FRIT_E_INVALID,
                         "a context shift that keeps %lld tokens needs a context of %lld at least, found %d%s",
                         (long long)n_keep, (long long)(n_keep + n_stay + page), n_ctx, of_window);
    if (options->n_drop > most)
        return frit_fail(FRIT_E_INVALID, "a context shift drops %d tokens; expected up to %lld of a context of %d%s",
                         options->n_drop, (long long)most, n_ctx, of_window);
    int64_t n_drop = options->n_drop > 0 ? round_up(options->n_drop) : whole_pages((n_ctx - n_keep) / 2);
    if (n_drop < page) n_drop = page;
    out->on = true;
    out->n_keep = (int32_t)n_keep;
    out->n_drop = (int32_t)(n_drop < most ? n_drop : most);
    return FRIT_OK;
}

frit_status frit_session_set_shift(frit_session *session, const frit_shift_options *options)
{
    FRIT_REQUIRE(session);
    FRIT_REQUIRE_UNUSED(options);
    FRIT_TRY(frit_session_check_usable(session));
    session->shift.on = false;
    if (!options) return FRIT_OK;
    FRIT_TRY(check_model(session->engine));
    if (session->soft.n > 0)
        return frit_fail(FRIT_E_UNSUPPORTED, "the context of a session with pictures cannot shift");
    return choose_shift(session->engine, options, &session->shift);
}

frit_status frit_session_set_extend(frit_session *session, const frit_extend_options *options)
{
    FRIT_REQUIRE(session);
    FRIT_REQUIRE_UNUSED(options);
    FRIT_TRY(frit_session_check_usable(session));
    if (!options || options->n_group <= 1) return FRIT_OK;
    return frit_fail(FRIT_E_UNSUPPORTED,
                     "self-extend with groups of %d tokens is no longer supported: extend the context with YaRN "
                     "(frit_model_options.rope_scaling)",
                     options->n_group);
}

frit_status frit_session_get_shift(const frit_session *session, frit_shift_info *info)
{
    FRIT_REQUIRE(info);
    *info = (frit_shift_info){0};
    FRIT_REQUIRE(session);
    const frit_session_shift *shift = &session->shift;
    *info = (frit_shift_info){.on = shift->on, .n_dropped = shift->n_dropped};
    if (shift->on) info->n_keep = shift->n_keep, info->n_drop = shift->n_drop;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- shifting

// The index of token `at` after the shift. An index among the dropped tokens becomes n_keep.
static size_t moved_index(size_t at, size_t n_keep, size_t n_drop)
{
    if (at <= n_keep) return at;
    return at < n_keep + n_drop ? n_keep : at - n_drop;
}

static void move_tokens(frit_session *session, size_t n_keep, size_t n_drop)
{
    const size_t n_after = session->n_tokens - n_keep - n_drop;
    memmove(session->tokens + n_keep, session->tokens + n_keep + n_drop, n_after * sizeof *session->tokens);
    session->n_tokens -= n_drop;
    session->shift.n_dropped += n_drop;
    session->results.n_delivered = moved_index(session->results.n_delivered, n_keep, n_drop);
    session->prefix.n_cached = moved_index(session->prefix.n_cached, n_keep, n_drop);
    session->prompt.n_long = moved_index(session->prompt.n_long, n_keep, n_drop);
    session->snapshot_at = session->snapshot_at > n_keep + n_drop ? session->snapshot_at - n_drop : 0;
    session->results.logits_at = session->results.logits_at > n_keep + n_drop ? session->results.logits_at - n_drop : 0;
    for (size_t q = 0; q < session->results.n_pushes; q++) session->results.pushes[q].first -= n_drop;
    for (int32_t k = 0; k < session->pick.n; k++) session->pick.requests[k].at -= n_drop;
    session->prefix.is_foreign = true;   // its keys have seen tokens that left
    session->prefix.n_known = -1;
    frit_hidden_shift(session->hidden, n_keep, n_drop);
    if (session->speculation) session->speculation->draft.n = session->speculation->drafter.n = 0;
}

// How many tokens after the first n_keep may leave.
static size_t n_droppable(const frit_session *session)
{
    const size_t n_keep = (size_t)session->shift.n_keep;
    size_t end = session->n_done;
    if (session->results.n_pushes > 0 && session->results.pushes[0].first < end) end = session->results.pushes[0].first;
    if (session->pick.n > 0 && session->pick.requests[0].at < end) end = session->pick.requests[0].at;
    return end > n_keep ? (end - n_keep) / FRIT_PAGE_TOKENS * FRIT_PAGE_TOKENS : 0;
}

static frit_status drop_tokens(frit_session *session, const frit_kv_shift *shift)
{
    int32_t n_done = (int32_t)session->n_done;
    const size_t n_keep = (size_t)shift->n_keep, n_drop = (size_t)shift->n_drop;
    frit_prefix_cache(session, false);
    const frit_status status = frit_kv_shift_map(&session->engine->kv, &session->map, shift, &n_done);
    if (n_done == 0 && session->results.n_delivered < session->n_done)
        session->results.n_delivered = session->n_done;   // all tokens run again
    session->n_done = (size_t)n_done;
    if (status == FRIT_OK) move_tokens(session, n_keep, n_drop);
    return status;
}

static frit_status fail_full(const frit_session *session, size_t n)
{
    return frit_fail(FRIT_E_LIMIT, "%zu more tokens do not fit: the session holds %zu, its context is %d%s", n,
                     session->n_tokens, session->engine->n_ctx,
                     session->shift.on ? ", and a shift makes too little room" : "");
}

frit_status frit_session_make_room(frit_session *session, size_t n)
{
    const frit_engine *engine = session->engine;
    const size_t n_ctx = (size_t)engine->n_ctx;
    if (n <= n_ctx - session->n_tokens) return FRIT_OK;
    if (!session->shift.on || n > n_ctx) return fail_full(session, n);
    FRIT_TRY(frit_session_settle_all(session));
    FRIT_TRY(frit_session_status(session));
    const int32_t least = round_up((int32_t)(session->n_tokens + n - n_ctx)), most = (int32_t)n_droppable(session);
    frit_kv_shift shift = {.n_keep = session->shift.n_keep,
                           .n_drop = least > session->shift.n_drop ? least : session->shift.n_drop,
                           .rotations = engine->rotations};
    if (shift.n_drop > most) shift.n_drop = most;
    while (shift.n_drop >= least && !frit_kv_can_shift(&engine->kv, &session->map, &shift, (int32_t)session->n_done))
        shift.n_drop -= FRIT_PAGE_TOKENS;
    return shift.n_drop >= least ? drop_tokens(session, &shift) : fail_full(session, n);
}
