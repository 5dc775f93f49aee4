// SPDX-License-Identifier: MIT
// The adapters of an engine's sessions, in a table by index. An entry stays while a session uses it, and until another
// adapter needs the index. Each device has those matrices of an adapter that its nodes read.
#include "engine/engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------- tables of devices

// Gives device d the part of an adapter that it reads.
static frit_status set_on_device(const frit_engine *engine, const frit_adapter *adapter, int32_t index, int d)
{
    const frit_backend *backend = engine->devices[d]->backend;
    const frit_adapter_table *all = &adapter->table;
    const uint16_t *devices = engine->adapters.devices;
    frit_adapter_table part = {.n_matrices = all->n_matrices, .n_layers = all->n_layers};
    part.matrices = calloc((size_t)all->n_matrices + 1, sizeof *part.matrices);
    part.directions = calloc((size_t)all->n_layers + 1, sizeof *part.directions);
    frit_status status = FRIT_OK;
    if (part.matrices && part.directions) {
        for (int32_t i = 0; i < all->n_matrices; i++)
            if (devices[i] >> d & 1) part.matrices[i] = all->matrices[i];
        for (int32_t i = 0; i < all->n_layers; i++)
            if (devices[all->n_matrices + i] >> d & 1) part.directions[i] = all->directions[i];
        if (backend->set_adapter) status = backend->set_adapter(engine->devices[d], index, &part);
    } else {
        status = frit_fail_memory((size_t)all->n_matrices * sizeof *part.matrices, "the table of an adapter");
    }
    free(part.matrices);
    free(part.directions);
    return status;
}

static void clear_devices(const frit_engine *engine, int32_t index)
{
    for (int d = 0; d < engine->n_devices; d++) {
        frit_device *device = engine->devices[d];
        if (device->backend->set_adapter) (void)device->backend->set_adapter(device, index, NULL);
    }
}

// Checks the memory here, because an error can then name the adapter and its total size.
static frit_status check_room(const frit_engine *engine, const frit_adapter *adapter, int d)
{
    frit_device_info info;
    const frit_backend *backend = engine->devices[d]->backend;
    const uint64_t n_bytes = frit_adapter_bytes(adapter, engine->adapters.devices, d);
    backend->info(engine->devices[d], &info);
    if (info.free_bytes == 0 || n_bytes <= info.free_bytes) return FRIT_OK;
    return frit_fail_file(FRIT_E_MEMORY, "%s: needs %llu bytes of device %s, which has %llu left", adapter->info.path,
                          (unsigned long long)n_bytes, engine->device_names[d], (unsigned long long)info.free_bytes);
}

static frit_status set_on_devices(frit_engine *engine, const frit_adapter *adapter, int32_t index)
{
    frit_engine_adapters *table = &engine->adapters;
    frit_status status = FRIT_OK;
    if (!table->devices) {
        uint16_t *devices =
            calloc((size_t)adapter->table.n_matrices + (size_t)adapter->table.n_layers, sizeof *devices);
        if (!devices) return frit_fail_memory((size_t)adapter->table.n_matrices, "the devices of adapters");
        status = frit_plans_find_adapted(engine, devices);
        if (status != FRIT_OK) free(devices);
        FRIT_TRY(status);
        table->devices = devices;
    }
    for (int d = 0; d < engine->n_devices; d++) FRIT_TRY(check_room(engine, adapter, d));
    for (int d = 0; d < engine->n_devices && status == FRIT_OK; d++) status = set_on_device(engine, adapter, index, d);
    if (status != FRIT_OK) clear_devices(engine, index);
    return status;
}

// ------------------------------------------------------------------------------- the table

static int32_t index_of(const frit_engine_adapters *table, const frit_adapter *adapter)
{
    for (int32_t i = 0; i < table->n; i++)
        if (table->items[i] == adapter) return i;
    return -1;
}

static bool is_in_use(const frit_engine *engine, int32_t index)
{
    for (const frit_session *s = engine->sessions; s; s = s->next)
        if (s->adapters.scales && s->adapters.scales[index] != 0) return true;
    return false;
}

// Doubles the table, and the scales of sessions, which have one number for each index.
static frit_status grow_table(frit_engine *engine)
{
    frit_engine_adapters *table = &engine->adapters;
    const size_t n = (size_t)table->n, more = n > 0 ? 2 * n : 4;
    size_t n_sessions = 0;
    for (const frit_session *s = engine->sessions; s; s = s->next) n_sessions++;
    FRIT_TRY(frit_step_reserve_tables(engine, n_sessions, more));
    for (frit_session *s = engine->sessions; s; s = s->next) {
        float *scales = s->adapters.scales ? realloc(s->adapters.scales, more * sizeof *scales) : NULL;
        if (s->adapters.scales && !scales) return frit_fail_memory(more * sizeof *scales, "a session's adapters");
        for (size_t i = n; scales && i < more; i++) scales[i] = 0;
        s->adapters.scales = scales;
    }
    frit_adapter **items = realloc(table->items, more * sizeof(frit_adapter *));
    if (!items) return frit_fail_memory(more * sizeof(frit_adapter *), "an engine's adapters");
    for (size_t i = n; i < more; i++) items[i] = NULL;
    table->items = items;
    table->n = (int32_t)more;
    return FRIT_OK;
}

