// SPDX-License-Identifier: MIT
// The cache: memory on each device, and the pages, states and snapshots of maps.
#include "engine/kv/kv.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

// ------------------------------------------------------------------------------- memory

static frit_status make_group(frit_kv_group *group, const frit_kv_group_size *size, const frit_kv_room *room)
{
    const int64_t n_pages = frit_kv_n_pages(size, room);
    if (n_pages > INT32_MAX) return frit_fail(FRIT_E_MEMORY, "a cache cannot have %lld pages", (long long)n_pages);
    *group = (frit_kv_group){.window = size->window, .of_source = size->of_source, .n_pages = (int32_t)n_pages};
    group->free_pages = calloc((size_t)n_pages + 1, sizeof *group->free_pages);
    group->refs = calloc((size_t)n_pages + 1, sizeof *group->refs);
    group->owners = calloc((size_t)n_pages + 1, sizeof *group->owners);
    group->before = calloc((size_t)n_pages + 1, sizeof *group->before);
    group->after = calloc((size_t)n_pages + 1, sizeof *group->after);
    if (!group->free_pages || !group->refs || !group->owners || !group->before || !group->after)
        return frit_fail_memory((size_t)n_pages, "cache pages");
    for (int32_t i = 0; i < group->n_pages; i++) group->free_pages[i] = group->n_pages - 1 - i;   // page 0 first
    for (int32_t i = 0; i < group->n_pages; i++) group->owners[i] = -1;
    group->n_free = group->n_pages;
    group->lru = group->mru = -1;
    return FRIT_OK;
}

static frit_status make_snapshots(frit_kv *kv)
{
    kv->snapshots = calloc((size_t)kv->n_snapshots + 1, sizeof *kv->snapshots);
    if (!kv->snapshots) return frit_fail_memory((size_t)kv->n_snapshots, "snapshots of sessions");
    for (int32_t i = 0; i < kv->n_snapshots; i++) {
        frit_kv_snapshot *snapshot = &kv->snapshots[i];
        snapshot->owner = -1;
        snapshot->state = kv->state_bytes > 0 ? kv->n_states + 1 + i : 0;
        for (int32_t g = 0; g < kv->n_groups; g++) {
            const size_t n = (size_t)frit_kv_pages_of(kv->groups[g].window) + 1;
            if (kv->groups[g].window == 0) continue;
            snapshot->tables[g].pages = calloc(n, sizeof(int32_t));
            if (!snapshot->tables[g].pages) return frit_fail_memory(n * sizeof(int32_t), "the pages of a snapshot");
        }
    }
    return FRIT_OK;
}

// Allocates the memory of a device that lays out the cache itself, of its own layers.
static frit_status alloc_laid_out(const frit_kv *kv, int i, frit_device *device, frit_kv_storage *storage)
{
    frit_cache_layer *own = calloc((size_t)kv->n_layers + 1, sizeof *own);
    if (!own) return frit_fail_memory((size_t)kv->n_layers * sizeof *own, "the layers of a device");
    for (int32_t k = 0; k < kv->n_layers; k++)
        if (!kv->devices || kv->devices[k] == i) own[k] = kv->layers[k];
    const frit_cache cache = {.layers = own, .n_layers = kv->n_layers};
    const frit_status status = device->backend->alloc_cache(device, &cache, storage->layout.n_bytes, &storage->memory);
    free(own);
    return status;
}

// The memory of one device.
static frit_status make_storage(frit_kv *kv, int i, frit_device *device, const frit_kv_shape *shape)
{
    frit_kv_storage *storage = &kv->storages[i];
    frit_kv_counts counts = {.n_states = kv->n_states + (kv->state_bytes > 0 ? kv->n_snapshots : 0)};
    for (int32_t g = 0; g < FRIT_MAX_GROUPS; g++) counts.n_pages[g] = kv->groups[g].n_pages;
    FRIT_TRY(frit_kv_lay_out(shape, i, device->backend->values_by_dim, &counts, kv->layers, &storage->layout));
    if (!frit_add_u64(kv->n_bytes, storage->layout.n_bytes, &kv->n_bytes))
        return frit_fail(FRIT_E_MEMORY, "the size of a cache of %d pages is not a 64-bit number", counts.n_pages[0]);
    if (storage->layout.n_bytes > 0 && device->backend->alloc_cache)
        FRIT_TRY(alloc_laid_out(kv, i, device, storage));
    else if (storage->layout.n_bytes > 0)
        FRIT_TRY(device->backend->alloc(device, storage->layout.n_bytes, &storage->memory));
    storage->device = device;
    storage->cache = (frit_cache){.layers = kv->layers, .n_layers = kv->n_layers, .memory = storage->memory};
    kv->n_storages = i + 1;
    return FRIT_OK;
}

