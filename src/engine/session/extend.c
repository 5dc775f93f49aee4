// SPDX-License-Identifier: MIT
// Self-extend (group attention): older tokens have the positions of their groups, so that a text stays within the
// positions that the model has learned.
//
//     places      [ 0 .. w-1 ][ w .. 2w-1 ][ 2w .. ]          w: the window, n: tokens of a group
//     positions   [ p / n    ][ p / n     ][ one each, from 2w / n on ]
//
// A token's place in the page tables is its number in the text, as always; its position is what rotations turn by. They
// are two numbers of a row: n_past of its sequence (graph/batch.h) says the place, batch->positions the position.
//
// Tokens of the last window have positions of their own. When the first token after it is about to run, its keys move
// to those of their groups, as keys move in a context shift (kv_rotate.h); later positions follow these. Steps end
// where windows end. So a row's position, and what it sees, depend on its place alone: the text is the same however
// its prompt is cut, with other sessions and with drafts. Keys of a group stay as they are: a session that goes back
// to within one runs from its window's beginning.
#include "engine/engine.h"
#include "engine/kv/kv_rotate.h"

#include "base/number.h"

// ------------------------------------------------------------------------------- positions

static bool is_on(const frit_session *session)
{
    return session->extend.n_group > 0;
}

// Positions that a window takes less once it is grouped.
static int32_t saved_by_window(const frit_session_extend *extend)
{
    return extend->width - extend->width / extend->n_group;
}

int32_t frit_extend_position(const frit_session *session, size_t i)
{
    const frit_session_extend *extend = &session->extend;
    return is_on(session) ? (int32_t)i - extend->n_grouped * saved_by_window(extend) : (int32_t)i;
}

size_t frit_extend_room(const frit_session *session)
{
    const size_t width = (size_t)session->extend.width;
    return is_on(session) ? width - session->n_done % width : SIZE_MAX;
}

size_t frit_extend_whole(const frit_session *session, size_t n)
{
    return is_on(session) ? n - n % (size_t)session->extend.width : n;
}

// ------------------------------------------------------------------------------- windows

bool frit_extend_is_ready(const frit_session *session)
{
    const frit_session_extend *extend = &session->extend;
    return !is_on(session) || (size_t)extend->n_grouped == session->n_done / (size_t)extend->width;
}

static bool has_room(const frit_kv *kv, const frit_kv_map *map, int32_t first, int32_t end)
{
    for (int32_t g = 0; g < kv->n_groups; g++)
        if (frit_kv_shared_pages(&kv->groups[g], &map->tables[g], first, end) > frit_kv_available(&kv->groups[g]))
            return false;
    return true;
}

// Key k of a window moves from its position to that of its group.
static frit_status group_pages(frit_kv *kv, int32_t g, frit_kv_table *table, const frit_session_extend *extend,
                               frit_kv_rotating *r)
{
    const int32_t n = extend->width / FRIT_PAGE_TOKENS, first = extend->n_grouped * n;
    FRIT_TRY(frit_kv_own_pages(kv, g, table, first, first + n));
    for (int32_t p = 0; p < n; p++) {
        for (int32_t i = 0; i < FRIT_PAGE_TOKENS; i++) {
            const int32_t k = p * FRIT_PAGE_TOKENS + i;
            r->distances[i] = k - k / extend->n_group;
        }
        FRIT_TRY(frit_kv_rotate_page(r, g, table->pages[first + p]));
    }
    return FRIT_OK;
}

static frit_status group_window(frit_session *session)
{
    frit_kv *kv = &session->engine->kv;
    frit_kv_rotating r;
    FRIT_TRY(frit_kv_rotating_init(&r, kv, session->engine->rotations));
    frit_status status = FRIT_OK;
    for (int32_t g = 0; g < kv->n_groups && status == FRIT_OK; g++)
        status = group_pages(kv, g, &session->map.tables[g], &session->extend, &r);
    frit_kv_rotating_deinit(&r);
    if (status == FRIT_OK)
        session->extend.n_grouped++;
    else
        frit_session_run_again(session);   // some keys have moved, and some have not
    return status;
}