// Adds adapters that are not in the table yet.
static frit_status add_adapters(frit_engine *engine, frit_adapter *const *adapters, size_t n)
{
    frit_engine_adapters *table = &engine->adapters;
    for (size_t i = 0; i < n; i++) {
        if (index_of(table, adapters[i]) >= 0) continue;
        int32_t index = index_of(table, NULL);
        if (index < 0) {
            index = table->n;
            FRIT_TRY(grow_table(engine));
        }
        FRIT_TRY(set_on_devices(engine, adapters[i], index));
        frit_adapter_ref(adapters[i]);
        table->items[index] = adapters[i];
    }
    return FRIT_OK;
}

// Removes adapters that no session uses and that are not among these.
static void remove_unused(frit_engine *engine, frit_adapter *const *adapters, size_t n)
{
    frit_engine_adapters *table = &engine->adapters;
    for (int32_t i = 0; i < table->n; i++) {
        bool stays = !table->items[i] || is_in_use(engine, i);
        for (size_t k = 0; k < n; k++) stays = stays || table->items[i] == adapters[k];
        if (stays) continue;
        clear_devices(engine, i);
        frit_adapter_free(table->items[i]);
        table->items[i] = NULL;
    }
}

void frit_engine_adapters_deinit(frit_engine_adapters *table)
{
    for (int32_t i = 0; i < table->n; i++) frit_adapter_free(table->items[i]);
    free(table->items);
    free(table->devices);
    *table = (frit_engine_adapters){0};
}

// ------------------------------------------------------------------------------- sessions

static const float MAX_SCALE = 1e6f;   // useful scales are below 10

static frit_status check_adapters(const frit_session *session, frit_adapter *const *adapters, const float *scales,
                                  size_t n)
{
    FRIT_TRY(frit_session_settle_all(session));
    for (size_t i = 0; i < n; i++) {
        if (!adapters[i] || adapters[i]->model != session->engine->model)
            return frit_fail(FRIT_E_INVALID, "adapter %zu of %zu was not opened for this session's model", i, n);
        if (!(fabsf(scales[i]) <= MAX_SCALE))
            return frit_fail(FRIT_E_INVALID, "the scale of %s is %g, expected a number from -%g to %g",
                             adapters[i]->info.path, (double)scales[i], (double)MAX_SCALE, (double)MAX_SCALE);
    }
    return FRIT_OK;
}

// Returns the class of plans for the scales of all adapters.
static frit_status find_class(const frit_engine_adapters *table, const float *scales, frit_adapter_class *out)
{
    const frit_adapter *first = NULL;
    *out = (frit_adapter_class){0};
    for (int32_t i = 0; i < table->n; i++) {
        if (scales[i] == 0) continue;
        first = table->items[i];
        out->steers = out->steers || first->steers;
    }
    for (int32_t m = 0; first && m < first->table.n_matrices; m++) {
        int64_t ranks = 0;
        for (int32_t i = 0; i < table->n; i++)
            if (scales[i] != 0) ranks += table->items[i]->table.matrices[m].rank;
        while (out->ranks < FRIT_N_RANKS && frit_adapter_class_ranks(out->ranks) < ranks) out->ranks++;
        if (out->ranks == FRIT_N_RANKS)
            return frit_fail(FRIT_E_LIMIT, "a session's adapters have a rank of %lld together, expected at most %d",
                             (long long)ranks, (int)frit_adapter_class_ranks(FRIT_N_RANKS - 1));
    }
    return FRIT_OK;
}

frit_status frit_session_set_adapters(frit_session *session, frit_adapter *const *adapters, const float *scales,
                                      size_t n_adapters)
{
    FRIT_REQUIRE(session);
    FRIT_REQUIRE_ITEMS(adapters, n_adapters);
    FRIT_REQUIRE_ITEMS(scales, n_adapters);
    FRIT_TRY(check_adapters(session, adapters, scales, n_adapters));
    frit_engine *engine = session->engine;
    frit_engine_adapters *table = &engine->adapters;
    bool changed = false;
    for (size_t i = 0; i < n_adapters; i++) changed = changed || index_of(table, adapters[i]) < 0;
    if (changed) {
        remove_unused(engine, adapters, n_adapters);
        FRIT_TRY(add_adapters(engine, adapters, n_adapters));
        FRIT_TRY(frit_prefix_number_adapters(engine));
    }
    frit_prefix_cache(session, false);
    frit_adapter_class adapted;
    float *chosen = calloc((size_t)table->n + 1, sizeof *chosen);
    if (!chosen) return frit_fail_memory((size_t)table->n * sizeof *chosen, "a session's adapters");
    for (size_t i = 0; i < n_adapters; i++) chosen[index_of(table, adapters[i])] += scales[i];
    const frit_status status = find_class(table, chosen, &adapted);
    const bool any = status == FRIT_OK && (adapted.ranks > 0 || adapted.steers);
    if (!any) free(chosen);
    FRIT_TRY(status);
    free(session->adapters.scales);
    session->adapters.scales = any ? chosen : NULL;
    session->adapters.plan_class = adapted;
    return frit_prefix_adapt(session);
}
