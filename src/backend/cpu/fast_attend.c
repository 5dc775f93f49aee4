// SPDX-License-Identifier: MIT
// Attention over the paged cache. Scores never leave the first cache: one page of keys and values at a time is
// read for a block of queries, with a running maximum and sum for each query.
//
// The work is cut into items that do not depend on the number of threads:
//
//     run - block of rows - head of the cache - chunk of positions
//            rows x group = queries that share the keys;  few rows in the step: positions are cut into chunks,
//            whose results (maximum, sum, weighted values) frit_fast_attend_merge joins;  many rows: one chunk
#include "backend/cpu/fast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_QUERIES = 16,   // rows x group, unless the group alone is larger
    SPLIT_ROWS = 16,      // steps with at most so many rows cut positions into chunks
    MAX_CHUNKS = 32,
    MIN_CHUNK = 8 * FRIT_PAGE_TOKENS,
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

typedef struct shape {
    int64_t n_head, n_head_kv, group, k_dim, v_dim;
    int64_t block_rows;
    bool split;
} shape;

typedef struct block {   // neighbouring rows of one run
    const frit_run *run;
    int64_t first, n_rows;     // of the run
    frit_range span;           // positions that some row looks at; memory before it may hold anything
    int64_t chunk, n_chunks;   // positions of a chunk; the first begins where the page of span.begin does
} block;

static shape shape_of(const frit_task *task)
{
    const frit_cache_spec *spec = &task->env->cache->layers[task->node->attend.layer].spec;
    shape s = {.n_head = task->node->src[0]->shape[1],
               .n_head_kv = spec->n_head_kv,
               .k_dim = spec->k_dim,
               .v_dim = spec->v_dim};
    s.group = s.n_head / s.n_head_kv;
    s.block_rows = max(1, BLOCK_QUERIES / s.group);
    s.split = task->env->batch->n_rows <= SPLIT_ROWS;
    return s;
}

static block block_at(const shape *s, const frit_attend *attend, const frit_run *run, int64_t first)
{
    block b = {.run = run, .first = first, .n_rows = min(s->block_rows, run->n_rows - first)};
    b.span.begin = frit_attend_span(attend, run, run->n_past + first).begin;
    b.span.end = frit_attend_span(attend, run, run->n_past + first + b.n_rows - 1).end;
    const int64_t n = b.span.end - page_of(b.span.begin);
    const int64_t share = (n + MAX_CHUNKS - 1) / MAX_CHUNKS;
    b.chunk = s->split ? max(MIN_CHUNK, page_of(share + FRIT_PAGE_TOKENS - 1)) : n;
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
    return partials + ((row * s->n_head + head) * MAX_CHUNKS + chunk) * (2 + s->v_dim);
}

size_t frit_attend_shared_bytes(const frit_node *node)
{
    const int64_t n_rows = min(node->shape[0], SPLIT_ROWS), n_head = node->src[0]->shape[1];
    return (size_t)(n_rows * n_head * MAX_CHUNKS * (2 + frit_node_width(node))) * sizeof(float);
}

typedef struct queries {   // of one item, in the thread's workspace
    int64_t n;
    float *q, *acc, *scores;   // [n, k_dim], [n, v_dim], [n, FRIT_ATTEND_SPAN]
    float *max, *sum;          // [n]
} queries;

// A row's queries of one group are at most all heads; the block has room for BLOCK_QUERIES at least.
size_t frit_attend_workspace_bytes(const frit_node *node)
{
    const int64_t n = max(BLOCK_QUERIES, node->src[0]->shape[1]);
    const int64_t k_dim = frit_node_width(node->src[0]), v_dim = frit_node_width(node);
    return (size_t)(n * (k_dim + v_dim + FRIT_ATTEND_SPAN + 2)) * sizeof(float);
}

static queries gather(const frit_task *task, const shape *s, const block *b, int64_t head, float *workspace)
{
    queries q = {.n = b->n_rows * s->group};
    q.q = workspace;
    q.acc = q.q + q.n * s->k_dim;
    q.scores = q.acc + q.n * s->v_dim;
    q.max = q.scores + q.n * FRIT_ATTEND_SPAN;
    q.sum = q.max + q.n;
    const int64_t n = s->group * s->k_dim;   // the heads of a group are neighbours
    for (int64_t i = 0; i < b->n_rows; i++) {
        const int64_t row = b->run->first_row + b->first + i;
        const float *x = task->x[0] + (row * s->n_head + head * s->group) * s->k_dim;
        const float scale = frit_attend_scale(&task->node->attend, b->run->n_past + b->first + i);
        task->env->kernels->scale(q.q + i * n, x, scale, n);
    }
    memset(q.acc, 0, (size_t)(q.n * s->v_dim) * sizeof(float));
    for (int64_t i = 0; i < q.n; i++) q.max[i] = -INFINITY, q.sum[i] = 0;
    return q;
}

