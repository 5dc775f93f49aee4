// SPDX-License-Identifier: MIT
// Which adapters the sessions of an engine have. Each has a slot as long as some session uses it, and longer, until
// another one needs it. Plans with adapters are for all slots; where these change, they are made anew.
#include "engine/engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------- what plans add

static frit_status add_part(frit_adapters *out, const frit_adapter_part *part, int32_t slot, int32_t n_slots,
                            frit_arena *arena)
{
    int64_t at;
    if (!frit_map_get(&out->index, frit_str_of(part->name), &at)) {
        at = (int64_t)out->n++;
        out->matrices[at] = (frit_matrix_adapters){
            .name = part->name, .base = part->base, .parts = frit_arena_new(arena, frit_low_rank, (size_t)n_slots)};
        if (!out->matrices[at].parts || !frit_map_put(&out->index, frit_str_of(part->name), at))
            return frit_fail_memory((size_t)n_slots * sizeof(frit_low_rank), "the list of adapters");
    }
    frit_matrix_adapters *matrix = &out->matrices[at];
    matrix->parts[matrix->n] = part->low;
    matrix->parts[matrix->n++].adapter = slot;
    return FRIT_OK;
}

static frit_status add_directions(frit_adapters *out, const frit_adapter *adapter, int32_t slot, int32_t n_slots,
                                  frit_arena *arena)
{
    const int32_t n_layer = adapter->model->hp.n_layer;
    for (int32_t i = 0; i < n_layer; i++) {
        frit_steering *layer = &out->layers[i];
        if (!adapter->directions[i]) continue;
        frit_direction *parts = layer->n > 0 ? (frit_direction *)(uintptr_t)layer->parts
                                             : frit_arena_new(arena, frit_direction, (size_t)n_slots);
        if (!parts) return frit_fail_memory((size_t)n_slots * sizeof *parts, "the list of adapters");
        parts[layer->n] = (frit_direction){slot, adapter->directions[i]};
        *layer = (frit_steering){parts, layer->n + 1, adapter->model->hp.n_embd};
    }
    return FRIT_OK;
}

