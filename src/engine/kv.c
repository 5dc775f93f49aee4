// SPDX-License-Identifier: MIT
// The cache's pages and slots: handing them out, and taking them back.
#include "engine/kv.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

static frit_status allocate(frit_kv *kv)
{
    const size_t n_slots = (size_t)kv->n_slots, n_copies = (size_t)kv->n_copies, n_pages = (size_t)kv->n_pages;
    kv->layers = calloc((size_t)kv->n_layers + 1, sizeof *kv->layers);
    kv->free_pages = calloc(n_pages + 1, sizeof *kv->free_pages);
    kv->refs = calloc(n_pages + 1, sizeof *kv->refs);
    kv->free_slots = calloc(n_slots + 1, sizeof *kv->free_slots);
    kv->free_copies = calloc(n_copies + 1, sizeof *kv->free_copies);
    if (!kv->layers || !kv->free_pages || !kv->refs || !kv->free_slots || !kv->free_copies)
        return frit_fail_memory(n_pages, "cache pages");
    return FRIT_OK;
}

// The memory of one device.
static frit_status make_part(frit_kv *kv, int i, frit_device *device, const frit_kv_shape *shape)
{
    frit_kv_part *part = &kv->parts[i];
    frit_kv_layout layout;
    FRIT_TRY(frit_kv_lay_out(shape, i, kv->n_pages, kv->n_slots + kv->n_copies, kv->layers, &layout));
    if (!frit_add_u64(kv->n_bytes, layout.n_bytes, &kv->n_bytes))
        return frit_fail(FRIT_E_MEMORY, "the size of a cache of %d pages is not a 64-bit number", kv->n_pages);
    if (layout.n_bytes > 0) FRIT_TRY(device->backend->alloc(device, layout.n_bytes, &part->memory));
    part->device = device;
    part->page_bytes = layout.page_bytes;
    part->cache =
        (frit_cache){.layers = kv->layers, .n_layers = kv->n_layers, .n_pages = kv->n_pages, .memory = part->memory};
    kv->n_parts = i + 1;
    return FRIT_OK;
}

static frit_status make_parts(frit_kv *kv, frit_device *const *devices, int n_devices, const frit_kv_shape *shape)
{
    for (int i = 0; i < n_devices; i++) FRIT_TRY(make_part(kv, i, devices[i], shape));
    return FRIT_OK;
}

frit_status frit_kv_init(frit_kv *kv, frit_device *const *devices, int n_devices, const frit_kv_shape *shape,
                         frit_kv_room room)
{
    const int32_t n_pages = room.n_pages, n_slots = room.n_slots;
    *kv = (frit_kv){.devices = shape->devices,
                    .n_layers = shape->n_layers,
                    .n_pages = n_pages,
                    .n_groups = 1,
                    .state_bytes = frit_kv_state_bytes(shape),
                    .n_slots = n_slots};
    if (kv->state_bytes > 0) kv->max_copies = room.n_copies;
    kv->n_copies = n_slots * kv->max_copies;
    frit_status status = allocate(kv);
    if (status == FRIT_OK) status = make_parts(kv, devices, n_devices, shape);
    if (status != FRIT_OK) {
        frit_kv_deinit(kv);
        return status;
    }
    for (int32_t i = 0; i < shape->n_layers; i++)
        if (shape->specs[i].of_source) kv->n_groups = 2;
    kv->n_free_slots = n_slots;
    kv->n_free_copies = kv->n_copies;
    for (int32_t i = 0; i < n_slots; i++) kv->free_slots[i] = n_slots - i;   // from 1 on, which goes out first
    for (int32_t i = 0; i < kv->n_copies; i++) kv->free_copies[i] = n_slots + kv->n_copies - i;
    for (int32_t i = 0; i < n_pages; i++) kv->free_pages[i] = n_pages - 1 - i;   // page 0 goes out first
    kv->n_free = n_pages;
    return FRIT_OK;
}

void frit_kv_deinit(frit_kv *kv)
{
    for (int i = 0; i < kv->n_parts; i++) {
        const frit_kv_part *part = &kv->parts[i];
        if (part->memory) part->device->backend->release(part->device, part->memory);
    }
    free(kv->layers);
    free(kv->free_pages);
    free(kv->refs);
    free(kv->free_slots);
    free(kv->free_copies);
    *kv = (frit_kv){0};
}