typedef struct query {   // one of an item
    int64_t i, slot, head;
    frit_range seen;
} query;

static void lose_by_distance(float *scores, float slope, int64_t distance, int64_t n)
{
    for (int64_t i = 0; i < n; i++) scores[i] -= slope * (float)llabs(distance - i);
}

// Turns one query's scores of positions [begin, begin + n) into weights, and rescales what it has so far.
static void weigh(const frit_task *task, const shape *s, queries *q, const query *one, int64_t begin, int64_t n)
{
    const int64_t i = one->i;
    const frit_range seen = one->seen;
    const float slope = frit_attend_slope(&task->node->attend, one->head, s->n_head);
    const frit_kernels *k = task->env->kernels;
    float *scores = q->scores + i * FRIT_ATTEND_SPAN, *acc = q->acc + i * s->v_dim;
    const int64_t low = min(n, max(0, seen.begin - begin)), high = max(low, min(n, seen.end - begin));
    memset(scores, 0, (size_t)low * sizeof(float));
    memset(scores + high, 0, (size_t)(n - high) * sizeof(float));
    if (low == high) return;

    if (task->node->attend.softcap != 0) k->softcap(scores + low, scores + low, task->node->attend.softcap, high - low);
    if (slope != 0) lose_by_distance(scores + low, slope, one->slot - (begin + low), high - low);
    const float top = k->max(scores + low, high - low);
    if (top > q->max[i]) {
        const float shrink = expf(q->max[i] - top);
        k->scale(acc, acc, shrink, s->v_dim);
        q->sum[i] *= shrink;
        q->max[i] = top;
    }
    q->sum[i] += k->exp_sum(scores + low, q->max[i], high - low);
}

static void attend_positions(const frit_task *task, const shape *s, const block *b, int64_t head, frit_range positions,
                             queries *q)
{
    const frit_kernels *k = task->env->kernels;
    const frit_cache_layer *layer = &task->env->cache->layers[task->node->attend.layer];
    const int kind = layer->dtype == FRIT_DTYPE_F32 ? FRIT_KV_F32 : FRIT_KV_F16;
    const size_t elem_bytes = kind == FRIT_KV_F32 ? 4 : 2;

    for (int64_t p = positions.begin, next; p < positions.end; p = next) {
        next = min(page_of(p) + FRIT_PAGE_TOKENS, positions.end);
        const int64_t n = next - p;
        const void *keys = frit_cache_at(layer->k, layer->k_page_bytes, b->run, p, head, s->k_dim, elem_bytes);
        const void *values = frit_cache_at(layer->v, layer->v_page_bytes, b->run, p, head, s->v_dim, elem_bytes);
        k->attend_scores[kind](q->scores, q->q, q->n, keys, n, s->k_dim);
        for (int64_t i = 0; i < q->n; i++) {
            const int64_t slot = b->run->n_past + b->first + i / s->group;
            const frit_range seen = frit_attend_span(&task->node->attend, b->run, slot);
            weigh(task, s, q, &(query){i, slot, head * s->group + i % s->group, seen}, p, n);
        }
        k->attend_values[kind](q->acc, q->scores, q->n, values, n, s->v_dim);
    }
}

// What a sink adds to the sum of exponentials. Beside a sink far above `top` all else vanishes, as it should.
static float sink_weight(const frit_task *task, int64_t head, float top)
{
    return task->x[2] ? expf(task->x[2][head] - top) : 0;
}

