// SPDX-License-Identifier: MIT
// Attention of many queries in panels, in which the elements of consecutive queries are interleaved: element d of query
// i is at (i / lanes * dim + d) * lanes + i % lanes.
#include "backend/cpu/ops/attend.h"
#include "base/minmax.h"

#include <math.h>
#include <string.h>

typedef struct panels {
    int64_t n, n_padded, lanes;            // n_padded: n rounded up to whole panels
    float *q, *acc;                        // [n_padded, k_dim], [n_padded, v_dim]
    float *max, *sum, *slope;              // [n_padded]
    int32_t *begin, *end, *own_position;   // [n_padded]
    float *k, *v;   // decoded: [FRIT_ATTEND_SPAN, k_dim], or whole pages of transposed keys; [FRIT_ATTEND_SPAN, v_dim]
    float *results;                         // [n, v_dim]
    float *bias;                            // [FRIT_ATTEND_SPAN + n_padded]
    float *total, *total_max, *total_sum;   // acc, max and sum of earlier chunks
    float *scratch;
} panels;

static size_t workspace_bytes(int64_t n, int64_t k_dim, int64_t v_dim)
{
    const int64_t padded = n + FRIT_ATTEND_LANES;
    return (size_t)(frit_attend_round_up(padded * k_dim) + 3 * frit_attend_round_up(padded * v_dim) +
                    8 * frit_attend_round_up(padded) + frit_attend_round_up(FRIT_ATTEND_SPAN * k_dim) +
                    frit_attend_round_up(FRIT_ATTEND_SPAN * v_dim) + frit_attend_round_up(FRIT_ATTEND_SPAN + padded) +
                    2 * FRIT_ATTEND_LANES * FRIT_ATTEND_SPAN) *
           sizeof(float);
}

static panels take_room(const frit_attend_item *item, float *workspace)
{
    const frit_attend_shape *s = item->shape;
    panels p = {.n = frit_attend_queries(item), .lanes = item->kernels->lanes};
    p.n_padded = (p.n + p.lanes - 1) / p.lanes * p.lanes;
    p.q = frit_attend_take(&workspace, p.n_padded * s->k_dim);
    p.acc = frit_attend_take(&workspace, p.n_padded * s->v_dim);
    p.max = frit_attend_take(&workspace, p.n_padded);
    p.sum = frit_attend_take(&workspace, p.n_padded);
    p.slope = frit_attend_take(&workspace, p.n_padded);
    p.begin = frit_attend_take(&workspace, p.n_padded);
    p.end = frit_attend_take(&workspace, p.n_padded);
    p.own_position = frit_attend_take(&workspace, p.n_padded);
    p.total = frit_attend_take(&workspace, p.n_padded * s->v_dim);
    p.total_max = frit_attend_take(&workspace, p.n_padded);
    p.total_sum = frit_attend_take(&workspace, p.n_padded);
    p.k = frit_attend_take(&workspace, FRIT_ATTEND_SPAN * s->k_dim);
    p.v = frit_attend_take(&workspace, FRIT_ATTEND_SPAN * s->v_dim);
    p.results = frit_attend_take(&workspace, p.n * s->v_dim);
    p.bias = frit_attend_take(&workspace, FRIT_ATTEND_SPAN + p.n_padded);
    p.scratch = workspace;
    return p;
}

// Fills the bias that is added to scores: of query i at position p of the tile at n_p - 1 - p + i, since the queries
// have consecutive positions (group 1).
static void list_bias(const frit_attend_item *item, frit_range positions, panels *p)
{
    const int64_t first = item->seq->n_past + item->first - (positions.end - 1);
    for (int64_t i = 0; i < p->n_padded + positions.end - positions.begin; i++)
        p->bias[i] = frit_attend_gain(item->task, item->head, -(first + i));
}

static panels gather_queries(const frit_attend_item *item, float *workspace)
{
    const frit_attend_shape *s = item->shape;
    const frit_attend *attend = &item->task->node->attend;
    panels p = take_room(item, workspace);
    memset(p.acc, 0, (size_t)(p.n_padded * s->v_dim) * sizeof(float));
    if (p.n < p.n_padded) memset(p.q, 0, (size_t)(p.n_padded * s->k_dim) * sizeof(float));
    for (int64_t i = 0; i < p.n_padded; i++) {
        p.max[i] = -INFINITY, p.sum[i] = 0;
        p.slope[i] = 0, p.own_position[i] = 0, p.begin[i] = 0, p.end[i] = 0;
        if (i >= p.n) continue;
        const frit_attend_query query = frit_attend_query_at(item, i);
        p.slope[i] = frit_attend_slope(attend, query.head, s->n_head);
        p.begin[i] = (int32_t)query.seen.begin, p.end[i] = (int32_t)query.seen.end,
        p.own_position[i] = (int32_t)query.own_position;
        frit_attend_load_query(item, &query, 1, p.k);   // the memory of keys is still unused
        float *to = p.q + i / p.lanes * s->k_dim * p.lanes + i % p.lanes;
        for (int64_t d = 0; d < s->k_dim; d++) to[d * p.lanes] = p.k[d];
    }
    return p;
}

