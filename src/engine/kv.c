// SPDX-License-Identifier: MIT
// The cache's memory and its pages.
//
// One allocation holds, page by page, the keys and values of all layers at these positions; each part starts at a
// multiple of 64:
//
//     memory  [ page 0: layer 0 K | layer 0 V | layer 0 index | layer 1 K | ... ][ page 1: ... ] ...
//             [ layer 0: state of slot 1 | of slot 2 | ... ][ layer 1: ... ]
//
// So a short text touches little memory, however long the context may become and however large the system's pages are:
// layer by layer it would touch two huge pages of 2 MiB in every layer.
#include "engine/kv.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, ALIASING = 4096, APART = 9 * ALIGNMENT };

// Types in blocks share one scale between neighbours, which an outlier spoils for all of them.
static int32_t mix_of(frit_dtype dtype, int32_t dim)
{
    if (frit_dtype_get(dtype)->block_elems == 1) return 1;
    int32_t mix = 1;
    while (mix < 256 && dim % (2 * mix) == 0) mix *= 2;
    return mix;
}

static bool lay_out(frit_cache_side *side, const frit_cache_spec *spec, int32_t n_head, int32_t dim, frit_dtype dtype)
{
    *side = (frit_cache_side){.dtype = dtype, .dim = dim, .mix = 1};
    if (spec->kind == FRIT_CACHE_NONE) return true;
    if (n_head < 0 || dim < 0) return false;
    side->row_bytes = frit_dtype_row_bytes(dtype, dim);
    side->mix = dim > 0 ? mix_of(dtype, dim) : 1;
    return frit_mul_u64((uint64_t)n_head * FRIT_PAGE_TOKENS, side->row_bytes, &side->page_bytes) &&
           frit_align_u64(side->page_bytes, ALIGNMENT, &side->page_bytes);
}

// Values that lie in the keys take no room of their own, and are mixed with them: in blocks that end where they end.
static void lay_out_values_in_keys(frit_cache_layer *layer, const frit_cache_spec *spec)
{
    if (layer->k.mix > 1) layer->k.mix = mix_of(layer->k.dtype, spec->k_dim | spec->v_dim);
    layer->v = layer->k;
    layer->v.dim = spec->v_dim;
    layer->v.page_bytes = 0;
}

static bool lay_out_layer(frit_cache_layer *layer, const frit_cache_spec *spec, frit_kv_types types)
{
    layer->spec = *spec;
    if (!lay_out(&layer->k, spec, spec->n_head_kv, spec->k_dim, types.k)) return false;
    layer->k.transposed = !spec->v_in_k && frit_dtype_get(types.k)->block_elems == 1;
    if (spec->v_in_k)
        lay_out_values_in_keys(layer, spec);
    else if (!lay_out(&layer->v, spec, spec->n_head_kv, spec->v_dim, types.v))
        return false;
    return lay_out(&layer->index, spec, 1, spec->index_dim, types.k);
}

uint64_t frit_kv_page_bytes(const frit_cache_spec *specs, int32_t n_layers, frit_kv_types types)
{
    uint64_t n_bytes = 0;
    for (int32_t i = 0; i < n_layers; i++) {
        frit_cache_layer layer;
        if (!lay_out_layer(&layer, &specs[i], types) || !frit_add_u64(n_bytes, layer.k.page_bytes, &n_bytes) ||
            !frit_add_u64(n_bytes, layer.v.page_bytes, &n_bytes) ||
            !frit_add_u64(n_bytes, layer.index.page_bytes, &n_bytes))
            return UINT64_MAX;
    }
    // Attention reads some pages side by side: a power of two apart, they would compete for the same places in caches.
    if (n_bytes > 0 && n_bytes % ALIASING == 0 && !frit_add_u64(n_bytes, APART, &n_bytes)) return UINT64_MAX;
    return n_bytes;
}