static frit_status allocate_memory(frit_kv *kv, frit_device *const *devices, int n_devices, const frit_kv_shape *shape,
                                   const frit_kv_room *room)
{
    frit_kv_sizes sizes;
    frit_kv_measure(shape, &sizes);
    for (; kv->n_groups < sizes.n_groups; kv->n_groups++) {
        FRIT_TRY(make_group(&kv->groups[kv->n_groups], &sizes.groups[kv->n_groups], room));
        kv->has_windows = kv->has_windows || sizes.groups[kv->n_groups].window > 0;
    }
    kv->state_bytes = sizes.state_bytes;
    kv->n_states = kv->n_free_states = kv->state_bytes > 0 ? room->n_sessions : 0;
    if (kv->state_bytes > 0 || kv->has_windows) kv->max_snapshots = room->n_snapshots;
    kv->n_snapshots = room->n_sessions * kv->max_snapshots;
    kv->layers = calloc((size_t)kv->n_layers + 1, sizeof *kv->layers);
    kv->free_states = calloc((size_t)kv->n_states + 1, sizeof *kv->free_states);
    if (!kv->layers || !kv->free_states) return frit_fail_memory((size_t)kv->n_states, "the cache's layers and states");
    for (int32_t i = 0; i < kv->n_states; i++) kv->free_states[i] = kv->n_states - i;   // state 1 is taken first
    FRIT_TRY(make_snapshots(kv));
    for (int i = 0; i < n_devices; i++) FRIT_TRY(make_storage(kv, i, devices[i], shape));
    if (!room->prefixes) return FRIT_OK;
    FRIT_TRY(frit_kv_host_init(kv, devices[n_devices - 1], &sizes, room));
    return frit_kv_prefix_init(kv, room);
}

frit_status frit_kv_init(frit_kv *kv, frit_device *const *devices, int n_devices, const frit_kv_shape *shape,
                         const frit_kv_room *room)
{
    *kv = (frit_kv){.devices = shape->devices, .n_layers = shape->n_layers};
    const frit_status status = allocate_memory(kv, devices, n_devices, shape, room);
    if (status != FRIT_OK) frit_kv_deinit(kv);
    return status;
}

void frit_kv_deinit(frit_kv *kv)
{
    frit_kv_disk_deinit(kv);
    for (int i = 0; i < kv->n_storages; i++) {
        const frit_kv_storage *storage = &kv->storages[i];
        if (storage->memory) storage->device->backend->free(storage->device, storage->memory);
    }
    for (int32_t i = 0; kv->snapshots && i < kv->n_snapshots; i++)
        for (int32_t g = 0; g < FRIT_MAX_GROUPS; g++) free(kv->snapshots[i].tables[g].pages);
    for (int32_t g = 0; g < FRIT_MAX_GROUPS; g++) {
        free(kv->groups[g].free_pages);
        free(kv->groups[g].refs);
        free(kv->groups[g].owners);
        free(kv->groups[g].before);
        free(kv->groups[g].after);
    }
    frit_kv_prefix_deinit(kv);
    frit_kv_host_deinit(kv);
    free(kv->snapshots);
    free(kv->layers);
    free(kv->free_states);
    *kv = (frit_kv){0};
}

// ------------------------------------------------------------------------------- pages

static void append_page(frit_kv *kv, int32_t g, frit_kv_table *table)
{
    table->pages[table->end++ - table->first] = frit_kv_alloc_page(kv, g);
}

static void unref_table(frit_kv_group *group, frit_kv_table *table)
{
    while (table->end > table->begin) frit_kv_unref_page(group, table->pages[--table->end - table->first]);
    table->begin = table->end = 0;
}

