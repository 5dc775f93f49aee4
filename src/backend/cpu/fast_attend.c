// SPDX-License-Identifier: MIT
// Attention over the paged cache. Scores never leave the first cache: a few pages of keys and values at a time are
// read for a block of queries, with a running maximum and sum for each query.
//
// The work is cut into items that do not depend on the number of threads:
//
//     run - block of rows - head of the cache - chunk of positions
//            rows x group = queries that share the keys;  the fewer rows the step has, the more chunks, whose results
//            (maximum, sum, weighted values) frit_fast_attend_merge joins
//
// Runs of many rows go by tiles (frit_attend_tile), with queries as lanes, over keys and values decoded once for all of
// them. One with few, as when a token is generated, reads the pages as they are, numbers of a head as lanes.
#include "backend/cpu/fast.h"
#include "quant/hadamard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_QUERIES = 16,    // rows x group, unless the group alone is larger
    FEW_QUERIES = 4,       // of one row, up to which tiles do not pay
    MANY_ROWS = 32,        // of a run, from which they do
    TILED_QUERIES = 256,   // the same where tiles run
    MAX_CHUNKS = 32,
    CHUNKED_ROWS = 512,   // rows x chunks of a step at most
    MIN_CHUNK = FRIT_ATTEND_ROWS,
    LINE_FLOATS = 16,   // of a cache line
};

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t page_of(int64_t position)   // where its page begins
{
    return position / FRIT_PAGE_TOKENS * FRIT_PAGE_TOKENS;
}

// ------------------------------------------------------------------------------- items

typedef struct shape {
    const frit_cache_layer *layer;
    int64_t n_head, group, k_dim, v_dim;
    int64_t block_rows, max_chunks;
} shape;

typedef struct block {   // neighbouring rows of one run
    const frit_run *run;
    int64_t first, n_rows;     // of the run
    frit_range span;           // positions that some row looks at; memory before it may hold anything
    int64_t chunk, n_chunks;   // positions of a chunk; the first begins where the page of span.begin does
} block;

static shape shape_of(const frit_task *task)
{
    const frit_cache_layer *layer = &task->env->cache->layers[task->node->attend.layer];
    shape s = {.layer = layer, .n_head = task->node->src[0]->shape[1], .k_dim = layer->k.dim, .v_dim = layer->v.dim};
    s.group = s.n_head / layer->spec.n_head_kv;
    s.block_rows = max(1, (task->env->kernels->attend_tile ? TILED_QUERIES : BLOCK_QUERIES) / s.group);
    s.max_chunks = max(1, min(MAX_CHUNKS, CHUNKED_ROWS / max(1, task->env->batch->n_rows)));
    return s;
}

static block block_at(const shape *s, const frit_attend *attend, const frit_run *run, int64_t first)
{
    block b = {.run = run, .first = first, .n_rows = min(s->block_rows, run->n_rows - first)};
    b.span.begin = frit_attend_span(attend, run, run->n_past + first).begin;
    b.span.end = frit_attend_span(attend, run, run->n_past + first + b.n_rows - 1).end;
    const int64_t n = b.span.end - page_of(b.span.begin);
    const int64_t share = (n + s->max_chunks - 1) / s->max_chunks;
    b.chunk = s->max_chunks > 1 ? max(MIN_CHUNK, page_of(share + FRIT_PAGE_TOKENS - 1)) : n;
    b.n_chunks = (n + b.chunk - 1) / b.chunk;
    return b;
}

static frit_range chunk_of(const block *b, int64_t i)
{
    const int64_t begin = page_of(b->span.begin) + i * b->chunk;
    return (frit_range){max(begin, b->span.begin), min(begin + b->chunk, b->span.end)};
}

// What a chunk knows of one query: maximum, sum of exponentials, sum of weighted values [v_dim].
static float *partial_at(const frit_task *task, const shape *s, int64_t row, int64_t head, int64_t chunk)
{
    float *partials = (float *)(void *)task->shared;
    return partials + ((row * s->n_head + head) * s->max_chunks + chunk) * (2 + s->v_dim);
}

size_t frit_attend_shared_bytes(const frit_node *node)
{
    const int64_t n_chunks = min(node->shape[0] * MAX_CHUNKS, CHUNKED_ROWS), n_head = node->src[0]->shape[1];
    return (size_t)(n_chunks * n_head * (2 + frit_node_width(node))) * sizeof(float);
}

// ------------------------------------------------------------------------------- the queries of an item

