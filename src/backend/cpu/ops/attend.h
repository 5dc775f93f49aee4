// SPDX-License-Identifier: MIT
// backend/cpu/ops/attend.h: an item of attention, and the ways to compute one.
//
// An item is some rows of a sequence, one head of the cache and some positions (attend_plan.h). The queries of the rows
// that share the head (group x rows) look at the positions together, in one of three ways:
//
//     by rows     few queries: keys and values are read from the pages as they are; lanes are elements of a head
//     by tiles    many queries: keys and values are decoded once for all queries; lanes are queries
//     in bf16     many queries, on processors that multiply bf16 much faster than f32
//
// Each way computes the maximum and the two sums of frit_attend_sums for each query. attend.c computes the results from
// them.
#pragma once
#include "backend/cpu/ops/cache.h"

typedef struct frit_attend_shape {
    const frit_cache_layer *layer;
    int64_t n_head, group, k_dim, v_dim;
} frit_attend_shape;

typedef struct frit_attend_item {
    const frit_task *task;
    const frit_kernels *kernels;   // kernels of the sequence
    const frit_attend_shape *shape;
    const frit_seq *seq;
    const int32_t *pages;
    int64_t first, n_rows;   // rows of the sequence
    int64_t head;            // head of the cache
    const float *chosen;     // sparse attention of one row: the chosen positions, which ranges then index; else NULL
    int64_t n_chosen;
    frit_range tiled;       // pages whose keys and values are stored as tiles
    const uint8_t *tiles;   // the tiles of these pages
} frit_attend_item;

// Sums of each query, relative to its largest score: `sum` adds the exponentials of its scores, `acc` the values times
// these exponentials.
typedef struct frit_attend_sums {
    const float *max, *sum;   // [n]
    const float *acc;         // [n], rows acc_stride apart, [v_dim]
    int64_t acc_stride;
} frit_attend_sums;

typedef struct frit_attend_way {
    size_t (*workspace_bytes)(int64_t n_queries, int64_t k_dim, int64_t v_dim);
    void (*run)(const frit_attend_item *item, frit_range positions, float *workspace, frit_attend_sums *sums);
    bool folds;   // `run` accepts the positions of several chunks at once
} frit_attend_way;

extern const frit_attend_way frit_attend_by_rows, frit_attend_by_tiles, frit_attend_by_bf16;

// Writes the tiles of a page and the item's head, for items in bf16. Positions outside of `seen` become zeros.
void frit_kv_page_to_tiles(const frit_attend_item *item, int64_t page, frit_range seen, float *workspace,
                           uint8_t *tiles);
size_t frit_kv_page_scratch_bytes(int64_t k_dim, int64_t v_dim);   // bytes of `workspace`

// ------------------------------------------------------------------------------- for the ways

enum { FRIT_LINE_FLOATS = 16 };   // floats of a cache line

static inline int64_t frit_attend_round_up(int64_t n_floats)   // rounded up to whole cache lines
{
    return (n_floats + FRIT_LINE_FLOATS - 1) / FRIT_LINE_FLOATS * FRIT_LINE_FLOATS;
}

// Takes n floats from the workspace, at the start of a cache line.
static inline void *frit_attend_take(float **workspace, int64_t n)
{
    float *at = *workspace;
    *workspace += frit_attend_round_up(n);
    return at;
}

static inline int64_t frit_attend_queries(const frit_attend_item *item)
{
    return item->n_rows * item->shape->group;
}

// A query of an item. The queries of one row have consecutive indices.
typedef struct frit_attend_query {
    int64_t row, head;      // row of the batch, head of the graph
    int64_t own_position;   // position of the row
    frit_range seen;        // positions, or indices into the list of chosen positions
} frit_attend_query;

static inline frit_attend_query frit_attend_query_at(const frit_attend_item *item, int64_t i)
{
    const int64_t group = item->shape->group, row = item->first + i / group, own_position = item->seq->n_past + row;
    const frit_range seen =
        item->chosen ? (frit_range){0, item->n_chosen} : frit_attend_seen(item->task, item->seq, own_position);
    return (frit_attend_query){item->seq->first_row + row, item->head * group + i % group, own_position, seen};
}

// The factor of sums relative to `max` when they become relative to a larger maximum.
static inline float frit_attend_factor(float max, float larger)
{
    return max - larger < FRIT_LEAST_WEIGHT ? 0 : expf(max - larger);
}

static inline int64_t frit_page_begin(int64_t position)
{
    return position / FRIT_PAGE_TOKENS * FRIT_PAGE_TOKENS;
}

// End of the span of a position. Spans begin at multiples of FRIT_ATTEND_SPAN.
static inline int64_t frit_attend_span_end(int64_t position)
{
    return (position / FRIT_ATTEND_SPAN + 1) * FRIT_ATTEND_SPAN;
}

// The chunks of a text: FRIT_CHUNK_LEVEL chunks of FRIT_CHUNK positions, then FRIT_CHUNK_LEVEL chunks of twice the
// length, and so on. They depend on positions only, so a result is the same however a text is cut into steps.
enum { FRIT_CHUNK = 256, FRIT_CHUNK_LEVEL = 16 };

static inline int64_t frit_attend_chunk_begin(int64_t i)   // first position of chunk i
{
    const int64_t size = (int64_t)FRIT_CHUNK << i / FRIT_CHUNK_LEVEL;
    return FRIT_CHUNK_LEVEL * (size - FRIT_CHUNK) + i % FRIT_CHUNK_LEVEL * size;
}

static inline int64_t frit_attend_chunk_at(int64_t position)   // index of the chunk of a position
{
    int64_t level = 0;
    while (frit_attend_chunk_begin((level + 1) * FRIT_CHUNK_LEVEL) <= position) level++;
    const int64_t first = level * FRIT_CHUNK_LEVEL;
    return first + (position - frit_attend_chunk_begin(first)) / ((int64_t)FRIT_CHUNK << level);
}

// Writes the query to y [k_dim], times `factor` and the scale of the scores, rotated as the keys are (hadamard).
void frit_attend_load_query(const frit_attend_item *item, const frit_attend_query *query, float factor, float *y);
// Decodes whole pages of transposed keys: y [page, dim, FRIT_PAGE_TOKENS].
void frit_attend_decode_pages(const frit_attend_item *item, const frit_cache_side *side, frit_range positions,
                              float *y);
// Decodes the rows of some positions: y [position, dim].
void frit_attend_decode_positions(const frit_attend_item *item, const frit_cache_side *side, frit_range positions,
                                  float *y);