frit_status frit_adapters_bind(frit_adapters *out, frit_adapter *const *adapters, int32_t n, int32_t n_layer,
                               frit_arena *arena)
{
    size_t n_parts = 0;
    for (int32_t i = 0; i < n; i++) n_parts += adapters[i] ? adapters[i]->n_parts : 0;
    *out = (frit_adapters){.matrices = frit_arena_new(arena, frit_matrix_adapters, n_parts + 1),
                           .layers = frit_arena_new(arena, frit_steering, (size_t)n_layer)};
    if (!out->matrices || !out->layers)
        return frit_fail_memory(n_parts * sizeof *out->matrices, "the list of adapters");
    for (int32_t i = 0; i < n; i++) {
        for (size_t k = 0; adapters[i] && k < adapters[i]->n_parts; k++)
            FRIT_TRY(add_part(out, &adapters[i]->parts[k], i, n, arena));
        if (adapters[i] && adapters[i]->directions) FRIT_TRY(add_directions(out, adapters[i], i, n, arena));
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- slots

static int32_t slot_of(const frit_adapter_slots *slots, const frit_adapter *adapter)
{
    for (int32_t i = 0; i < slots->n; i++)
        if (slots->items[i] == adapter) return i;
    return -1;
}

static bool is_in_use(const frit_engine *engine, int32_t slot)
{
    for (const frit_session *s = engine->sessions; s; s = s->next)
        if (s->scales && s->scales[slot] != 0) return true;
    return false;
}

// Sessions' scales have a number for each slot.
static frit_status grow(frit_engine *engine)
{
    frit_adapter_slots *slots = &engine->adapters;
    const size_t n = (size_t)slots->n, more = n > 0 ? 2 * n : 4;
    size_t n_sessions = 0;
    for (const frit_session *s = engine->sessions; s; s = s->next) n_sessions++;
    FRIT_TRY(frit_step_reserve_tables(engine, n_sessions, more));
    for (frit_session *s = engine->sessions; s; s = s->next) {
        float *scales = s->scales ? realloc(s->scales, more * sizeof *scales) : NULL;
        if (s->scales && !scales) return frit_fail_memory(more * sizeof *scales, "a session's adapters");
        for (size_t i = n; scales && i < more; i++) scales[i] = 0;
        s->scales = scales;
    }
    frit_adapter **items = realloc(slots->items, more * sizeof(frit_adapter *));
    if (!items) return frit_fail_memory(more * sizeof(frit_adapter *), "an engine's adapters");
    for (size_t i = n; i < more; i++) items[i] = NULL;
    slots->items = items;
    slots->n = (int32_t)more;
    return FRIT_OK;
}

// Plans of what was bound are dropped first.
static frit_status bind_anew(frit_engine *engine)
{
    frit_adapter_slots *slots = &engine->adapters;
    frit_plans_drop_adapted(engine);
    frit_map_free(&slots->bound.index);
    frit_arena_free(&slots->arena);
    slots->bound = (frit_adapters){0};
    slots->arena = (frit_arena){0};
    frit_status status = frit_adapters_bind(&slots->bound, slots->items, slots->n, engine->hp.n_layer, &slots->arena);
    if (status == FRIT_OK) return FRIT_OK;
    frit_map_free(&slots->bound.index);
    slots->bound = (frit_adapters){0};   // steps with adapters fail, until this works
    return status;
}

// Gives every adapter a slot; *changed if one did not have it.
static frit_status place(frit_engine *engine, frit_adapter *const *adapters, size_t n, bool *changed)
{
    frit_adapter_slots *slots = &engine->adapters;
    for (size_t i = 0; i < n; i++) {
        if (slot_of(slots, adapters[i]) >= 0) continue;
        int32_t slot = slot_of(slots, NULL);
        if (slot < 0) {
            slot = slots->n;
            FRIT_TRY(grow(engine));
        }
        frit_adapter_retain(adapters[i]);
        slots->items[slot] = adapters[i];
        *changed = true;
    }
    return FRIT_OK;
}

// Slots of adapters that no session has, but for these: free.
static void sweep(frit_engine *engine, frit_adapter *const *adapters, size_t n)
{
    frit_adapter_slots *slots = &engine->adapters;
    for (int32_t i = 0; i < slots->n; i++) {
        bool stays = !slots->items[i] || is_in_use(engine, i);
        for (size_t k = 0; k < n; k++) stays = stays || slots->items[i] == adapters[k];
        if (stays) continue;
        frit_adapter_free(slots->items[i]);
        slots->items[i] = NULL;
    }
}

void frit_adapter_slots_deinit(frit_adapter_slots *slots)
{
    for (int32_t i = 0; i < slots->n; i++) frit_adapter_free(slots->items[i]);
    free(slots->items);
    frit_map_free(&slots->bound.index);
    frit_arena_free(&slots->arena);
    *slots = (frit_adapter_slots){0};
}

// ------------------------------------------------------------------------------- sessions

static const float MAX_SCALE = 1e6f;   // useful ones are below 10

static frit_status check(const frit_session *session, frit_adapter *const *adapters, const float *scales, size_t n)
{
    FRIT_TRY(frit_session_settle(session));
    for (size_t i = 0; i < n; i++) {
        if (!adapters[i] || adapters[i]->model != session->engine->model)
            return frit_fail(FRIT_E_INVALID, "adapter %zu of %zu was not opened for this session's model", i, n);
        if (!(fabsf(scales[i]) <= MAX_SCALE))
            return frit_fail(FRIT_E_INVALID, "the scale of %s is %g, expected a number from -%g to %g",
                             adapters[i]->info.path, (double)scales[i], (double)MAX_SCALE, (double)MAX_SCALE);
    }
    return FRIT_OK;
}

frit_status frit_session_set_adapters(frit_session *session, frit_adapter *const *adapters, const float *scales,
                                      size_t n_adapters)
{
    FRIT_REQUIRE(session);
    FRIT_REQUIRE_ITEMS(adapters, n_adapters);
    FRIT_REQUIRE_ITEMS(scales, n_adapters);
    FRIT_TRY(check(session, adapters, scales, n_adapters));
    frit_engine *engine = session->engine;
    frit_adapter_slots *slots = &engine->adapters;
    bool changed = false, any = false;
    for (size_t i = 0; i < n_adapters; i++) changed = changed || slot_of(slots, adapters[i]) < 0;
    if (changed) {   // the only time at which plans that read other adapters go anyway
        frit_plans_drop_adapted(engine);
        sweep(engine, adapters, n_adapters);
        FRIT_TRY(place(engine, adapters, n_adapters, &changed));
        FRIT_TRY(frit_prefix_note_adapters(engine));
        FRIT_TRY(bind_anew(engine));
    }
    frit_prefix_keep(session, false);
    float *chosen = calloc((size_t)slots->n + 1, sizeof *chosen);
    if (!chosen) return frit_fail_memory((size_t)slots->n * sizeof *chosen, "a session's adapters");
    for (size_t i = 0; i < n_adapters; i++) chosen[slot_of(slots, adapters[i])] += scales[i];
    for (int32_t i = 0; i < slots->n; i++) any = any || chosen[i] != 0;
    free(session->scales);
    session->scales = any ? chosen : NULL;
    if (!any) free(chosen);
    return frit_prefix_adapt(session);
}