// Queries of one group are neighbours, rows follow each other. In panels of `lanes` numbers lie side by side:
// number d of query i is at (i / lanes * dim + d) * lanes + i % lanes; with one lane that is the usual order.
typedef struct queries {
    int64_t n, lanes, n_padded;    // n_padded: with what fills the last panel
    float *q, *acc;                // [n_padded, k_dim], [n_padded, v_dim]
    float *max, *sum, *slope;      // [n_padded]
    int32_t *begin, *end, *slot;   // [n_padded]
    float *scores;                 // [n, FRIT_ATTEND_ROWS] without panels
    float *k, *v;                  // decoded: [FRIT_ATTEND_SPAN, k_dim], [FRIT_ATTEND_SPAN, v_dim]
    uint8_t *scratch;
} queries;

// An item has as many queries as a block, or as one row has in a group: all heads at most.
size_t frit_attend_workspace_bytes(const frit_node *node)
{
    const int64_t n = max(TILED_QUERIES, node->src[0]->shape[1] + FRIT_ATTEND_LANES);
    const int64_t k_dim = frit_node_width(node->src[0]), v_dim = frit_node_width(node);
    const int64_t n_floats = n * (k_dim + v_dim + 6 + FRIT_ATTEND_ROWS) + FRIT_ATTEND_SPAN * (k_dim + v_dim);
    return (size_t)(n_floats + 12 * LINE_FLOATS) * sizeof(float) + frit_attend_scratch_bytes(k_dim, v_dim);
}

