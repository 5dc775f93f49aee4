// SPDX-License-Identifier: MIT
// The layout of a rank's cache: pages have the same numbers as for callers, and a part of their heads.
//
//     callers    [ page 0: layer 0 K of heads 0 to 7 | V | layer 1 K ... ][ page 1 ... ] ... [ states ]
//     rank 1     [ page 0: layer 0 K of heads 4 to 7 | V | layer 1 K ... ][ page 1 ... ] ... [ states ]
//
// States, and layers whose heads are not cut, are the same on all ranks.
#include "backend/group_cache.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, ALIASING = 4096, APART = 9 * ALIGNMENT };   // as the engine lays out pages

typedef struct region {
    int32_t group;
    uint64_t begin, page_bytes, n_pages;    // for callers
    uint64_t rank_begin, rank_page_bytes;   // on a rank
} region;

static bool has_pages(const frit_cache_layer *layer)
{
    return layer->spec.kind == FRIT_CACHE_KV && layer->k.page_bytes > 0;
}

static int32_t parts_of(const frit_cache_layer *layer)
{
    return layer->spec.n_parts > 1 ? layer->spec.n_parts : 1;
}

static uint64_t head_bytes(const frit_cache_side *side)
{
    return side->row_bytes * FRIT_PAGE_TOKENS;
}