void frit_extend_begin(frit_session *session)
{
    const frit_session_extend *extend = &session->extend;
    const int32_t n = extend->width / FRIT_PAGE_TOKENS, first = extend->n_grouped * n;
    if (frit_extend_is_ready(session) || session->n_flying > 0 || session->n_done == session->n_tokens) return;
    if (!has_room(&session->engine->kv, &session->map, first, first + n)) return;
    const frit_status status = group_window(session);
    if (status != FRIT_OK) frit_session_fail(session, status);
}

void frit_extend_go_back(frit_session *session)
{
    frit_session_extend *extend = &session->extend;
    if (is_on(session) && (size_t)extend->n_grouped * (size_t)extend->width > session->n_done)
        extend->n_grouped = (int32_t)(session->n_done / (size_t)extend->width);
}

size_t frit_extend_kept(const frit_session *session, size_t n_keep)
{
    const size_t n_grouped = (size_t)session->extend.n_grouped * (size_t)session->extend.width;
    return n_keep < n_grouped ? frit_extend_whole(session, n_keep) : n_keep;
}

// ------------------------------------------------------------------------------- the interface

static frit_status refuse(const frit_engine *engine, const char *why)
{
    return frit_fail(FRIT_E_UNSUPPORTED, "%s: no self-extend: %s", engine->model->info.path, why);
}

static frit_status check_model(frit_engine *engine)
{
    char why[FRIT_ERROR_BYTES];
    bool any = false;
    const frit_status status = frit_engine_find_rotations(engine);
    frit_format(why, sizeof why, "%s", status == FRIT_OK ? "" : frit_error());
    if (status == FRIT_E_UNSUPPORTED) return refuse(engine, why);
    FRIT_TRY(status);
    for (int32_t i = 0; i < engine->kv.n_layers; i++) {
        const int32_t window = engine->kv.layers[i].spec.window;
        any = any || engine->rotations[i].is_rotated;
        if (window > 0 && window < engine->n_ctx) return refuse(engine, "its layers look back at a window only");
    }
    return any ? FRIT_OK : refuse(engine, "its keys are not rotated");
}

static frit_status check(const frit_session *session, const frit_extend_options *options)
{
    const int32_t n_group = options->n_group, width = options->width;
    if (n_group < 1 || width < 1 || width % FRIT_PAGE_TOKENS != 0 || width % n_group != 0)
        return frit_fail(FRIT_E_INVALID,
                         "self-extend has groups of %d tokens in a window of %d; expected 1 or more, and a window that "
                         "is a multiple of that and of %d",
                         n_group, width, (int)FRIT_PAGE_TOKENS);
    if (session->shift.on)
        return frit_fail(FRIT_E_INVALID, "the session has a context shift, which self-extend cannot be combined with");
    return FRIT_OK;
}

frit_status frit_session_set_extend(frit_session *session, const frit_extend_options *options)
{
    FRIT_REQUIRE(session);
    FRIT_REQUIRE_UNUSED(options);
    FRIT_TRY(frit_session_settle(session));
    frit_session_extend chosen = {0};
    if (options) FRIT_TRY(check(session, options));
    if (options && options->n_group > 1) {
        FRIT_TRY(check_model(session->engine));
        chosen = (frit_session_extend){.n_group = options->n_group, .width = options->width};
    }
    const frit_session_extend before = session->extend;
    if (chosen.n_group == before.n_group && chosen.width == before.width) return FRIT_OK;
    if (session->n_done > 0)
        return frit_fail(FRIT_E_INVALID, "%zu tokens of the session ran at other positions: truncate it to 0 first",
                         session->n_done);
    session->extend = chosen;
    const frit_status status = frit_prefix_adapt(session);
    if (status != FRIT_OK) session->extend = before;
    return status;
}