// The next n numbers of the workspace, at the beginning of a cache line.
static void *take(float **workspace, int64_t n)
{
    float *at = *workspace;
    *workspace += (n + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
    return at;
}

static queries open_queries(const frit_kernels *k, const shape *s, const block *b, float *workspace)
{
    const int64_t n = b->n_rows * s->group;
    queries q = {.n = n, .lanes = 1};
    // By the run, not by what is left of it: a prompt's last row sums in the order of those before it.
    if (k->attend_tile && (s->group > FEW_QUERIES || b->run->n_rows >= MANY_ROWS)) q.lanes = k->lanes;
    q.n_padded = (n + q.lanes - 1) / q.lanes * q.lanes;
    q.q = take(&workspace, q.n_padded * s->k_dim);
    q.acc = take(&workspace, q.n_padded * s->v_dim);
    q.max = take(&workspace, q.n_padded);
    q.sum = take(&workspace, q.n_padded);
    q.slope = take(&workspace, q.n_padded);
    q.begin = take(&workspace, q.n_padded);
    q.end = take(&workspace, q.n_padded);
    q.slot = take(&workspace, q.n_padded);
    if (q.lanes == 1) q.scores = take(&workspace, n * FRIT_ATTEND_ROWS);
    q.k = take(&workspace, FRIT_ATTEND_SPAN * s->k_dim);
    q.v = take(&workspace, FRIT_ATTEND_SPAN * s->v_dim);
    q.scratch = (uint8_t *)workspace;
    return q;
}

static void spread(float *panels, const float *x, int64_t i, int64_t lanes, int64_t dim)
{
    float *to = panels + i / lanes * dim * lanes + i % lanes;
    for (int64_t d = 0; d < dim; d++) to[d * lanes] = x[d];
}

static void collect(float *x, const float *panels, int64_t i, int64_t lanes, int64_t dim)
{
    const float *from = panels + i / lanes * dim * lanes + i % lanes;
    for (int64_t d = 0; d < dim; d++) x[d] = from[d * lanes];
}

static void gather_query(const frit_task *task, const shape *s, queries *q, int64_t i, int64_t row, int64_t head,
                         float scale)
{
    const float *x = task->x[0] + (row * s->n_head + head) * s->k_dim;
    float *scaled = q->lanes == 1 ? q->q + i * s->k_dim : q->k;   // the keys' room is still free
    task->env->kernels->scale(scaled, x, scale, s->k_dim);
    frit_hadamard(scaled, s->k_dim, s->layer->k.mix);
    if (q->lanes > 1) spread(q->q, scaled, i, q->lanes, s->k_dim);
}

static queries gather(const frit_task *task, const shape *s, const block *b, int64_t head, float *workspace)
{
    const frit_attend *attend = &task->node->attend;
    queries q = open_queries(task->env->kernels, s, b, workspace);
    memset(q.acc, 0, (size_t)(q.n_padded * s->v_dim) * sizeof(float));
    if (q.n < q.n_padded) memset(q.q, 0, (size_t)(q.n_padded * s->k_dim) * sizeof(float));
    for (int64_t i = 0; i < q.n_padded; i++) {
        q.max[i] = -INFINITY, q.sum[i] = 0;
        q.slope[i] = 0, q.slot[i] = 0, q.begin[i] = 0, q.end[i] = 0;
        if (i >= q.n) continue;
        const int64_t row = b->first + i / s->group, slot = b->run->n_past + row, h = head * s->group + i % s->group;
        const frit_range seen = frit_attend_span(attend, b->run, slot);
        q.slope[i] = frit_attend_slope(attend, h, s->n_head);
        q.slot[i] = (int32_t)slot, q.begin[i] = (int32_t)seen.begin, q.end[i] = (int32_t)seen.end;
        gather_query(task, s, &q, i, b->run->first_row + row, h, frit_attend_scale(attend, slot));
    }
    return q;
}

// ------------------------------------------------------------------------------- keys and values

static void decode(const frit_kernels *k, frit_dtype dtype, const uint8_t *x, float *y, int64_t n)
{
    if (k->decode[dtype])
        k->decode[dtype](x, y, n);
    else
        frit_dtype_get(dtype)->decode(x, y, n);
}

// The part of the page around position i of `positions` that begins there.
static frit_range page_range(frit_range positions, int64_t i)
{
    const int64_t begin = positions.begin + i;
    return (frit_range){begin, min(page_of(begin) + FRIT_PAGE_TOKENS, positions.end)};
}

static void decode_positions(const frit_kernels *k, const frit_cache_side *side, const frit_run *run, int64_t head,
                             frit_range positions, float *y)
{
    const int64_t n = positions.end - positions.begin;
    for (int64_t i = 0, next; i < n; i = next) {
        const frit_range page = page_range(positions, i);
        next = page.end - positions.begin;
        decode(k, side->dtype, frit_cache_at(side, run, page.begin, head), y + i * side->dim, (next - i) * side->dim);
    }
}

// ------------------------------------------------------------------------------- few queries

static void lose_by_distance(float *scores, float slope, int64_t distance, int64_t n)
{
    for (int64_t i = 0; i < n; i++) scores[i] -= slope * (float)llabs(distance - i);
}

// What sums relative to one maximum are multiplied by when they become relative to a larger one.
static float factor_of(float max, float larger)
{
    return max - larger < FRIT_LEAST_WEIGHT ? 0 : expf(max - larger);
}

// Turns query i's scores of positions [begin, begin + n) into weights, and rescales what it has so far.
static void weigh(const frit_task *task, const shape *s, queries *q, int64_t i, int64_t begin, int64_t n)
{
    const frit_kernels *k = task->env->kernels;
    const float softcap = task->node->attend.softcap;
    float *scores = q->scores + i * FRIT_ATTEND_ROWS, *acc = q->acc + i * s->v_dim;
    const int64_t low = min(n, max(0, q->begin[i] - begin)), high = max(low, min(n, q->end[i] - begin));
    if (low > 0) memset(scores, 0, (size_t)low * sizeof(float));
    if (high < n) memset(scores + high, 0, (size_t)(n - high) * sizeof(float));
    if (low == high) return;

    if (softcap != 0) k->softcap(scores + low, scores + low, softcap, high - low);
    if (q->slope[i] != 0) lose_by_distance(scores + low, q->slope[i], q->slot[i] - (begin + low), high - low);
    const float top = k->max(scores + low, high - low);
    if (top > q->max[i]) {
        const float shrink = factor_of(q->max[i], top);
        k->scale(acc, acc, shrink, s->v_dim);
        q->sum[i] *= shrink;
        q->max[i] = top;
    }
    q->sum[i] += k->exp_sum(scores + low, q->max[i], high - low);
}

static void list_neighbours(const void *first, uint64_t row_bytes, int64_t n, const uint8_t **rows)
{
    for (int64_t i = 0; i < n; i++) rows[i] = (const uint8_t *)first + (uint64_t)i * row_bytes;
}

// Lists the rows of these positions in the order in which they are read. Whole pages are read side by side, which
// memory serves faster than one after the other, where nobody asks which position a score belongs to.
static void list_rows(const frit_cache_side *side, const frit_run *run, int64_t head, frit_range positions,
                      bool side_by_side, const uint8_t **rows)
{
    const int64_t n = positions.end - positions.begin;
    if (side_by_side) {
        const int64_t n_pages = n / FRIT_PAGE_TOKENS;
        const uint8_t *pages[FRIT_ATTEND_ROWS / FRIT_PAGE_TOKENS];
        for (int64_t j = 0; j < n_pages; j++)
            pages[j] = frit_cache_at(side, run, positions.begin + j * FRIT_PAGE_TOKENS, head);
        for (uint64_t i = 0; i < FRIT_PAGE_TOKENS; i++)
            for (int64_t j = 0; j < n_pages; j++) *rows++ = pages[j] + i * side->row_bytes;
        return;
    }
    for (int64_t i = 0, next; i < n; i = next) {
        const frit_range page = page_range(positions, i);
        next = page.end - positions.begin;
        list_neighbours(frit_cache_at(side, run, page.begin, head), side->row_bytes, next - i, rows + i);
    }
}

static void attend_few(const frit_task *task, const shape *s, const frit_run *run, int64_t head, frit_range positions,
                       queries *q)
{
    const frit_kernels *k = task->env->kernels;
    const frit_cache_side *keys = &s->layer->k, *values = &s->layer->v;
    const bool direct_k = k->attend_scores[keys->dtype], direct_v = k->attend_values[values->dtype];
    const int64_t n = positions.end - positions.begin;
    bool side_by_side = direct_k && direct_v && n > FRIT_PAGE_TOKENS && n % FRIT_PAGE_TOKENS == 0 &&
                        positions.begin % FRIT_PAGE_TOKENS == 0;
    for (int64_t i = 0; i < q->n; i++)
        side_by_side = side_by_side && q->begin[i] <= positions.begin && q->end[i] >= positions.end && q->slope[i] == 0;
    const uint8_t *rows[FRIT_ATTEND_ROWS];

    if (direct_k) {
        list_rows(keys, run, head, positions, side_by_side, rows);
        k->attend_scores[keys->dtype](q->scores, q->q, q->n, rows, n, s->k_dim);
    }
    for (int64_t i = 0, next; !direct_k && i < n; i = next) {
        const frit_range page = page_range(positions, i);
        next = page.end - positions.begin;
        decode(k, keys->dtype, frit_cache_at(keys, run, page.begin, head), q->k, (next - i) * s->k_dim);
        list_neighbours(q->k, (uint64_t)s->k_dim * sizeof(float), next - i, rows);
        k->attend_scores[FRIT_DTYPE_F32](q->scores + i, q->q, q->n, rows, next - i, s->k_dim);
    }
    for (int64_t i = 0; i < q->n; i++) weigh(task, s, q, i, positions.begin, n);
    if (direct_v) {
        list_rows(values, run, head, positions, side_by_side, rows);
        k->attend_values[values->dtype](q->acc, q->scores, q->n, rows, n, s->v_dim);
    }
    for (int64_t i = 0, next; !direct_v && i < n; i = next) {
        const frit_range page = page_range(positions, i);
        next = page.end - positions.begin;
        decode(k, values->dtype, frit_cache_at(values, run, page.begin, head), q->v, (next - i) * s->v_dim);
        list_neighbours(q->v, (uint64_t)s->v_dim * sizeof(float), next - i, rows);
        k->attend_values[FRIT_DTYPE_F32](q->acc, q->scores + i, q->n, rows, next - i, s->v_dim);
    }
}

// ------------------------------------------------------------------------------- many queries

// Half precision is enough for what was rounded anyway when it was written.
static bool rounded(const frit_kernels *k, const frit_cache_layer *layer)
{
    return k->attend_tile_half && layer->v.dim % 16 == 0 && layer->k.dtype != FRIT_DTYPE_F32 &&
           layer->v.dtype != FRIT_DTYPE_F32;
}

static void attend_many(const frit_task *task, const shape *s, const frit_run *run, int64_t head, frit_range positions,
                        queries *q)
{
    const frit_kernels *k = task->env->kernels;
    const frit_attend *attend = &task->node->attend;
    frit_attend_tile tile = {.n_panels = q->n_padded / q->lanes,
                             .n_p = positions.end - positions.begin,
                             .k_dim = s->k_dim,
                             .v_dim = s->v_dim,
                             .k = q->k,
                             .v = q->v,
                             .q = q->q,
                             .acc = q->acc,
                             .max = q->max,
                             .sum = q->sum,
                             .begin = q->begin,
                             .end = q->end,
                             .slope = attend->alibi != 0 ? q->slope : NULL,
                             .slot = q->slot,
                             .softcap = attend->softcap,
                             .scratch = q->scratch,
                             .first = (int32_t)positions.begin};
    for (int64_t i = 0; i < q->n; i++)
        if (q->begin[i] > positions.begin || q->end[i] < positions.end) tile.cut = true;
    if (q->n < q->n_padded) tile.cut = true;
    decode_positions(k, &s->layer->k, run, head, positions, q->k);
    decode_positions(k, &s->layer->v, run, head, positions, q->v);
    (rounded(k, s->layer) ? k->attend_tile_half : k->attend_tile)(&tile);
}

// ------------------------------------------------------------------------------- results

// What a sink adds to the sum of exponentials. Beside a sink far above `top` all else vanishes, as it should.
static float sink_weight(const frit_task *task, int64_t head, float top)
{
    return task->x[2] ? expf(task->x[2][head] - top) : 0;
}

static void give_result(const frit_task *task, const shape *s, int64_t row, int64_t head, const float *acc, float share)
{
    float *y = task->y + (row * s->n_head + head) * s->v_dim;
    task->env->kernels->scale(y, acc, share, s->v_dim);
    frit_hadamard(y, s->v_dim, s->layer->v.mix);
}

static void attend_item(const frit_task *task, const shape *s, const block *b, int64_t head, int64_t chunk,
                        float *workspace)
{
    queries q = gather(task, s, b, head, workspace);
    const frit_range all = chunk_of(b, chunk);
    for (frit_range now = all; now.begin < all.end; now.begin = now.end) {
        now.end = min(page_of(now.begin) + (q.lanes > 1 ? FRIT_ATTEND_SPAN : FRIT_ATTEND_ROWS), all.end);
        if (q.lanes > 1)
            attend_many(task, s, b->run, head, now, &q);
        else
            attend_few(task, s, b->run, head, now, &q);
    }
    for (int64_t i = 0; i < q.n; i++) {
        const int64_t row = b->run->first_row + b->first + i / s->group, h = head * s->group + i % s->group;
        float *acc = q.acc + i * s->v_dim;
        if (q.lanes > 1) collect(acc = q.v, q.acc, i, q.lanes, s->v_dim);   // the values' room is free again
        if (b->n_chunks == 1) {
            give_result(task, s, row, h, acc, 1 / (q.sum[i] + sink_weight(task, h, q.max[i])));
            continue;
        }
        float *partial = partial_at(task, s, row, h, chunk);
        partial[0] = q.max[i];
        partial[1] = q.sum[i];
        memcpy(partial + 2, acc, (size_t)s->v_dim * sizeof(float));
    }
}

void frit_fast_attend(const frit_task *task, frit_share share)
{
    const frit_batch *batch = task->env->batch;
    const shape s = shape_of(task);
    int64_t item = 0;
    for (int i = 0; i < batch->n_runs; i++) {
        for (int64_t first = 0; first < batch->runs[i].n_rows; first += s.block_rows) {
            const block b = block_at(&s, &task->node->attend, &batch->runs[i], first);
            for (int64_t j = 0; j < s.layer->spec.n_head_kv * b.n_chunks; j++)
                if (frit_share_has(share, item++))
                    attend_item(task, &s, &b, j / b.n_chunks, j % b.n_chunks, frit_task_workspace(task, share));
        }
    }
}

int frit_attend_pieces(const frit_task *task)
{
    const frit_batch *batch = task->env->batch;
    const shape s = shape_of(task);
    int64_t n = 0;
    for (int i = 0; i < batch->n_runs; i++)
        for (int64_t first = 0; first < batch->runs[i].n_rows; first += s.block_rows)
            n += s.layer->spec.n_head_kv * block_at(&s, &task->node->attend, &batch->runs[i], first).n_chunks;
    return (int)min(n, FRIT_MAX_PIECES);
}

int frit_attend_merge_pieces(const frit_task *task)
{
    const frit_batch *batch = task->env->batch;
    const shape s = shape_of(task);
    int64_t n = 0;
    for (int i = 0; s.max_chunks > 1 && i < batch->n_runs; i++)
        for (int64_t first = 0; first < batch->runs[i].n_rows; first += s.block_rows) {
            const block b = block_at(&s, &task->node->attend, &batch->runs[i], first);
            if (b.n_chunks > 1) n += s.n_head * b.n_rows;
        }
    return (int)min(n, FRIT_MAX_PIECES);
}

static void merge(const frit_task *task, const shape *s, int64_t row, int64_t head, int64_t n_chunks, float *acc)
{
    float top = -INFINITY;
    for (int64_t c = 0; c < n_chunks; c++) top = fmaxf(top, partial_at(task, s, row, head, c)[0]);

    float total = sink_weight(task, head, top);
    memset(acc, 0, (size_t)s->v_dim * sizeof(float));
    for (int64_t c = 0; c < n_chunks; c++) {
        const float *partial = partial_at(task, s, row, head, c);
        if (partial[1] == 0) continue;   // this row sees nothing of the chunk
        const float weight = factor_of(partial[0], top);
        for (int64_t i = 0; i < s->v_dim; i++) acc[i] += weight * partial[2 + i];
        total += weight * partial[1];
    }
    give_result(task, s, row, head, acc, 1 / total);
}

void frit_fast_attend_merge(const frit_task *task, frit_share share)
{
    const frit_batch *batch = task->env->batch;
    const shape s = shape_of(task);
    if (s.max_chunks == 1) return;
    int64_t item = 0;
    for (int i = 0; i < batch->n_runs; i++) {
        const frit_run *run = &batch->runs[i];
        for (int64_t row = 0; row < run->n_rows; row++) {
            const block b = block_at(&s, &task->node->attend, run, row / s.block_rows * s.block_rows);
            for (int64_t h = 0; h < s.n_head && b.n_chunks > 1; h++)
                if (frit_share_has(share, item++))
                    merge(task, &s, run->first_row + row, h, b.n_chunks, frit_task_workspace(task, share));
        }
    }
}

// ------------------------------------------------------------------------------- writing

static void store(const frit_task *task, const frit_cache_side *side, const frit_run *run, int64_t p, int64_t head,
                  const float *x, float *mixed)
{
    const frit_kernels *k = task->env->kernels;
    uint8_t *to = frit_cache_at(side, run, p, head);
    if (side->mix > 1) {
        memcpy(mixed, x, (size_t)side->dim * sizeof(float));
        frit_hadamard(mixed, side->dim, side->mix);
        x = mixed;
    }
    if (k->encode[side->dtype])
        k->encode[side->dtype](x, to, side->dim);
    else
        frit_dtype_get(side->dtype)->encode(x, to, side->dim, NULL);
}

// Some heads of the keys or of the values of all rows.
static void write_heads(const frit_task *task, frit_share share)
{
    const frit_batch *batch = task->env->batch;
    const frit_cache_layer *layer = &task->env->cache->layers[task->node->layer];
    const frit_cache_side *side = task->keys ? &layer->k : &layer->v;
    const float *x = task->x[task->keys ? 0 : 1];
    const int64_t n_head = layer->spec.n_head_kv;
    const frit_range heads = frit_split(n_head, 1, share);
    for (int i_run = 0; i_run < batch->n_runs; i_run++) {
        const frit_run *run = &batch->runs[i_run];
        for (int64_t row = run->first_row; row < run->first_row + run->n_rows; row++)
            for (int64_t h = heads.begin; h < heads.end; h++)
                store(task, side, run, run->n_past + row - run->first_row, h, x + (row * n_head + h) * side->dim,
                      frit_task_workspace(task, share));
    }
}

void frit_fast_kv_write(const frit_task *task, frit_share share)
{
    if (task->by_heads) {
        write_heads(task, share);
        return;
    }
    const frit_batch *batch = task->env->batch;
    const frit_cache_layer *layer = &task->env->cache->layers[task->node->layer];
    const int64_t n_head = layer->spec.n_head_kv, k_dim = layer->k.dim, v_dim = layer->v.dim;
    const frit_range mine = frit_split(batch->n_rows * n_head, 1, share);
    float *mixed = frit_task_workspace(task, share);

    for (int i_run = 0; i_run < batch->n_runs; i_run++) {
        const frit_run *run = &batch->runs[i_run];
        const int64_t first = run->first_row * n_head, end = min(mine.end, first + run->n_rows * n_head);
        for (int64_t i = max(mine.begin, first); i < end; i++) {
            const int64_t p = run->n_past + i / n_head - run->first_row, h = i % n_head;
            store(task, &layer->k, run, p, h, task->x[0] + i * k_dim, mixed);
            store(task, &layer->v, run, p, h, task->x[1] + i * v_dim, mixed);
        }
    }
}