static uint64_t aligned(uint64_t n_bytes)
{
    return (n_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

// ------------------------------------------------------------------------------- layout

static region *region_of(frit_group_cache *cache, int32_t group)
{
    for (int i = 0; i < cache->n_regions; i++)
        if (cache->regions[i].group == group) return &cache->regions[i];
    cache->regions[cache->n_regions] = (region){.group = group, .begin = UINT64_MAX};
    return &cache->regions[cache->n_regions++];
}

static uint64_t states_begin(const frit_group_cache *cache)
{
    uint64_t begin = cache->whole_bytes;
    for (int32_t i = 0; i < cache->n_layers; i++) {
        const frit_cache_layer *layer = &cache->whole[i];
        if (layer->spec.n_state > 0 && layer->states_offset < begin) begin = layer->states_offset;
    }
    return begin;
}

// A region ends where the next one begins, or the states.
static uint64_t end_of(const frit_group_cache *cache, const region *r)
{
    uint64_t end = states_begin(cache);
    for (int i = 0; i < cache->n_regions; i++)
        if (cache->regions[i].begin > r->begin && cache->regions[i].begin < end) end = cache->regions[i].begin;
    return end;
}

static void find_regions(frit_group_cache *cache)
{
    for (int32_t i = 0; i < cache->n_layers; i++) {
        const frit_cache_layer *layer = &cache->whole[i];
        if (!has_pages(layer)) continue;
        region *r = region_of(cache, layer->group);
        if (layer->k.offset < r->begin) r->begin = layer->k.offset;
        r->page_bytes = layer->k.page_bytes;
    }
    for (int i = 0; i < cache->n_regions; i++) {
        region *r = &cache->regions[i];
        r->n_pages = (end_of(cache, r) - r->begin) / r->page_bytes;
    }
}

static void place_side(frit_cache_side *side, int32_t n_heads, uint64_t *at)
{
    side->offset = *at;
    *at += aligned((uint64_t)n_heads * head_bytes(side));
}

// Places the sides of a region's layers one after the other, in page 0.
static void place_region(frit_group_cache *cache, region *r)
{
    uint64_t at = r->rank_begin = cache->rank_bytes;
    for (int32_t i = 0; i < cache->n_layers; i++) {
        frit_cache_layer *layer = &cache->rank[i];
        if (!has_pages(layer) || layer->group != r->group) continue;
        layer->spec.n_head_kv /= parts_of(layer);
        place_side(&layer->k, layer->spec.n_head_kv, &at);
        layer->v.offset = layer->k.offset;
        if (!layer->spec.v_in_k) place_side(&layer->v, layer->spec.n_head_kv, &at);
        place_side(&layer->index, layer->spec.index_dim > 0, &at);
    }
    r->rank_page_bytes = at - r->rank_begin;
    if (r->rank_page_bytes > 0 && r->rank_page_bytes % ALIASING == 0) r->rank_page_bytes += APART;
    for (int32_t i = 0; i < cache->n_layers; i++) {
        frit_cache_layer *layer = &cache->rank[i];
        if (!has_pages(layer) || layer->group != r->group) continue;
        layer->k.page_bytes = layer->v.page_bytes = layer->index.page_bytes = r->rank_page_bytes;
    }
    cache->rank_bytes += r->rank_page_bytes * r->n_pages;
}

static void place_states(frit_group_cache *cache)
{
    const uint64_t begin = states_begin(cache);
    for (int32_t i = 0; i < cache->n_layers; i++)
        if (cache->rank[i].spec.n_state > 0)
            cache->rank[i].states_offset = cache->rank_bytes + cache->whole[i].states_offset - begin;
    cache->rank_bytes += cache->whole_bytes - begin;
}

frit_status frit_group_cache_init(frit_group_cache *cache, const frit_cache *layers, uint64_t n_bytes, int32_t n_ranks)
{
    const size_t n = (size_t)layers->n_layers;
    *cache = (frit_group_cache){.n_layers = layers->n_layers, .n_ranks = n_ranks, .whole_bytes = n_bytes};
    cache->whole = calloc(n + 1, sizeof *cache->whole);
    cache->rank = calloc(n + 1, sizeof *cache->rank);
    cache->regions = calloc(n + 1, sizeof *cache->regions);
    if (!cache->whole || !cache->rank || !cache->regions) {
        frit_group_cache_deinit(cache);
        return frit_fail_memory(n * sizeof *cache->whole, "the layers of a group's cache");
    }
    memcpy(cache->whole, layers->layers, n * sizeof *cache->whole);
    memcpy(cache->rank, layers->layers, n * sizeof *cache->rank);
    find_regions(cache);
    for (int i = 0; i < cache->n_regions; i++) place_region(cache, &cache->regions[i]);
    place_states(cache);
    return FRIT_OK;
}

void frit_group_cache_deinit(frit_group_cache *cache)
{
    free(cache->whole);
    free(cache->rank);
    free(cache->regions);
    *cache = (frit_group_cache){0};
}

// ------------------------------------------------------------------------------- pieces

typedef struct visit {
    const frit_group_cache *cache;
    int32_t rank;
    bool once;
    uint64_t begin, end;   // what is asked for
    frit_group_piece_fn fn;
    void *ctx;
} visit;

// Calls fn for the part of a piece that is asked for.
static frit_status visit_piece(const visit *v, frit_group_piece p)
{
    const uint64_t begin = p.whole > v->begin ? p.whole : v->begin;
    const uint64_t end = p.whole + p.n_bytes < v->end ? p.whole + p.n_bytes : v->end;
    if (begin >= end) return FRIT_OK;
    return v->fn(v->ctx, (frit_group_piece){begin, p.rank + (begin - p.whole), end - begin});
}

// True if the rank is the first one that has its part.
static bool is_first(const visit *v, int32_t n_parts)
{
    return v->rank % (v->cache->n_ranks / n_parts) == 0;
}

typedef struct side_pair {
    const frit_cache_side *whole, *rank;
    int32_t n_heads, n_parts;
} side_pair;

static frit_status visit_side(const visit *v, const region *r, uint64_t page, side_pair side)
{
    if (v->once && !is_first(v, side.n_parts)) return FRIT_OK;
    const uint64_t n_bytes = (uint64_t)(side.n_heads / side.n_parts) * head_bytes(side.whole);
    const uint64_t part = (uint64_t)(v->rank * side.n_parts / v->cache->n_ranks);
    return visit_piece(v, (frit_group_piece){side.whole->offset + page * r->page_bytes + part * n_bytes,
                                             side.rank->offset + page * r->rank_page_bytes, n_bytes});
}

static frit_status visit_layer(const visit *v, const region *r, uint64_t page, int32_t i)
{
    const frit_cache_layer *whole = &v->cache->whole[i], *rank = &v->cache->rank[i];
    if (!has_pages(whole) || whole->group != r->group) return FRIT_OK;
    const int32_t n_heads = whole->spec.n_head_kv, n_parts = parts_of(whole);
    FRIT_TRY(visit_side(v, r, page, (side_pair){&whole->k, &rank->k, n_heads, n_parts}));
    if (!whole->spec.v_in_k) FRIT_TRY(visit_side(v, r, page, (side_pair){&whole->v, &rank->v, n_heads, n_parts}));
    if (whole->spec.index_dim == 0) return FRIT_OK;
    return visit_side(v, r, page, (side_pair){&whole->index, &rank->index, 1, 1});
}

static frit_status visit_region(const visit *v, const region *r)
{
    const uint64_t end = r->begin + r->n_pages * r->page_bytes;
    if (v->end <= r->begin || v->begin >= end) return FRIT_OK;
    const uint64_t first = v->begin > r->begin ? (v->begin - r->begin) / r->page_bytes : 0;
    for (uint64_t page = first; page < r->n_pages && r->begin + page * r->page_bytes < v->end; page++)
        for (int32_t i = 0; i < v->cache->n_layers; i++) FRIT_TRY(visit_layer(v, r, page, i));
    return FRIT_OK;
}

static frit_status visit_states(const visit *v)
{
    const frit_group_cache *cache = v->cache;
    const uint64_t begin = states_begin(cache), n_bytes = cache->whole_bytes - begin;
    if (v->once && v->rank > 0) return FRIT_OK;
    return visit_piece(v, (frit_group_piece){begin, cache->rank_bytes - n_bytes, n_bytes});
}

frit_status frit_group_cache_each(const frit_group_cache *cache, int32_t rank, bool once, uint64_t offset,
                                  uint64_t n_bytes, frit_group_piece_fn fn, void *ctx)
{
    const visit v = {cache, rank, once, offset, offset + n_bytes, fn, ctx};
    for (int i = 0; i < cache->n_regions; i++) FRIT_TRY(visit_region(&v, &cache->regions[i]));
    return visit_states(&v);
}

static frit_status take_offset(void *ctx, frit_group_piece piece)
{
    *(uint64_t *)ctx = piece.rank;
    return FRIT_OK;
}

uint64_t frit_group_cache_offset(const frit_group_cache *cache, int32_t rank, uint64_t offset)
{
    uint64_t on_rank = UINT64_MAX;
    frit_group_cache_each(cache, rank, false, offset, 1, take_offset, &on_rank);
    return on_rank;
}
