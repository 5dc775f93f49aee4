// SPDX-License-Identifier: MIT
// Attention of few queries: pages are read as they are, some of them side by side; scores of all queries lie in the
// first cache.
#include "backend/cpu/attend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct queries {
    int64_t n;
    float *q, *acc;         // [n, k_dim], [n, v_dim]
    float *max, *sum;       // [n]
    float *slope;           // [n]
    int32_t *begin, *end;   // [n]
    int32_t *slot;          // [n]
    float *scores;          // [n, FRIT_ATTEND_ROWS]
    float *decoded;         // [FRIT_PAGE_TOKENS, the larger of k_dim and v_dim]
} queries;

static size_t workspace_bytes(int64_t n, int64_t k_dim, int64_t v_dim)
{
    const int64_t vectors = 6 * frit_attend_line(n), scores = n * FRIT_ATTEND_ROWS;
    const int64_t page = FRIT_PAGE_TOKENS * (k_dim > v_dim ? k_dim : v_dim);
    return (size_t)(frit_attend_line(n * k_dim) + frit_attend_line(n * v_dim) + vectors + scores + page) *
           sizeof(float);
}

static queries gather(const frit_attend_item *item, float *workspace)
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
    q.slot = frit_attend_take(&workspace, q.n);
    q.scores = frit_attend_take(&workspace, q.n * FRIT_ATTEND_ROWS);
    q.decoded = workspace;
    memset(q.acc, 0, (size_t)(q.n * s->v_dim) * sizeof(float));
    for (int64_t i = 0; i < q.n; i++) {
        const frit_attend_query query = frit_attend_query_at(item, i);
        q.max[i] = -INFINITY, q.sum[i] = 0;
        q.slope[i] = frit_attend_slope(attend, query.head, s->n_head);
        q.begin[i] = (int32_t)query.seen.begin, q.end[i] = (int32_t)query.seen.end, q.slot[i] = (int32_t)query.slot;
        frit_attend_load_query(item, &query, 1, q.q + i * s->k_dim);
    }
    return q;
}

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void lose_by_distance(float *scores, float slope, int64_t distance, int64_t n)
{
    for (int64_t i = 0; i < n; i++) scores[i] -= slope * (float)llabs(distance - i);
}

static void gain_by_distance(float *scores, const frit_attend *attend, int64_t head, int64_t distance, int64_t n)
{
    for (int64_t i = 0; i < n; i++) scores[i] += frit_attend_bias(attend, head, distance + i);
}

// Turns query i's scores of positions [begin, begin + n) into weights, and rescales what it has so far.
static void weigh(const frit_attend_item *item, queries *q, int64_t i, int64_t begin, int64_t n)
{
    const frit_kernels *k = item->task->env->kernels;
    const float softcap = item->task->node->attend.softcap;
    float *scores = q->scores + i * FRIT_ATTEND_ROWS, *acc = q->acc + i * item->shape->v_dim;
    const int64_t low = min(n, max(0, q->begin[i] - begin)), high = max(low, min(n, q->end[i] - begin));
    if (low > 0) memset(scores, 0, (size_t)low * sizeof(float));
    if (high < n) memset(scores + high, 0, (size_t)(n - high) * sizeof(float));
    if (low == high) return;

    if (softcap != 0) k->softcap(scores + low, scores + low, softcap, high - low);
    if (q->slope[i] != 0) lose_by_distance(scores + low, q->slope[i], q->slot[i] - (begin + low), high - low);
    const frit_attend *attend = &item->task->node->attend;
    if (attend->bias)
        gain_by_distance(scores + low, attend, frit_attend_query_at(item, i).head, begin + low - q->slot[i],
                         high - low);
    const float top = k->max(scores + low, high - low);
    if (top > q->max[i]) {
        const float shrink = frit_attend_factor(q->max[i], top);
        k->scale(acc, acc, shrink, item->shape->v_dim);
        q->sum[i] *= shrink;
        q->max[i] = top;
    }
    q->sum[i] += k->exp_sum(scores + low, q->max[i], high - low);
}

// The part of the page around position i of `positions` that begins there.
static frit_range page_range(frit_range positions, int64_t i)
{
    const int64_t begin = positions.begin + i;
    return (frit_range){begin, min(frit_page_begin(begin) + FRIT_PAGE_TOKENS, positions.end)};
}

static void list_neighbours(const void *first, uint64_t row_bytes, int64_t n, const uint8_t **rows)
{
    for (int64_t i = 0; i < n; i++) rows[i] = (const uint8_t *)first + (uint64_t)i * row_bytes;
}

// Chosen positions lie anywhere.
static void list_chosen(const frit_attend_item *item, const frit_cache_side *side, frit_range places,
                        const uint8_t **rows)
{
    for (int64_t i = places.begin; i < places.end; i++)
        *rows++ = frit_cache_at(side, item->run, (int64_t)item->chosen[i], item->head);
}