// References pages [begin, end) of another table.
static void ref_pages(frit_kv_group *group, frit_kv_table *to, const frit_kv_table *from, int32_t begin, int32_t end)
{
    to->begin = begin;
    for (to->end = begin; to->end < end; to->end++) {
        const int32_t page = from->pages[to->end - from->first];
        to->pages[to->end - to->first] = page;
        frit_kv_ref_page(group, page);
    }
}

static int32_t first_page(int32_t window, int32_t position)
{
    return frit_kv_first_position(window, position) / FRIT_PAGE_TOKENS;
}

// True if the next position lies in a page that other tables reference.
static bool must_copy(const frit_kv_group *group, const frit_kv_table *table, int32_t n_done)
{
    return n_done % FRIT_PAGE_TOKENS != 0 && group->refs[table->pages[n_done / FRIT_PAGE_TOKENS]] > 1;
}

// True if the next position lies in a page that the prefix cache owns.
static bool is_cached(const frit_kv_group *group, const frit_kv_table *table, int32_t n_done)
{
    return n_done % FRIT_PAGE_TOKENS != 0 && group->owners[table->pages[n_done / FRIT_PAGE_TOKENS]] >= 0;
}

frit_status frit_kv_map_reserve(const frit_kv *kv, frit_kv_map *map, int32_t n_positions)
{
    const size_t n = (size_t)frit_kv_pages_of(n_positions);
    for (int32_t g = 0; g < kv->n_groups; g++) {
        map->tables[g].pages = calloc(n + 1, sizeof(int32_t));
        if (!map->tables[g].pages) return frit_fail_memory(n * sizeof(int32_t), "a page table");
    }
    return FRIT_OK;
}

static bool needs_state(const frit_kv *kv, const frit_kv_map *map)
{
    return kv->state_bytes > 0 && map->state == 0;
}

static frit_status fail_states(const frit_kv *kv)
{
    return frit_fail(FRIT_E_LIMIT, "the cache is full: it has room for the states of %d sessions, and all are in use",
                     kv->n_states);
}

bool frit_kv_has_room(const frit_kv *kv, const frit_kv_map *map, int32_t n, int32_t n_shared_pages)
{
    if (needs_state(kv, map) && kv->n_free_states == 0) return false;
    for (int32_t g = 0; g < kv->n_groups; g++) {
        const frit_kv_group *group = &kv->groups[g];
        if (group->of_source || group->window > 0) continue;
        if (frit_kv_pages_of(n) - n_shared_pages - map->tables[g].end > frit_kv_available(group)) return false;
    }
    return true;
}

void frit_kv_describe(const frit_kv *kv, char *text, size_t capacity)
{
    const frit_kv_group *scarce = &kv->groups[0];
    for (int32_t g = 1; g < kv->n_groups; g++)
        if (frit_kv_available(&kv->groups[g]) < frit_kv_available(scarce)) scarce = &kv->groups[g];
    if (kv->n_states > 0 && (kv->n_free_states == 0 || kv->n_groups == 0))
        snprintf(text, capacity, "%d of %d states are free", kv->n_free_states, kv->n_states);
    else
        snprintf(text, capacity, "%d of %d pages of %d tokens are free", frit_kv_available(scarce), scarce->n_pages,
                 FRIT_PAGE_TOKENS);
}

int32_t frit_kv_fitting(const frit_kv *kv, const frit_kv_map *map, int32_t n_done, int32_t n)
{
    if (needs_state(kv, map) && kv->n_free_states == 0) return 0;
    for (int32_t g = 0; g < kv->n_groups; g++) {
        const frit_kv_group *group = &kv->groups[g];
        const frit_kv_table *table = &map->tables[g];
        if (group->of_source) continue;
        const int32_t n_free = frit_kv_available(group) - must_copy(group, table, n_done);
        const int64_t end = n_free < 0 ? n_done : (int64_t)(table->end + n_free) * FRIT_PAGE_TOKENS;
        if (end - n_done < n) n = end > n_done ? (int32_t)(end - n_done) : 0;
    }
    return n;
}

static frit_status fail_full(const frit_kv_group *group, int32_t n, int32_t n_pages)
{
    return frit_fail(FRIT_E_LIMIT,
                     "the cache is full: %d more tokens of a session need %d pages of %d tokens, %d of %d are free", n,
                     n_pages, FRIT_PAGE_TOKENS, frit_kv_available(group), group->n_pages);
}

