// SPDX-License-Identifier: MIT
// Attention among the rows of a step, for encoders of pictures and sounds. A piece is a head and a block of consecutive
// queries, whose keys and values are copied together span by span and given to the kernels of prompt attention.
#include "backend/cpu/ops/attend.h"
#include "backend/cpu/ops/fast.h"
#include "base/minmax.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 4 * FRIT_ATTEND_LANES };   // queries of a piece

static int64_t blocks_of(const frit_seq *seq)
{
    return (seq->n_rows + BLOCK - 1) / BLOCK;
}

int frit_attend_uncached_pieces(const frit_task *task)
{
    const frit_batch *batch = task->env->batch;
    int64_t n = 0;
    for (int i = 0; i < batch->n_seqs; i++) n += blocks_of(&batch->seqs[i]);
    return (int)frit_min_i64(n * task->node->shape[1], FRIT_MAX_PIECES);
}

typedef struct block {   // consecutive queries of one head; queries are lanes of panels
    const frit_task *task;
    const frit_kernels *kernels;
    int64_t head, first, n, n_padded, lanes;
    float *q, *acc;         // [n_padded, k_dim] and [n_padded, v_dim], by panels
    float *max, *sum;       // [n_padded]
    int32_t *begin, *end;   // [n_padded]: the rows that a query sees
    float *k, *v;           // [FRIT_ATTEND_SPAN, k_dim], [FRIT_ATTEND_SPAN, v_dim]
    float *scratch;
} block;

size_t frit_attend_uncached_workspace_bytes(const frit_node *node)
{
    const int64_t k_dim = node->src[0]->shape[2], v_dim = node->shape[2];
    return (size_t)(frit_attend_round_up(BLOCK * k_dim) + frit_attend_round_up(BLOCK * v_dim) +
                    4 * frit_attend_round_up(BLOCK) + frit_attend_round_up(FRIT_ATTEND_SPAN * k_dim) +
                    frit_attend_round_up(FRIT_ATTEND_SPAN * v_dim) +
                    frit_attend_round_up(FRIT_ATTEND_SCRATCH / (int64_t)sizeof(float))) *
           sizeof(float);
}

static void take_room(block *b, float *workspace)
{
    const int64_t k_dim = b->task->node->src[0]->shape[2], v_dim = b->task->node->shape[2];
    b->q = frit_attend_take(&workspace, BLOCK * k_dim);
    b->acc = frit_attend_take(&workspace, BLOCK * v_dim);
    b->max = frit_attend_take(&workspace, BLOCK);
    b->sum = frit_attend_take(&workspace, BLOCK);
    b->begin = frit_attend_take(&workspace, BLOCK);
    b->end = frit_attend_take(&workspace, BLOCK);
    b->k = frit_attend_take(&workspace, FRIT_ATTEND_SPAN * k_dim);
    b->v = frit_attend_take(&workspace, FRIT_ATTEND_SPAN * v_dim);
    b->scratch = workspace;
}

// Returns row `row` of the head of a source that the block's queries use.
static const float *vector(const block *b, int source, int64_t row)
{
    const frit_node *x = b->task->node->src[source];
    return b->task->x[source] + (row * x->shape[1] + b->head * x->shape[1] / b->task->node->shape[1]) * x->shape[2];
}

// Sets the rows that each query sees: those of its segment, which are consecutive.
static void find_segments(block *b, const frit_seq *seq)
{
    const float *segments = b->task->x[3];
    const int64_t first = seq->first_row, end = first + seq->n_rows;
    for (int64_t i = 0; i < b->n; i++) {
        const int64_t row = b->first + i;
        if (segments && i > 0 && segments[row] == segments[row - 1]) {
            b->begin[i] = b->begin[i - 1], b->end[i] = b->end[i - 1];
            continue;
        }
        int64_t from = segments ? row : first, to = segments ? row + 1 : end;
        while (segments && from > first && segments[from - 1] == segments[row]) from--;
        while (segments && to < end && segments[to] == segments[row]) to++;
        b->begin[i] = (int32_t)from, b->end[i] = (int32_t)to;
    }
}

static void load_queries(block *b)
{
    const frit_node *node = b->task->node;
    const int64_t k_dim = node->src[0]->shape[2], lanes = b->lanes;
    memset(b->acc, 0, (size_t)(b->n_padded * node->shape[2]) * sizeof(float));
    if (b->n < b->n_padded) memset(b->q, 0, (size_t)(b->n_padded * k_dim) * sizeof(float));
    for (int64_t i = 0; i < b->n_padded; i++) {
        b->max[i] = -INFINITY, b->sum[i] = 0;
        if (i >= b->n) b->begin[i] = b->end[i] = 0;
        const float *from = vector(b, 0, b->first + (i < b->n ? i : 0));
        float *to = b->q + i / lanes * k_dim * lanes + i % lanes;
        for (int64_t d = 0; d < k_dim && i < b->n; d++) to[d * lanes] = from[d] * node->factor;
    }
}