// Lists the rows of these positions in the order in which they are read. Whole pages are read side by side, which
// memory serves faster than one after the other, where nobody asks which position a score belongs to.
static void list_rows(const frit_attend_item *item, const frit_cache_side *side, frit_range positions,
                      bool side_by_side, const uint8_t **rows)
{
    const int64_t n = positions.end - positions.begin;
    if (item->chosen) {
        list_chosen(item, side, positions, rows);
        return;
    }
    if (side_by_side) {
        const int64_t n_pages = n / FRIT_PAGE_TOKENS;
        const uint8_t *pages[FRIT_ATTEND_ROWS / FRIT_PAGE_TOKENS];
        for (int64_t j = 0; j < n_pages; j++)
            pages[j] = frit_cache_at(side, item->run, positions.begin + j * FRIT_PAGE_TOKENS, item->head);
        for (uint64_t i = 0; i < FRIT_PAGE_TOKENS; i++)
            for (int64_t j = 0; j < n_pages; j++) *rows++ = pages[j] + i * side->row_bytes;
        return;
    }
    for (int64_t i = 0, next; i < n; i = next) {
        const frit_range page = page_range(positions, i);
        next = page.end - positions.begin;
        list_neighbours(frit_cache_at(side, item->run, page.begin, item->head), side->row_bytes, next - i, rows + i);
    }
}

// Whether all queries see all positions, whose order then does not matter.
static bool all_alike(const frit_attend *attend, const queries *q, frit_range positions)
{
    if (attend->bias) return false;
    for (int64_t i = 0; i < q->n; i++)
        if (q->begin[i] > positions.begin || q->end[i] < positions.end || q->slope[i] != 0) return false;
    return true;
}

static void decode_chosen(const frit_attend_item *item, const frit_cache_side *side, frit_range places, float *y)
{
    for (int64_t i = places.begin; i < places.end; i++, y += side->dim) {
        const int64_t p = (int64_t)item->chosen[i];
        frit_attend_decode_positions(item, side, (frit_range){p, p + 1}, y);
    }
}

// Positions of one page as they lie in the cache, or so many of those chosen.
static void decode(const frit_attend_item *item, const frit_cache_side *side, frit_range page, float *y)
{
    if (item->chosen)
        decode_chosen(item, side, page, y);
    else
        frit_attend_decode_positions(item, side, page, y);
}

// FRIT_ATTEND_ROWS positions at most.
static void attend(const frit_attend_item *item, frit_range positions, queries *q)
{
    const frit_attend_shape *s = item->shape;
    const frit_kernels *k = item->task->env->kernels;
    const frit_cache_side *keys = &s->layer->k, *values = &s->layer->v;
    const bool direct_k = k->attend_scores[keys->dtype], direct_v = k->attend_values[values->dtype];
    const int64_t n = positions.end - positions.begin;
    const bool side_by_side = !item->chosen && direct_k && direct_v && n > FRIT_PAGE_TOKENS &&
                              n % FRIT_PAGE_TOKENS == 0 && positions.begin % FRIT_PAGE_TOKENS == 0 &&
                              all_alike(&item->task->node->attend, q, positions);
    const uint8_t *rows[FRIT_ATTEND_ROWS];

    if (direct_k) {
        list_rows(item, keys, positions, side_by_side, rows);
        k->attend_scores[keys->dtype](q->scores, q->q, q->n, rows, n, s->k_dim);
    }
    for (int64_t i = 0, next; !direct_k && i < n; i = next) {
        const frit_range page = page_range(positions, i);
        next = page.end - positions.begin;
        decode(item, keys, page, q->decoded);
        list_neighbours(q->decoded, (uint64_t)s->k_dim * sizeof(float), next - i, rows);
        k->attend_scores[FRIT_DTYPE_F32](q->scores + i, q->q, q->n, rows, next - i, s->k_dim);
    }
    for (int64_t i = 0; i < q->n; i++) weigh(item, q, i, positions.begin, n);
    if (direct_v) {
        list_rows(item, values, positions, side_by_side, rows);
        k->attend_values[values->dtype](q->acc, q->scores, q->n, rows, n, s->v_dim);
    }
    for (int64_t i = 0, next; !direct_v && i < n; i = next) {
        const frit_range page = page_range(positions, i);
        next = page.end - positions.begin;
        decode(item, values, page, q->decoded);
        list_neighbours(q->decoded, (uint64_t)s->v_dim * sizeof(float), next - i, rows);
        k->attend_values[FRIT_DTYPE_F32](q->acc, q->scores + i, q->n, rows, next - i, s->v_dim);
    }
}

static void run(const frit_attend_item *item, frit_range positions, float *workspace, frit_attend_sums *sums)
{
    queries q = gather(item, workspace);
    for (frit_range now = positions; now.begin < positions.end; now.begin = now.end) {
        now.end = min(frit_page_begin(now.begin) + FRIT_ATTEND_ROWS, positions.end);
        attend(item, now, &q);
    }
    *sums = (frit_attend_sums){q.max, q.sum, q.acc, item->shape->v_dim};
}

const frit_attend_way frit_attend_by_rows = {workspace_bytes, run};