// Replaces the page of position n_done by a copy, which only this table references.
static frit_status replace_by_copy(frit_kv *kv, int32_t g, frit_kv_table *table, int32_t n_done)
{
    frit_kv_group *group = &kv->groups[g];
    int32_t *page = &table->pages[n_done / FRIT_PAGE_TOKENS];
    const int32_t copy = frit_kv_alloc_page(kv, g);
    const frit_status status = frit_kv_copy_page(kv, g, *page, copy);
    frit_kv_unref_page(group, status == FRIT_OK ? *page : copy);
    if (status == FRIT_OK) *page = copy;
    return status;
}

// Makes the page of position n_done and all pages up to `end` the table's own. A page that only the prefix cache shares
// is copied if enough pages are available, else the prefix cache drops it.
static frit_status own_pages(frit_kv *kv, int32_t g, frit_kv_table *table, int32_t n_done, int32_t end)
{
    frit_kv_group *group = &kv->groups[g];
    if (must_copy(group, table, n_done) ||
        (is_cached(group, table, n_done) && frit_kv_available(group) > end - table->end))
        FRIT_TRY(replace_by_copy(kv, g, table, n_done));
    else if (is_cached(group, table, n_done))
        frit_kv_drop_page(kv, g, table->pages[n_done / FRIT_PAGE_TOKENS]);
    while (table->end < end) append_page(kv, g, table);
    return FRIT_OK;
}

frit_status frit_kv_extend(frit_kv *kv, frit_kv_map *map, int32_t n_done, int32_t n)
{
    const int32_t end = frit_kv_pages_of(n_done + n);
    if (needs_state(kv, map) && kv->n_free_states == 0) return fail_states(kv);
    for (int32_t g = 0; g < kv->n_groups; g++) {
        const frit_kv_group *group = &kv->groups[g];
        if (group->of_source) continue;
        const int32_t n_pages = end - map->tables[g].end + must_copy(group, &map->tables[g], n_done);
        if (n_pages > frit_kv_available(group)) return fail_full(group, n, n_pages);
    }
    for (int32_t g = 0; g < kv->n_groups; g++)
        if (!kv->groups[g].of_source) FRIT_TRY(own_pages(kv, g, &map->tables[g], n_done, end));
    if (needs_state(kv, map)) map->state = kv->free_states[--kv->n_free_states];
    return FRIT_OK;
}

bool frit_kv_source_fits(const frit_kv *kv, const frit_kv_map *map, int32_t n)
{
    for (int32_t g = 0; g < kv->n_groups; g++)
        if (frit_kv_pages_of(n) - map->tables[g].end > frit_kv_available(&kv->groups[g])) return false;
    return true;
}

frit_status frit_kv_extend_source(frit_kv *kv, frit_kv_map *map, int32_t n)
{
    FRIT_TRY(frit_kv_alloc(kv, map, n, false));
    return frit_kv_alloc_source(kv, map, n);
}

void frit_kv_unref_passed(frit_kv *kv, frit_kv_map *map, int32_t n_done)
{
    for (int32_t g = 0; g < kv->n_groups; g++) {
        frit_kv_table *table = &map->tables[g];
        const int32_t first = first_page(kv->groups[g].window, n_done) - FRIT_WINDOW_SLACK;
        while (table->begin < table->end && table->begin < first)
            frit_kv_unref_page(&kv->groups[g], table->pages[table->begin++]);
    }
}

frit_status frit_kv_alloc(frit_kv *kv, frit_kv_map *map, int32_t n, bool windows_only)
{
    const int32_t end = frit_kv_pages_of(n);
    if (needs_state(kv, map) && kv->n_free_states == 0) return fail_states(kv);
    for (int32_t g = 0; g < kv->n_groups; g++) {
        frit_kv_group *group = &kv->groups[g];
        frit_kv_table *table = &map->tables[g];
        const int32_t first = first_page(group->window, n);
        if (group->of_source || (windows_only && group->window == 0)) continue;
        if (table->end <= first) {
            unref_table(group, table);
            table->begin = table->end = first;
        }
        if (end - table->end > frit_kv_available(group)) return fail_full(group, n, end - table->end);
        while (table->end < end) append_page(kv, g, table);
    }
    if (needs_state(kv, map)) map->state = kv->free_states[--kv->n_free_states];
    return FRIT_OK;
}

