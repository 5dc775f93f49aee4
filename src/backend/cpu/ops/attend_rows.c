// SPDX-License-Identifier: MIT
// Attention of few queries: reads pages directly, some of them side by side. The scores of all queries fit the L1
// cache.
#include "backend/cpu/ops/attend.h"
#include "base/minmax.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct queries {
    int64_t n;
    int64_t last;            // position of the item
    float *q, *acc;          // [n, k_dim], [n, v_dim]
    float *max, *sum;        // [n]
    float *slope;            // [n]
    int32_t *begin, *end;    // [n]
    int32_t *own_position;   // [n]
    float *scores;           // [n, FRIT_ATTEND_ROWS]
    float *decoded;          // [FRIT_PAGE_TOKENS, the larger of k_dim and v_dim]
} queries;

static size_t workspace_bytes(int64_t n, int64_t k_dim, int64_t v_dim)
{
    const int64_t vectors = 6 * frit_attend_round_up(n), scores = n * FRIT_ATTEND_ROWS;
    const int64_t page = FRIT_PAGE_TOKENS * (k_dim > v_dim ? k_dim : v_dim);
    return (size_t)(frit_attend_round_up(n * k_dim) + frit_attend_round_up(n * v_dim) + vectors + scores + page) *
           sizeof(float);
}

static queries gather_rows(const frit_attend_item *item, float *workspace)
{
    const frit_attend_shape *s = item->shape;
    const frit_attend *attend = &item->task->node->attend;
    queries q = {.n = frit_attend_queries(item)};
    q.q = frit_attend_take(&workspace, q.n * s->k_dim);
    q.acc = frit_attend_take(&workspace, q.n * s->v_dim);
    q.max = frit_attend_take(&workspace, q.n);
    q.sum = frit_attend_take(&workspace, q.n);
    q.slope = frit_attend_take(&workspace, q.n);
    q.begin = frit_attend_take(&workspace, q.n);
    q.end = frit_attend_take(&workspace, q.n);
    q.own_position = frit_attend_take(&workspace, q.n);
    q.scores = frit_attend_take(&workspace, q.n * FRIT_ATTEND_ROWS);
    q.decoded = workspace;
    memset(q.acc, 0, (size_t)(q.n * s->v_dim) * sizeof(float));
    for (int64_t i = 0; i < q.n; i++) {
        const frit_attend_query query = frit_attend_query_at(item, i);
        q.max[i] = -INFINITY, q.sum[i] = 0;
        q.slope[i] = frit_attend_slope(attend, query.head, s->n_head);
        q.begin[i] = (int32_t)query.seen.begin, q.end[i] = (int32_t)query.seen.end,
        q.own_position[i] = (int32_t)query.own_position;
        frit_attend_load_query(item, &query, 1, q.q + i * s->k_dim);
    }
    return q;
}

static void lose_by_distance(float *scores, float slope, int64_t distance, int64_t n)
{
    for (int64_t i = 0; i < n; i++) scores[i] -= slope * (float)llabs(distance - i);
}

static void gain_by_distance(float *scores, const frit_task *task, int64_t head, int64_t distance, int64_t n)
{
    for (int64_t i = 0; i < n; i++) scores[i] += frit_attend_gain(task, head, distance + i);
}

// Turns query i's scores of positions [begin, begin + n) into weights, and rescales its sums so far.
static void weigh_scores(const frit_attend_item *item, queries *q, int64_t i, int64_t begin, int64_t n)
{
    const frit_kernels *k = item->kernels;
    const frit_attend *attend = &item->task->node->attend;
    float *scores = q->scores + i * FRIT_ATTEND_ROWS, *acc = q->acc + i * item->shape->v_dim;
    const int64_t low = frit_min_i64(n, frit_max_i64(0, q->begin[i] - begin)),
                  high = frit_max_i64(low, frit_min_i64(n, q->end[i] - begin));
    if (low == high) {
        memset(scores, 0, (size_t)n * sizeof(float));
        return;
    }
    if (attend->softcap != 0) k->softcap(scores + low, scores + low, attend->softcap, high - low);
    if (q->slope[i] != 0) lose_by_distance(scores + low, q->slope[i], q->own_position[i] - (begin + low), high - low);
    if (attend->reach > 0)
        gain_by_distance(scores + low, item->task, frit_attend_query_at(item, i).head, begin + low - q->own_position[i],
                         high - low);
    const float shrink = k->attend_weigh(scores, low, high, n, &q->max[i], &q->sum[i]);
    if (shrink != 1) k->scale(acc, acc, shrink, item->shape->v_dim);
}

// The positions from i on that are in the page of i and in `positions`.
static frit_range page_range(frit_range positions, int64_t i)
{
    const int64_t begin = positions.begin + i;
    return (frit_range){begin, frit_min_i64(frit_page_begin(begin) + FRIT_PAGE_TOKENS, positions.end)};
}

static void list_neighbours(const void *first, uint64_t row_bytes, int64_t n, const uint8_t **rows)
{
    for (int64_t i = 0; i < n; i++) rows[i] = (const uint8_t *)first + (uint64_t)i * row_bytes;
}