static void attend_item(const frit_task *task, const shape *s, const block *b, int64_t head, int64_t chunk,
                        float *workspace)
{
    const frit_kernels *k = task->env->kernels;
    queries q = gather(task, s, b, head, workspace);
    attend_positions(task, s, b, head, chunk_of(b, chunk), &q);

    for (int64_t i = 0; i < q.n; i++) {
        const int64_t row = b->run->first_row + b->first + i / s->group, h = head * s->group + i % s->group;
        const float *acc = q.acc + i * s->v_dim;
        if (b->n_chunks == 1) {
            const float share = 1 / (q.sum[i] + sink_weight(task, h, q.max[i]));
            k->scale(task->y + (row * s->n_head + h) * s->v_dim, acc, share, s->v_dim);
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
            for (int64_t j = 0; j < s.n_head_kv * b.n_chunks; j++)
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
            n += s.n_head_kv * block_at(&s, &task->node->attend, &batch->runs[i], first).n_chunks;
    return (int)min(n, FRIT_MAX_PIECES);
}

int frit_attend_merge_pieces(const frit_task *task)
{
    const frit_batch *batch = task->env->batch;
    const shape s = shape_of(task);
    int64_t n = 0;
    for (int i = 0; s.split && i < batch->n_runs; i++)
        for (int64_t first = 0; first < batch->runs[i].n_rows; first += s.block_rows) {
            const block b = block_at(&s, &task->node->attend, &batch->runs[i], first);
            if (b.n_chunks > 1) n += s.n_head * b.n_rows;
        }
    return (int)min(n, FRIT_MAX_PIECES);
}

static void merge(const frit_task *task, const shape *s, int64_t row, int64_t head, int64_t n_chunks)
{
    float *y = task->y + (row * s->n_head + head) * s->v_dim;
    float top = -INFINITY, total = 0;
    for (int64_t c = 0; c < n_chunks; c++) top = fmaxf(top, partial_at(task, s, row, head, c)[0]);

    total = sink_weight(task, head, top);
    memset(y, 0, (size_t)s->v_dim * sizeof(float));
    for (int64_t c = 0; c < n_chunks; c++) {
        const float *partial = partial_at(task, s, row, head, c);
        if (partial[1] == 0) continue;   // this row sees nothing of the chunk
        const float weight = expf(partial[0] - top);
        for (int64_t i = 0; i < s->v_dim; i++) y[i] += weight * partial[2 + i];
        total += weight * partial[1];
    }
    task->env->kernels->scale(y, y, 1 / total, s->v_dim);
}

void frit_fast_attend_merge(const frit_task *task, frit_share share)
{
    const frit_batch *batch = task->env->batch;
    const shape s = shape_of(task);
    if (!s.split) return;
    int64_t item = 0;
    for (int i = 0; i < batch->n_runs; i++) {
        const frit_run *run = &batch->runs[i];
        for (int64_t row = 0; row < run->n_rows; row++) {
            const block b = block_at(&s, &task->node->attend, run, row / s.block_rows * s.block_rows);
            for (int64_t h = 0; h < s.n_head && b.n_chunks > 1; h++)
                if (frit_share_has(share, item++)) merge(task, &s, run->first_row + row, h, b.n_chunks);
        }
    }
}

static void store(const frit_kernels *k, uint8_t *to, frit_dtype dtype, const float *from, int64_t n)
{
    if (dtype == FRIT_DTYPE_F32)
        memcpy(to, from, (size_t)n * sizeof(float));
    else
        k->to_half((uint16_t *)(void *)to, from, n);
}

void frit_fast_kv_write(const frit_task *task, frit_share share)
{
    const frit_kernels *k = task->env->kernels;
    const frit_batch *batch = task->env->batch;
    const frit_cache_layer *layer = &task->env->cache->layers[task->node->layer];
    const int64_t n_head = layer->spec.n_head_kv, k_dim = layer->spec.k_dim, v_dim = layer->spec.v_dim;
    const size_t elem_bytes = layer->dtype == FRIT_DTYPE_F32 ? 4 : 2;
    const frit_range mine = frit_split(batch->n_rows, 1, share);

    for (int i_run = 0; i_run < batch->n_runs; i_run++) {
        const frit_run *run = &batch->runs[i_run];
        const int64_t end = min(mine.end, run->first_row + run->n_rows);
        for (int64_t t = max(mine.begin, run->first_row); t < end; t++) {
            const int64_t p = run->n_past + t - run->first_row;
            for (int64_t h = 0; h < n_head; h++) {
                store(k, frit_cache_at(layer->k, layer->k_page_bytes, run, p, h, k_dim, elem_bytes), layer->dtype,
                      task->x[0] + (t * n_head + h) * k_dim, k_dim);
                store(k, frit_cache_at(layer->v, layer->v_page_bytes, run, p, h, v_dim, elem_bytes), layer->dtype,
                      task->x[1] + (t * n_head + h) * v_dim, v_dim);
            }
        }
    }
}