uint64_t frit_kv_token_bytes(const frit_cache_spec *specs, int32_t n_layers, frit_kv_types types)
{
    uint64_t n_bytes = 0;
    for (int32_t i = 0; i < n_layers; i++) {
        frit_cache_layer layer;
        if (lay_out_layer(&layer, &specs[i], types) && specs[i].kind != FRIT_CACHE_NONE)
            n_bytes += (uint64_t)specs[i].n_head_kv * (layer.k.row_bytes + (specs[i].v_in_k ? 0 : layer.v.row_bytes)) +
                       layer.index.row_bytes;
    }
    return n_bytes;
}

// Of one layer, rounded up so that what follows is aligned.
static uint64_t layer_state_bytes(const frit_cache_spec *spec)
{
    const uint64_t n_bytes = (uint64_t)spec->n_state * sizeof(float);
    return (n_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

uint64_t frit_kv_state_bytes(const frit_cache_spec *specs, int32_t n_layers)
{
    uint64_t n_bytes = 0;
    for (int32_t i = 0; i < n_layers; i++) {
        if (specs[i].n_state < 0 || !frit_add_u64(n_bytes, layer_state_bytes(&specs[i]), &n_bytes)) return UINT64_MAX;
    }
    return n_bytes;
}

static frit_status check_side(const char *what, int32_t layer, int32_t dim, frit_dtype dtype)
{
    const frit_dtype_info *type = frit_dtype_get(dtype);
    if (dim % type->block_elems == 0) return FRIT_OK;
    return frit_fail(FRIT_E_INVALID,
                     "cached %s cannot be %s: a head of layer %d has %d numbers, expected a multiple of %d", what,
                     type->name, layer, dim, type->block_elems);
}

frit_status frit_kv_check(const frit_cache_spec *specs, int32_t n_layers, frit_kv_types types)
{
    for (int32_t i = 0; i < n_layers; i++) {
        if (specs[i].kind == FRIT_CACHE_NONE) continue;
        FRIT_TRY(check_side("keys", i, specs[i].k_dim, types.k));
        FRIT_TRY(check_side("values", i, specs[i].v_dim, specs[i].v_in_k ? types.k : types.v));
        FRIT_TRY(check_side("keys of an index", i, specs[i].index_dim, types.k));
    }
    return FRIT_OK;
}

static void place_layers(frit_kv *kv, const frit_cache_spec *specs, frit_kv_types types)
{
    uint8_t *at = kv->device->backend->map(kv->memory);
    const uint64_t page_bytes = frit_kv_page_bytes(specs, kv->cache.n_layers, types);
    uint8_t *states = at + page_bytes * (uint64_t)kv->cache.n_pages;
    for (int32_t i = 0; i < kv->cache.n_layers; i++) {
        frit_cache_layer *layer = &kv->layers[i];
        lay_out_layer(layer, &specs[i], types);
        layer->group = specs[i].of_source;
        if (specs[i].of_source) kv->n_groups = 2;
        layer->k.pages = at;
        layer->v.pages = specs[i].v_in_k ? at : at + layer->k.page_bytes;
        layer->index.pages = at + layer->k.page_bytes + layer->v.page_bytes;
        at = layer->index.pages + layer->index.page_bytes;
        layer->k.page_bytes = layer->v.page_bytes = layer->index.page_bytes = page_bytes;
        layer->states = (float *)(void *)states;
        states += (uint64_t)(kv->n_slots + kv->n_copies) * layer_state_bytes(&specs[i]);
    }
}

static frit_status allocate(frit_kv *kv, int32_t n_pages)
{
    const size_t n_slots = (size_t)kv->n_slots, n_copies = (size_t)kv->n_copies;
    kv->layers = calloc((size_t)kv->cache.n_layers + 1, sizeof *kv->layers);
    kv->free_pages = calloc((size_t)n_pages + 1, sizeof *kv->free_pages);
    kv->refs = calloc((size_t)n_pages + 1, sizeof *kv->refs);
    kv->free_slots = calloc(n_slots + 1, sizeof *kv->free_slots);
    kv->free_copies = calloc(n_copies + 1, sizeof *kv->free_copies);
    if (!kv->layers || !kv->free_pages || !kv->refs || !kv->free_slots || !kv->free_copies)
        return frit_fail_memory((size_t)n_pages, "cache pages");
    return kv->n_bytes > 0 ? kv->device->backend->alloc(kv->device, kv->n_bytes, &kv->memory) : FRIT_OK;
}

frit_status frit_kv_init(frit_kv *kv, frit_device *device, const frit_cache_spec *specs, int32_t n_layers,
                         frit_kv_types types, frit_kv_room room)
{
    const int32_t n_pages = room.n_pages, n_slots = room.n_slots;
    *kv = (frit_kv){.device = device, .state_bytes = frit_kv_state_bytes(specs, n_layers), .n_slots = n_slots};
    kv->cache = (frit_cache){.n_layers = n_layers, .n_pages = n_pages};
    if (kv->state_bytes > 0) kv->max_copies = room.n_copies;
    kv->n_copies = n_slots * kv->max_copies;
    kv->n_groups = 1;
    uint64_t states = 0;
    if (!frit_mul_u64(frit_kv_page_bytes(specs, n_layers, types), (uint64_t)n_pages, &kv->n_bytes) ||
        !frit_mul_u64(kv->state_bytes, (uint64_t)(n_slots + kv->n_copies), &states) ||
        !frit_add_u64(kv->n_bytes, states, &kv->n_bytes))
        return frit_fail(FRIT_E_MEMORY, "the size of a cache of %d pages is not a 64-bit number", n_pages);
    frit_status status = allocate(kv, n_pages);
    if (status != FRIT_OK) {
        frit_kv_deinit(kv);
        return status;
    }
    kv->cache.layers = kv->layers;
    kv->n_free_slots = n_slots;
    kv->n_free_copies = kv->n_copies;
    for (int32_t i = 0; i < n_slots; i++) kv->free_slots[i] = n_slots - i;   // from 1 on, which goes out first
    for (int32_t i = 0; i < kv->n_copies; i++) kv->free_copies[i] = n_slots + kv->n_copies - i;
    if (kv->memory) place_layers(kv, specs, types);
    for (int32_t i = 0; i < n_pages; i++) kv->free_pages[i] = n_pages - 1 - i;   // page 0 goes out first
    kv->n_free = n_pages;
    return FRIT_OK;
}

void frit_kv_deinit(frit_kv *kv)
{
    if (kv->memory) kv->device->backend->release(kv->device, kv->memory);
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

static float *state_at(const frit_cache_layer *layer, int32_t slot)
{
    return layer->states + (int64_t)(slot - 1) * layer->spec.n_state;
}

void frit_kv_copy_states(const frit_kv *kv, int32_t from, int32_t to)
{
    for (int32_t i = 0; i < kv->cache.n_layers; i++) {
        const frit_cache_layer *layer = &kv->layers[i];
        if (layer->spec.n_state > 0)
            memcpy(state_at(layer, to), state_at(layer, from), (size_t)layer->spec.n_state * sizeof(float));
    }
}

int32_t frit_kv_go_back(frit_kv *kv, frit_kv_map *map)
{
    if (map->n_copies == 0) return 0;
    const frit_kv_copy *copy = &map->copies[map->n_copies - 1];
    frit_kv_copy_states(kv, copy->slot, map->slot);
    return copy->at;
}

// ------------------------------------------------------------------------------- visits

// Rows of a page's first n positions, or of each dimension these.
static frit_status visit_page(const frit_cache_side *side, uint8_t *page, int32_t n, frit_kv_visit_fn visit, void *ctx)
{
    if (!side->transposed) return visit(ctx, page, (size_t)n * side->row_bytes);
    const size_t elem_bytes = (size_t)side->row_bytes / (size_t)side->dim;
    for (int32_t d = 0; d < side->dim; d++)
        FRIT_TRY(visit(ctx, page + (size_t)d * FRIT_PAGE_TOKENS * elem_bytes, (size_t)n * elem_bytes));
    return FRIT_OK;
}

static frit_status visit_side(const frit_cache_side *side, int32_t n_heads, const frit_kv_map *map, int32_t n_positions,
                              frit_kv_visit_fn visit, void *ctx)
{
    for (int32_t head = 0; side->row_bytes > 0 && head < n_heads; head++) {
        for (int32_t p = 0; p < n_positions; p += FRIT_PAGE_TOKENS) {
            const int32_t left = n_positions - p, n = left < FRIT_PAGE_TOKENS ? left : FRIT_PAGE_TOKENS;
            uint8_t *page = side->pages + (uint64_t)map->pages[p / FRIT_PAGE_TOKENS] * side->page_bytes;
            FRIT_TRY(visit_page(side, page + (uint64_t)head * FRIT_PAGE_TOKENS * side->row_bytes, n, visit, ctx));
        }
    }
    return FRIT_OK;
}

uint64_t frit_kv_visit_bytes(const frit_kv *kv, frit_kv_layers layers)
{
    uint64_t n_bytes = 0;
    for (int32_t i = layers.begin; i < layers.end; i++) {
        const frit_cache_layer *layer = &kv->layers[i];
        const uint64_t v_bytes = layer->spec.v_in_k ? 0 : layer->v.row_bytes;
        n_bytes += (uint64_t)layer->spec.n_head_kv * (layer->k.row_bytes + v_bytes) + layer->index.row_bytes;
    }
    return n_bytes;
}

frit_status frit_kv_visit(const frit_kv *kv, const frit_kv_map *map, frit_kv_layers layers, int32_t n_positions,
                          frit_kv_visit_fn visit, void *ctx)
{
    for (int32_t i = layers.begin; i < layers.end; i++) {
        const frit_cache_layer *layer = &kv->layers[i];
        FRIT_TRY(visit_side(&layer->k, layer->spec.n_head_kv, map, n_positions, visit, ctx));
        if (!layer->spec.v_in_k) FRIT_TRY(visit_side(&layer->v, layer->spec.n_head_kv, map, n_positions, visit, ctx));
        FRIT_TRY(visit_side(&layer->index, 1, map, n_positions, visit, ctx));
    }
    return FRIT_OK;
}

frit_status frit_kv_visit_states(const frit_kv *kv, int32_t slot, frit_kv_visit_fn visit, void *ctx)
{
    for (int32_t i = 0; i < kv->cache.n_layers; i++) {
        const frit_cache_layer *layer = &kv->layers[i];
        if (layer->spec.n_state == 0) continue;
        FRIT_TRY(visit(ctx, (uint8_t *)(void *)state_at(layer, slot), (size_t)layer->spec.n_state * sizeof(float)));
    }
    return FRIT_OK;
}

// Between two maps, page by page: both are cut at the same positions.
static void copy_side(const frit_cache_side *side, int32_t n_heads, const frit_kv_map *from, const frit_kv_map *to,
                      int32_t n_pages)
{
    for (int32_t i = 0; side->row_bytes > 0 && i < n_pages; i++)
        memcpy(side->pages + (uint64_t)to->pages[i] * side->page_bytes,
               side->pages + (uint64_t)from->pages[i] * side->page_bytes,
               (size_t)n_heads * FRIT_PAGE_TOKENS * side->row_bytes);
}

void frit_kv_copy_positions(const frit_kv *kv, const frit_kv_map *from, const frit_kv_map *to, frit_kv_layers layers,
                            int32_t n_positions)
{
    const int32_t n_pages = frit_kv_pages_of(n_positions);
    for (int32_t i = layers.begin; i < layers.end; i++) {
        const frit_cache_layer *layer = &kv->layers[i];
        copy_side(&layer->k, layer->spec.n_head_kv, from, to, n_pages);
        if (!layer->spec.v_in_k) copy_side(&layer->v, layer->spec.n_head_kv, from, to, n_pages);
        copy_side(&layer->index, 1, from, to, n_pages);
    }
}

void frit_kv_map_free(frit_kv *kv, frit_kv_map *map)
{
    frit_kv_shrink(kv, map, 0);
    free(map->pages);
    *map = (frit_kv_map){0};
}