// Chosen positions may be in any page.
static void list_chosen(const frit_attend_item *item, const frit_cache_side *side, frit_range chosen_range,
                        const uint8_t **rows)
{
    for (int64_t i = chosen_range.begin; i < chosen_range.end; i++)
        *rows++ = frit_cache_at(side, item->pages, (int64_t)item->chosen[i], item->head);
}

static void list_rows(const frit_attend_item *item, const frit_cache_side *side, frit_range positions,
                      const uint8_t **rows)
{
    const int64_t n = positions.end - positions.begin;
    if (item->chosen) {
        list_chosen(item, side, positions, rows);
        return;
    }
    for (int64_t i = 0, next; i < n; i = next) {
        const frit_range page = page_range(positions, i);
        next = page.end - positions.begin;
        list_neighbours(frit_cache_at(side, item->pages, page.begin, item->head), side->row_bytes, next - i, rows + i);
    }
}

static void decode_chosen(const frit_attend_item *item, const frit_cache_side *side, frit_range chosen_range, float *y)
{
    for (int64_t i = chosen_range.begin; i < chosen_range.end; i++, y += side->dim) {
        const int64_t p = (int64_t)item->chosen[i];
        frit_attend_decode_positions(item, side, (frit_range){p, p + 1}, y);
    }
}

// Decodes positions of one page, or chosen positions.
static void decode_rows(const frit_attend_item *item, const frit_cache_side *side, frit_range page, float *y)
{
    if (item->chosen)
        decode_chosen(item, side, page, y);
    else
        frit_attend_decode_positions(item, side, page, y);
}

// Computes scores of whole pages, including positions outside of the range.
static void score_pages(const frit_attend_item *item, frit_range positions, queries *q)
{
    const frit_cache_side *keys = &item->shape->layer->k, *values = &item->shape->layer->v;
    for (int64_t p = frit_page_begin(positions.begin); p < positions.end; p += FRIT_PAGE_TOKENS) {
        const frit_attend_keys page = {
            frit_cache_at(keys, item->pages, p, item->head),
            {frit_cache_at(keys, item->pages, frit_min_i64(p + 2 * FRIT_PAGE_TOKENS, q->last), item->head),
             frit_cache_at(values, item->pages, p, item->head)}};
        item->kernels->attend_page[keys->dtype](q->scores + p % FRIT_ATTEND_SPAN, q->q, q->n, &page, keys->dim);
    }
}

// Adds the positions of one span to the sums.
static void attend_positions(const frit_attend_item *item, frit_range positions, queries *q)
{
    const frit_attend_shape *s = item->shape;
    const frit_kernels *k = item->kernels;
    const frit_cache_side *keys = &s->layer->k, *values = &s->layer->v;
    const bool by_page = keys->transposed && !item->chosen && k->attend_page[keys->dtype];
    const bool direct_k = !keys->transposed && k->attend_scores[keys->dtype];
    const bool direct_v = k->attend_values[values->dtype];
    const int64_t n = positions.end - positions.begin, first = positions.begin % FRIT_ATTEND_SPAN;
    float *scores = q->scores + first;
    const uint8_t *rows[FRIT_ATTEND_SPAN];

    if (by_page) score_pages(item, positions, q);
    if (direct_k) {
        list_rows(item, keys, positions, rows);
        k->attend_scores[keys->dtype](scores, q->q, q->n, rows, n, s->k_dim);
    }
    for (int64_t i = 0, next; !direct_k && !by_page && i < n; i = next) {
        const frit_range page = page_range(positions, i);
        next = page.end - positions.begin;
        decode_rows(item, keys, page, q->decoded);
        list_neighbours(q->decoded, (uint64_t)s->k_dim * sizeof(float), next - i, rows);
        k->attend_scores[FRIT_DTYPE_F32](scores + i, q->q, q->n, rows, next - i, s->k_dim);
    }
    for (int64_t i = 0; i < q->n; i++) weigh_scores(item, q, i, positions.begin - first, first + n);
    if (direct_v) {
        list_rows(item, values, positions, rows);
        k->attend_values[values->dtype](q->acc, scores, q->n, rows, n, s->v_dim);
    }
    for (int64_t i = 0, next; !direct_v && i < n; i = next) {
        const frit_range page = page_range(positions, i);
        next = page.end - positions.begin;
        decode_rows(item, values, page, q->decoded);
        list_neighbours(q->decoded, (uint64_t)s->v_dim * sizeof(float), next - i, rows);
        k->attend_values[FRIT_DTYPE_F32](q->acc, scores + i, q->n, rows, next - i, s->v_dim);
    }
}

static void run_item(const frit_attend_item *item, frit_range positions, float *workspace, frit_attend_sums *sums)
{
    queries q = gather_rows(item, workspace);
    q.last = positions.end - 1;
    for (frit_range now = positions; now.begin < positions.end; now.begin = now.end) {
        now.end = frit_min_i64(frit_attend_span_end(now.begin), positions.end);
        attend_positions(item, now, &q);
    }
    *sums = (frit_attend_sums){q.max, q.sum, q.acc, item->shape->v_dim};
}

const frit_attend_way frit_attend_by_rows = {workspace_bytes, run_item, false};