frit_status frit_kv_alloc_source(frit_kv *kv, frit_kv_map *map, int32_t n)
{
    for (int32_t g = 0; g < kv->n_groups; g++) {
        const frit_kv_group *group = &kv->groups[g];
        frit_kv_table *table = &map->tables[g];
        const int32_t n_pages = frit_kv_pages_of(n) - table->end;
        if (!group->of_source) continue;
        if (n_pages > frit_kv_available(group)) return fail_full(group, n, n_pages);
        while (table->end < frit_kv_pages_of(n)) append_page(kv, g, table);
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- snapshots

static void unref_snapshot(frit_kv *kv, frit_kv_snapshot *snapshot)
{
    if (--snapshot->n_refs > 0) return;
    for (int32_t g = 0; g < kv->n_groups; g++) unref_table(&kv->groups[g], &snapshot->tables[g]);
}

bool frit_kv_drop_oldest(frit_kv *kv, frit_kv_map *map)
{
    if (map->n_snapshots == 0) return false;
    unref_snapshot(kv, map->snapshots[0]);
    map->n_snapshots--;
    for (int32_t i = 0; i < map->n_snapshots; i++) map->snapshots[i] = map->snapshots[i + 1];
    return true;
}

void frit_kv_drop_snapshots(frit_kv *kv, frit_kv_map *map, int32_t n_positions)
{
    while (map->n_snapshots > 0 && map->snapshots[map->n_snapshots - 1]->at > n_positions)
        unref_snapshot(kv, map->snapshots[--map->n_snapshots]);
}

bool frit_kv_can_draft(const frit_kv *kv)
{
    return kv->state_bytes == 0 || kv->max_snapshots > 0;
}

static frit_kv_snapshot *latest_snapshot(const frit_kv_map *map)
{
    return map->n_snapshots > 0 ? map->snapshots[map->n_snapshots - 1] : NULL;
}

void frit_kv_drop_draft_snapshot(frit_kv *kv, frit_kv_map *map)
{
    if (latest_snapshot(map) && latest_snapshot(map)->is_for_drafts)
        unref_snapshot(kv, map->snapshots[--map->n_snapshots]);
}

const frit_kv_snapshot *frit_kv_add_snapshot(frit_kv *kv, frit_kv_map *map, int32_t at, bool is_for_drafts)
{
    if (kv->max_snapshots == 0) return NULL;
    frit_kv_drop_draft_snapshot(kv, map);
    if (map->n_snapshots == kv->max_snapshots) frit_kv_drop_oldest(kv, map);
    frit_kv_snapshot *snapshot = frit_kv_unused_snapshot(kv);
    while (!snapshot && frit_kv_drop_oldest(kv, map)) snapshot = frit_kv_unused_snapshot(kv);
    if (!snapshot) return NULL;
    snapshot->n_refs = 1;
    snapshot->at = at;
    snapshot->is_for_drafts = is_for_drafts;
    for (int32_t g = 0; g < kv->n_groups; g++) {
        frit_kv_table *table = &snapshot->tables[g];
        if (kv->groups[g].window == 0) continue;
        table->first = first_page(kv->groups[g].window, at);
        ref_pages(&kv->groups[g], table, &map->tables[g], table->first, frit_kv_pages_of(at));
    }
    map->snapshots[map->n_snapshots++] = snapshot;
    return snapshot;
}

// ------------------------------------------------------------------------------- maps

void frit_kv_release_source(frit_kv *kv, frit_kv_map *map)
{
    for (int32_t g = 0; g < kv->n_groups; g++)
        if (kv->groups[g].of_source) unref_table(&kv->groups[g], &map->tables[g]);
}

void frit_kv_release(frit_kv *kv, frit_kv_map *map)
{
    for (int32_t g = 0; g < kv->n_groups; g++)
        if (!kv->groups[g].of_source) unref_table(&kv->groups[g], &map->tables[g]);
    frit_kv_drop_snapshots(kv, map, -1);
    if (map->state > 0) kv->free_states[kv->n_free_states++] = map->state;
    map->state = 0;
    map->page_list.n = 0;
}

void frit_kv_map_free(frit_kv_map *map)
{
    for (int32_t g = 0; g < FRIT_MAX_GROUPS; g++) free(map->tables[g].pages);
    *map = (frit_kv_map){0};
}

static void shrink_map(frit_kv *kv, frit_kv_map *map, int32_t n_positions)
{
    for (int32_t g = 0; g < kv->n_groups; g++) {
        frit_kv_table *table = &map->tables[g];
        if (kv->groups[g].of_source) continue;
        while (table->end > table->begin && table->end > frit_kv_pages_of(n_positions))
            frit_kv_unref_page(&kv->groups[g], table->pages[--table->end]);
    }
    frit_kv_trim_page_list(kv, map, n_positions);
}

// True if rows from this position on find all positions inside their windows.
static bool has_windows(const frit_kv *kv, const frit_kv_map *map, int32_t position)
{
    for (int32_t g = 0; g < kv->n_groups; g++)
        if (map->tables[g].begin > first_page(kv->groups[g].window, position)) return false;
    return true;
}

// Restores the recurrent states of a snapshot. A snapshot for drafts is not needed again, so it exchanges states with
// the map, unless other maps or the prefix cache use it.
static frit_status restore_states(frit_kv *kv, frit_kv_map *map, frit_kv_snapshot *snapshot)
{
    const int32_t state = snapshot->state;
    if (!snapshot->is_for_drafts || snapshot->n_refs > 1 || snapshot->owner >= 0)
        return frit_kv_copy_states(kv, state, map->state);
    snapshot->state = map->state;
    map->state = state;
    unref_snapshot(kv, map->snapshots[--map->n_snapshots]);
    return FRIT_OK;
}

static frit_status restore_snapshot(frit_kv *kv, frit_kv_map *map, frit_kv_snapshot *snapshot)
{
    shrink_map(kv, map, snapshot->at);
    for (int32_t g = 0; g < kv->n_groups; g++) {
        const frit_kv_table *pages = &snapshot->tables[g];
        if (kv->groups[g].window == 0) continue;
        unref_table(&kv->groups[g], &map->tables[g]);
        ref_pages(&kv->groups[g], &map->tables[g], pages, pages->begin, pages->end);
    }
    return snapshot->state > 0 ? restore_states(kv, map, snapshot) : FRIT_OK;
}

frit_status frit_kv_truncate(frit_kv *kv, frit_kv_map *map, int32_t n_keep, int32_t *n_done)
{
    frit_status status = FRIT_OK;
    const bool goes_back = n_keep < *n_done;
    if (goes_back) *n_done = n_keep;
    frit_kv_drop_snapshots(kv, map, *n_done);
    if (goes_back && (kv->state_bytes > 0 || !has_windows(kv, map, *n_done))) {
        frit_kv_snapshot *last = latest_snapshot(map);
        *n_done = last ? last->at : 0;
        if (last) status = restore_snapshot(kv, map, last);
        if (status != FRIT_OK) *n_done = 0;
    }
    if (*n_done == 0)
        frit_kv_release(kv, map);
    else
        shrink_map(kv, map, *n_done);
    return status;
}

frit_status frit_kv_share(frit_kv *kv, frit_kv_map *to, const frit_kv_map *from, int32_t n_done, bool source)
{
    if (n_done > 0 && kv->state_bytes > 0) {
        if (kv->n_free_states == 0) return fail_states(kv);
        FRIT_TRY(frit_kv_copy_states(kv, from->state, kv->free_states[kv->n_free_states - 1]));
        to->state = kv->free_states[--kv->n_free_states];
    }
    for (int32_t g = 0; g < kv->n_groups; g++) {
        const frit_kv_table *table = &from->tables[g];
        const bool of_source = kv->groups[g].of_source;
        if (of_source && !source) continue;
        const int32_t used = of_source ? table->end : frit_kv_pages_of(n_done);
        ref_pages(&kv->groups[g], &to->tables[g], table, table->begin, used);
    }
    to->page_list = from->page_list;
    frit_kv_trim_page_list(kv, to, n_done);
    // A step that failed may have left snapshots of later positions, which are left out.
    for (int32_t i = 0; i < from->n_snapshots && from->snapshots[i]->at <= n_done; i++) {
        to->snapshots[to->n_snapshots++] = from->snapshots[i];
        from->snapshots[i]->n_refs++;
    }
    return FRIT_OK;
}