static void attend_span(block *b, int64_t first, int64_t n)
{
    const int64_t k_dim = b->task->node->src[0]->shape[2], v_dim = b->task->node->shape[2];
    for (int64_t i = 0; i < n; i++) {
        memcpy(b->k + i * k_dim, vector(b, 1, first + i), (size_t)k_dim * sizeof(float));
        memcpy(b->v + i * v_dim, vector(b, 2, first + i), (size_t)v_dim * sizeof(float));
    }
    frit_attend_tile tile = {.n_panels = b->n_padded / b->lanes,
                             .n_p = n,
                             .k_dim = k_dim,
                             .v_dim = v_dim,
                             .k = b->k,
                             .v = b->v,
                             .q = b->q,
                             .acc = b->acc,
                             .max = b->max,
                             .sum = b->sum,
                             .begin = b->begin,
                             .end = b->end,
                             .own_position = b->begin,   // unused without slopes
                             .scratch = (uint8_t *)b->scratch,
                             .first = (int32_t)first,
                             .cut = b->n < b->n_padded};
    for (int64_t i = 0; i < b->n; i++) tile.cut = tile.cut || b->begin[i] > first || b->end[i] < first + n;
    b->kernels->attend_tile(&tile);
}

static void attend_by_tiles(block *b)
{
    const int64_t v_dim = b->task->node->shape[2], n_head = b->task->node->shape[1], lanes = b->lanes;
    load_queries(b);
    const int64_t end = b->end[b->n - 1];
    for (int64_t at = b->begin[0]; at < end; at += FRIT_ATTEND_SPAN)
        attend_span(b, at, frit_min_i64(FRIT_ATTEND_SPAN, end - at));
    for (int64_t i = 0; i < b->n; i++) {
        float *y = b->task->y + ((b->first + i) * n_head + b->head) * v_dim;
        const float *from = b->acc + i / lanes * v_dim * lanes + i % lanes, by = 1 / b->sum[i];
        for (int64_t d = 0; d < v_dim; d++) y[d] = from[d * lanes] * by;
    }
}

// One query after the other, for instruction sets without tiles.
static void attend_by_rows(const block *b)
{
    const frit_node *node = b->task->node;
    const int64_t k_dim = node->src[0]->shape[2], v_dim = node->shape[2];
    for (int64_t i = 0; i < b->n; i++) {
        float scores[FRIT_ATTEND_ROWS + FRIT_ATTEND_LANES], max = -INFINITY, sum = 0;
        float *y = b->task->y + ((b->first + i) * node->shape[1] + b->head) * v_dim;
        memset(y, 0, (size_t)v_dim * sizeof *y);
        for (int64_t at = b->begin[i]; at < b->end[i]; at += FRIT_ATTEND_ROWS) {
            const int64_t n = frit_min_i64(FRIT_ATTEND_ROWS, b->end[i] - at);
            const uint8_t *keys[FRIT_ATTEND_ROWS], *values[FRIT_ATTEND_ROWS];
            for (int64_t s = 0; s < n; s++) {
                keys[s] = (const uint8_t *)vector(b, 1, at + s);
                values[s] = (const uint8_t *)vector(b, 2, at + s);
            }
            b->kernels->attend_scores[FRIT_DTYPE_F32](scores, vector(b, 0, b->first + i), 1, keys, n, k_dim);
            for (int64_t s = 0; s < n; s++) scores[s] *= node->factor;
            const float before = b->kernels->attend_weigh(scores, 0, n, n, &max, &sum);
            if (before != 1) b->kernels->scale(y, y, before, v_dim);
            b->kernels->attend_values[FRIT_DTYPE_F32](y, scores, 1, values, n, v_dim);
        }
        b->kernels->scale(y, y, 1 / sum, v_dim);
    }
}

void frit_fast_attend_uncached(const frit_task *task, frit_share share)
{
    const frit_batch *batch = task->env->batch;
    const int64_t n_head = task->node->shape[1];
    for (int i = 0; i < batch->n_seqs; i++) {
        const frit_seq *seq = &batch->seqs[i];
        const frit_range r = frit_split(blocks_of(seq) * n_head, 1, share);
        for (int64_t k = r.begin; k < r.end; k++) {
            const int64_t at = k % blocks_of(seq) * BLOCK;
            block b = {.task = task, .kernels = task->env->kernels, .head = k / blocks_of(seq)};
            b.first = seq->first_row + at, b.n = frit_min_i64(BLOCK, seq->n_rows - at);
            b.lanes = b.kernels->lanes > 0 ? b.kernels->lanes : 1;
            b.n_padded = (b.n + b.lanes - 1) / b.lanes * b.lanes;
            take_room(&b, frit_task_workspace(task, share));
            find_segments(&b, seq);
            if (b.kernels->attend_tile)
                attend_by_tiles(&b);
            else
                attend_by_rows(&b);
        }
    }
}