// Lists the pages of the next span to prefetch: the hardware prefetcher cannot know their addresses.
static void look_ahead(const frit_attend_item *item, frit_range next, frit_attend_tile *tile)
{
    const frit_cache_side *const sides[] = {&item->shape->layer->k, &item->shape->layer->v};
    for (int64_t p = next.begin; p < next.end; p += FRIT_PAGE_TOKENS)
        for (int i = 0; i < 2; i++, tile->n_ahead++) {
            tile->ahead[tile->n_ahead].first = frit_cache_at(sides[i], item->pages, p, item->head);
            tile->ahead[tile->n_ahead].n_bytes = (size_t)(FRIT_PAGE_TOKENS * sides[i]->row_bytes);
        }
}

// Adds at most FRIT_ATTEND_SPAN positions to the sums.
static void attend_span(const frit_attend_item *item, frit_range positions, frit_range next, panels *p)
{
    const frit_attend_shape *s = item->shape;
    const frit_attend *attend = &item->task->node->attend;
    const bool transposed = s->layer->k.transposed;
    frit_attend_tile tile = {.n_panels = p->n_padded / p->lanes,
                             .n_p = positions.end - positions.begin,
                             .k_dim = s->k_dim,
                             .v_dim = s->v_dim,
                             .k = p->k,
                             .k_transposed = transposed,
                             .v = p->v,
                             .q = p->q,
                             .acc = p->acc,
                             .max = p->max,
                             .sum = p->sum,
                             .begin = p->begin,
                             .end = p->end,
                             .slope = attend->alibi != 0 ? p->slope : NULL,
                             .own_position = p->own_position,
                             .bias = attend->reach > 0 ? p->bias : NULL,
                             .softcap = attend->softcap,
                             .scratch = (uint8_t *)p->scratch,
                             .first = (int32_t)positions.begin};
    for (int64_t i = 0; i < p->n; i++)
        if (p->begin[i] > positions.begin || p->end[i] < positions.end) tile.cut = true;
    if (p->n < p->n_padded) tile.cut = true;
    if (attend->reach > 0) list_bias(item, positions, p);
    if (transposed)
        frit_attend_decode_pages(item, &s->layer->k, positions, p->k);
    else
        frit_attend_decode_positions(item, &s->layer->k, positions, p->k);
    frit_attend_decode_positions(item, &s->layer->v, positions, p->v);
    look_ahead(item, next, &tile);
    item->kernels->attend_tile(&tile);
}

// Adds the sums of a finished chunk to the totals as frit_fast_attend_merge does, and clears them.
static void fold_panel(const frit_kernels *kernels, panels *p, int64_t panel, int64_t v_dim)
{
    const int64_t first = panel * p->lanes;
    float before[FRIT_ATTEND_LANES], now[FRIT_ATTEND_LANES];
    for (int64_t i = 0; i < p->lanes; i++) {
        float *max = &p->total_max[first + i], *sum = &p->total_sum[first + i];
        const float chunk_max = p->max[first + i], chunk_sum = p->sum[first + i];
        const float top = chunk_max > *max ? chunk_max : *max;
        // The totals of a query that sees no position of the chunk do not change.
        before[i] = chunk_sum == 0 ? 1 : frit_attend_factor(*max, top);
        now[i] = chunk_sum == 0 ? 0 : frit_attend_factor(chunk_max, top);
        *sum = before[i] * *sum + now[i] * chunk_sum;
        *max = chunk_sum == 0 ? *max : top;
        p->max[first + i] = -INFINITY, p->sum[first + i] = 0;
    }
    kernels->attend_fold(p->total + first * v_dim, p->acc + first * v_dim, before, now, v_dim);
}

// True if the positions are in several chunks. Clears the totals then.
static bool begin_totals(panels *p, frit_range positions, int64_t v_dim)
{
    if (frit_attend_chunk_at(positions.begin) == frit_attend_chunk_at(positions.end - 1)) return false;
    memset(p->total, 0, (size_t)(p->n_padded * v_dim) * sizeof(float));
    for (int64_t i = 0; i < p->n_padded; i++) p->total_max[i] = -INFINITY, p->total_sum[i] = 0;
    return true;
}

static void run_tiles(const frit_attend_item *item, frit_range positions, float *workspace, frit_attend_sums *sums)
{
    const int64_t v_dim = item->shape->v_dim;
    panels p = gather_queries(item, workspace);
    const bool several = begin_totals(&p, positions, v_dim);
    int64_t chunk_end = frit_attend_chunk_begin(frit_attend_chunk_at(positions.begin) + 1);
    for (frit_range now = positions; now.begin < positions.end; now.begin = now.end) {
        now.end = frit_min_i64(frit_attend_span_end(now.begin), positions.end);
        attend_span(item, now, (frit_range){now.end, frit_min_i64(now.end + FRIT_ATTEND_SPAN, positions.end)}, &p);
        if (!several || (now.end < chunk_end && now.end < positions.end)) continue;
        for (int64_t panel = 0; panel < p.n_padded / p.lanes; panel++) fold_panel(item->kernels, &p, panel, v_dim);
        chunk_end = frit_attend_chunk_begin(frit_attend_chunk_at(now.end) + 1);
    }
    const float *acc = several ? p.total : p.acc;
    for (int64_t i = 0; i < p.n; i++) {
        const float *from = acc + i / p.lanes * v_dim * p.lanes + i % p.lanes;
        for (int64_t d = 0; d < v_dim; d++) p.results[i * v_dim + d] = from[d * p.lanes];
    }
    *sums = (frit_attend_sums){several ? p.total_max : p.max, several ? p.total_sum : p.sum, p.results, v_dim};
}

const frit_attend_way frit_attend_by_tiles = {workspace_bytes, run_tiles, true};