frit_status frit_kv_map_reserve(frit_kv_map *map, int32_t n_positions)
{
    int32_t n_pages = frit_kv_pages_of(n_positions);
    if (n_pages <= map->capacity) return FRIT_OK;
    int32_t *pages = realloc(map->pages, (size_t)n_pages * sizeof *pages);
    if (!pages) return frit_fail_memory((size_t)n_pages * sizeof *pages, "a page table");
    map->pages = pages;
    map->capacity = n_pages;
    return FRIT_OK;
}

frit_status frit_kv_extend(frit_kv *kv, frit_kv_map *map, int32_t n_positions)
{
    int32_t n_pages = frit_kv_pages_of(n_positions);
    if (n_pages - map->n_pages > kv->n_free)
        return frit_fail(
            FRIT_E_LIMIT, "the cache is full: %d more tokens of a session need %d pages of %d tokens, %d are free",
            n_positions - map->n_pages * FRIT_PAGE_TOKENS, n_pages - map->n_pages, FRIT_PAGE_TOKENS, kv->n_free);
    const bool needs_slot = kv->state_bytes > 0 && map->slot == 0 && n_positions > 0;
    if (needs_slot && kv->n_free_slots == 0)
        return frit_fail(FRIT_E_LIMIT, "the cache is full: it has room for the states of %d sessions, and all hold one",
                         kv->n_slots);
    FRIT_TRY(frit_kv_map_reserve(map, n_positions));
    if (needs_slot) map->slot = kv->free_slots[--kv->n_free_slots];
    while (map->n_pages < n_pages) {
        int32_t page = kv->free_pages[--kv->n_free];
        kv->refs[page] = 1;
        map->pages[map->n_pages++] = page;
    }
    return FRIT_OK;
}

void frit_kv_shrink(frit_kv *kv, frit_kv_map *map, int32_t n_positions)
{
    int32_t n_pages = frit_kv_pages_of(n_positions);
    while (map->n_pages > n_pages) {
        int32_t page = map->pages[--map->n_pages];
        if (--kv->refs[page] == 0) kv->free_pages[kv->n_free++] = page;
    }
    frit_kv_drop_copies(kv, map, n_positions);
    if (n_positions == 0 && map->slot > 0) {
        kv->free_slots[kv->n_free_slots++] = map->slot;
        map->slot = 0;
    }
}

// ------------------------------------------------------------------------------- copies of states

int32_t frit_kv_add_copy(frit_kv *kv, frit_kv_map *map, int32_t at)
{
    frit_kv_copy copy = {.at = at};
    if (map->n_copies < kv->max_copies && kv->n_free_copies > 0) {
        copy.slot = kv->free_copies[--kv->n_free_copies];
    } else if (map->n_copies > 0) {
        copy.slot = map->copies[0].slot;
        memmove(map->copies, map->copies + 1, (size_t)--map->n_copies * sizeof copy);
    } else {
        return 0;
    }
    map->copies[map->n_copies++] = copy;
    return copy.slot;
}

void frit_kv_drop_copies(frit_kv *kv, frit_kv_map *map, int32_t n_positions)
{
    while (map->n_copies > 0 && (map->copies[map->n_copies - 1].at > n_positions || n_positions == 0))
        kv->free_copies[kv->n_free_copies++] = map->copies[--map->n_copies].slot;
}

frit_status frit_kv_go_back(frit_kv *kv, frit_kv_map *map, int32_t *at)
{
    *at = 0;
    if (map->n_copies == 0) return FRIT_OK;
    const frit_kv_copy *copy = &map->copies[map->n_copies - 1];
    FRIT_TRY(frit_kv_copy_states(kv, copy->slot, map->slot));
    *at = copy->at;
    return FRIT_OK;
}

void frit_kv_map_free(frit_kv *kv, frit_kv_map *map)
{
    frit_kv_shrink(kv, map, 0);
    free(map->pages);
    *map = (frit_kv_map){0};
}
