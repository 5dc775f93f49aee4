// SPDX-License-Identifier: MIT
// backend/cpu/ops/attend.h: an item of attention, and the ways to compute one.
//
// fast_attend.c cuts the work into items: some rows of a sequence, one head of the cache, some positions. The
// queries of those rows that share the head (group x rows) look at the positions together:
//
//     by rows     few queries: keys and values are read as they lie in the pages, elements of a head as lanes
//     by tiles    many: keys and values are decoded once for all of them, queries as lanes
//     in bf16     many, where a processor multiplies bfloat16 much faster
//
// Each gives the same three sums for every query, from which fast_attend.c makes results.
#pragma once
#include "backend/cpu/ops/cache.h"

typedef struct frit_attend_shape {
    const frit_cache_layer *layer;
    int64_t n_head, group, k_dim, v_dim;
} frit_attend_shape;

typedef struct frit_attend_item {
    const frit_task *task;
    const frit_kernels *kernels;   // of the sequence
    const frit_attend_shape *shape;
    const frit_seq *seq;
    const int32_t *pages;
    int64_t first, n_rows;   // rows of the sequence
    int64_t head;            // of the cache
    const float *chosen;     // NULL, or the positions of its one row: ranges are of this list
    int64_t n_chosen;
    frit_range tiled;       // pages whose keys and values lie in tiles already,
    const uint8_t *tiles;   // here
} frit_attend_item;

// Of query i, relative to max[i]: the sum of the exponentials of its scores, and the sum of the values they weigh.
typedef struct frit_attend_sums {
    const float *max, *sum;   // [n]
    const float *acc;         // [n], rows acc_stride apart, [v_dim]
    int64_t acc_stride;
} frit_attend_sums;

typedef struct frit_attend_way {
    size_t (*workspace_bytes)(int64_t n_queries, int64_t k_dim, int64_t v_dim);
    void (*run)(const frit_attend_item *item, frit_range positions, float *workspace, frit_attend_sums *sums);
    bool folds;   // positions of several chunks may be given at once
} frit_attend_way;

extern const frit_attend_way frit_attend_by_rows, frit_attend_by_tiles, frit_attend_by_bf16;

// A page of the item's head as tiles, for items in bf16: positions outside of `seen` become zeros.
void frit_kv_page_to_tiles(const frit_attend_item *item, int64_t page, frit_range seen, float *workspace,
                           uint8_t *tiles);
size_t frit_kv_page_scratch_bytes(int64_t k_dim, int64_t v_dim);   // of that workspace

// ------------------------------------------------------------------------------- for the ways

enum { FRIT_LINE_FLOATS = 16 };   // floats of a cache line

static inline int64_t frit_attend_line(int64_t n_floats)   // filled up to a line
{
    return (n_floats + FRIT_LINE_FLOATS - 1) / FRIT_LINE_FLOATS * FRIT_LINE_FLOATS;
}

// The next n floats of the workspace, at the beginning of a cache line.
static inline void *frit_attend_take(float **workspace, int64_t n)
{
    float *at = *workspace;
    *workspace += frit_attend_line(n);
    return at;
}

static inline int64_t frit_attend_queries(const frit_attend_item *item)
{
    return item->n_rows * item->shape->group;
}

// Query i of an item: queries of one row are neighbours.
typedef struct frit_attend_query {
    int64_t row, head;      // of the batch, of the graph
    int64_t own_position;   // its own position
    frit_range seen;        // positions, or places of the list of chosen ones
} frit_attend_query;

static inline frit_attend_query frit_attend_query_at(const frit_attend_item *item, int64_t i)
{
    const int64_t group = item->shape->group, row = item->first + i / group, own_position = item->seq->n_past + row;
    const frit_range seen = item->chosen ? (frit_range){0, item->n_chosen}
                                         : frit_attend_span(&item->task->node->attend, item->seq, own_position);
    return (frit_attend_query){item->seq->first_row + row, item->head * group + i % group, own_position, seen};
}

// What sums relative to one maximum are multiplied by when they become relative to a larger one.
static inline float frit_attend_factor(float max, float larger)
{
    return max - larger < FRIT_LEAST_WEIGHT ? 0 : expf(max - larger);
}

static inline int64_t frit_page_begin(int64_t position)
{
    return position / FRIT_PAGE_TOKENS * FRIT_PAGE_TOKENS;
}

// Where the span of a position ends. Spans begin at multiples of their length, whatever is looked at.
static inline int64_t frit_attend_span_end(int64_t position)
{
    return (position / FRIT_ATTEND_SPAN + 1) * FRIT_ATTEND_SPAN;
}

// Where chunk i of a text begins, and the chunk of a position: FRIT_CHUNK_LEVEL chunks of FRIT_CHUNK positions, then as
// many of twice that, and so on. They do not depend on what else is looked at, so a result is the same however a text
// is cut into steps.
enum { FRIT_CHUNK = 256, FRIT_CHUNK_LEVEL = 16 };

static inline int64_t frit_attend_chunk_begin(int64_t i)
{
    const int64_t size = (int64_t)FRIT_CHUNK << i / FRIT_CHUNK_LEVEL;
    return FRIT_CHUNK_LEVEL * (size - FRIT_CHUNK) + i % FRIT_CHUNK_LEVEL * size;
}

static inline int64_t frit_attend_chunk_at(int64_t position)
{
    int64_t level = 0;
    while (frit_attend_chunk_begin((level + 1) * FRIT_CHUNK_LEVEL) <= position) level++;
    const int64_t first = level * FRIT_CHUNK_LEVEL;
    return first + (position - frit_attend_chunk_begin(first)) / ((int64_t)FRIT_CHUNK << level);
}

// The query as scores want it, times `factor`: [k_dim].
void frit_attend_load_query(const frit_attend_item *item, const frit_attend_query *query, float factor, float *y);
// Whole pages of transposed keys, as they lie: [page, dim, FRIT_PAGE_TOKENS].
void frit_attend_decode_pages(const frit_attend_item *item, const frit_cache_side *side, frit_range positions,
                              float *y);
// The rows of these positions, one after the other.
void frit_attend_decode_positions(const frit_attend_item *item, const frit_cache_side *side, frit_range positions,
                                  float *y);
