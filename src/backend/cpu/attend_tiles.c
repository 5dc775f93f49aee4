// SPDX-License-Identifier: MIT
// Attention of many queries: in panels, numbers of neighbouring queries lie side by side: number d of query i is at
// (i / lanes * dim + d) * lanes + i % lanes.
#include "backend/cpu/attend.h"

#include <math.h>
#include <string.h>

typedef struct panels {
    int64_t n, n_padded, lanes;    // n_padded: with what fills the last panel
    float *q, *acc;                // [n_padded, k_dim], [n_padded, v_dim]
    float *max, *sum, *slope;      // [n_padded]
    int32_t *begin, *end, *slot;   // [n_padded]
    float *k, *v;                  // decoded: [FRIT_ATTEND_SPAN, k_dim] or transposed, [FRIT_ATTEND_SPAN, v_dim]
    float *results;                // [n, v_dim]
    float *bias;                   // [FRIT_ATTEND_SPAN + n_padded]
    float *scratch;
} panels;

static size_t workspace_bytes(int64_t n, int64_t k_dim, int64_t v_dim)
{
    const int64_t padded = n + FRIT_ATTEND_LANES;
    return (size_t)(frit_attend_line(padded * k_dim) + 2 * frit_attend_line(padded * v_dim) +
                    6 * frit_attend_line(padded) + frit_attend_line(FRIT_ATTEND_SPAN * k_dim) +
                    frit_attend_line(FRIT_ATTEND_SPAN * v_dim) + frit_attend_line(FRIT_ATTEND_SPAN + padded) +
                    2 * FRIT_ATTEND_LANES * FRIT_ATTEND_SPAN) *
           sizeof(float);
}

static panels take_room(const frit_attend_item *item, float *workspace)
{
    const frit_attend_shape *s = item->shape;
    panels p = {.n = frit_attend_queries(item), .lanes = item->task->env->kernels->lanes};
    p.n_padded = (p.n + p.lanes - 1) / p.lanes * p.lanes;
    p.q = frit_attend_take(&workspace, p.n_padded * s->k_dim);
    p.acc = frit_attend_take(&workspace, p.n_padded * s->v_dim);
    p.max = frit_attend_take(&workspace, p.n_padded);
    p.sum = frit_attend_take(&workspace, p.n_padded);
    p.slope = frit_attend_take(&workspace, p.n_padded);
    p.begin = frit_attend_take(&workspace, p.n_padded);
    p.end = frit_attend_take(&workspace, p.n_padded);
    p.slot = frit_attend_take(&workspace, p.n_padded);
    p.k = frit_attend_take(&workspace, FRIT_ATTEND_SPAN * s->k_dim);
    p.v = frit_attend_take(&workspace, FRIT_ATTEND_SPAN * s->v_dim);
    p.results = frit_attend_take(&workspace, p.n * s->v_dim);
    p.bias = frit_attend_take(&workspace, FRIT_ATTEND_SPAN + p.n_padded);
    p.scratch = workspace;
    return p;
}

// What scores gain: query i's at position p of the tile is at n_p - 1 - p + i, since queries are neighbours (group 1).
static void list_bias(const frit_attend_item *item, frit_range positions, panels *p)
{
    const int64_t first = item->run->n_past + item->first - (positions.end - 1);
    for (int64_t i = 0; i < p->n_padded + positions.end - positions.begin; i++)
        p->bias[i] = frit_attend_bias(&item->task->node->attend, item->head, -(first + i));
}

static panels gather(const frit_attend_item *item, float *workspace)
{
    const frit_attend_shape *s = item->shape;
    const frit_attend *attend = &item->task->node->attend;
    panels p = take_room(item, workspace);
    memset(p.acc, 0, (size_t)(p.n_padded * s->v_dim) * sizeof(float));
    if (p.n < p.n_padded) memset(p.q, 0, (size_t)(p.n_padded * s->k_dim) * sizeof(float));
    for (int64_t i = 0; i < p.n_padded; i++) {
        p.max[i] = -INFINITY, p.sum[i] = 0;
        p.slope[i] = 0, p.slot[i] = 0, p.begin[i] = 0, p.end[i] = 0;
        if (i >= p.n) continue;
        const frit_attend_query query = frit_attend_query_at(item, i);
        p.slope[i] = frit_attend_slope(attend, query.head, s->n_head);
        p.begin[i] = (int32_t)query.seen.begin, p.end[i] = (int32_t)query.seen.end, p.slot[i] = (int32_t)query.slot;
        frit_attend_load_query(item, &query, 1, p.k);   // the keys' room is still free
        float *to = p.q + i / p.lanes * s->k_dim * p.lanes + i % p.lanes;
        for (int64_t d = 0; d < s->k_dim; d++) to[d * p.lanes] = p.k[d];
    }
    return p;
}

// FRIT_ATTEND_SPAN positions at most.
static void attend(const frit_attend_item *item, frit_range positions, panels *p)
{
    const frit_attend_shape *s = item->shape;
    const frit_attend *attend = &item->task->node->attend;
    const bool transposed = s->layer->k.transposed;
    frit_attend_tile tile = {.n_panels = p->n_padded / p->lanes,
                             .n_p = positions.end - positions.begin,
                             .k_dim = s->k_dim,
                             .v_dim = s->v_dim,
                             .k = p->k,
                             .k_row = transposed ? 1 : s->k_dim,
                             .k_step = transposed ? FRIT_ATTEND_SPAN : 1,
                             .v = p->v,
                             .q = p->q,
                             .acc = p->acc,
                             .max = p->max,
                             .sum = p->sum,
                             .begin = p->begin,
                             .end = p->end,
                             .slope = attend->alibi != 0 ? p->slope : NULL,
                             .slot = p->slot,
                             .bias = attend->bias ? p->bias : NULL,
                             .softcap = attend->softcap,
                             .scratch = (uint8_t *)p->scratch,
                             .first = (int32_t)positions.begin};
    for (int64_t i = 0; i < p->n; i++)
        if (p->begin[i] > positions.begin || p->end[i] < positions.end) tile.cut = true;
    if (p->n < p->n_padded) tile.cut = true;
    if (attend->bias) list_bias(item, positions, p);
    if (transposed)
        frit_attend_decode_columns(item, &s->layer->k, positions, p->k, FRIT_ATTEND_SPAN);
    else
        frit_attend_decode_positions(item, &s->layer->k, positions, p->k);
    frit_attend_decode_positions(item, &s->layer->v, positions, p->v);
    item->task->env->kernels->attend_tile(&tile);
}

static void run(const frit_attend_item *item, frit_range positions, float *workspace, frit_attend_sums *sums)
{
    const int64_t v_dim = item->shape->v_dim;
    panels p = gather(item, workspace);
    for (frit_range now = positions; now.begin < positions.end; now.begin = now.end) {
        now.end = frit_attend_span_end(now.begin);
        if (now.end > positions.end) now.end = positions.end;
        attend(item, now, &p);
    }
    for (int64_t i = 0; i < p.n; i++) {
        const float *from = p.acc + i / p.lanes * v_dim * p.lanes + i % p.lanes;
        for (int64_t d = 0; d < v_dim; d++) p.results[i * v_dim + d] = from[d * p.lanes];
    }
    *sums = (frit_attend_sums){p.max, p.sum, p.results, v_dim};
}

const frit_attend_way frit_attend_by_tiles = {workspace_bytes, run};
