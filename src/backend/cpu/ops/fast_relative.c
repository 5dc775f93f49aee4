// SPDX-License-Identifier: MIT
// Disentangled attention on the kernels of the installed instruction set: for each query, scores of blocks of rows, the
// terms for their distances, and the weighted sum so far.
#include "backend/cpu/ops/fast.h"

#include <math.h>
#include <string.h>

enum { BLOCK = FRIT_ATTEND_ROWS };

int frit_attend_relative_pieces(const frit_task *task)
{
    const int64_t n = task->env->batch->n_rows * task->node->shape[1];
    return n < FRIT_MAX_PIECES ? (int)n : FRIT_MAX_PIECES;
}

// Workspace: the buckets of all distances in a sequence.
size_t frit_attend_relative_workspace_bytes(const frit_node *node)
{
    return 2 * (size_t)node->shape[0] * sizeof(int32_t);
}

typedef struct query {
    const frit_task *task;
    const frit_kernels *kernels;
    int64_t first, row, head, n_head;   // first row of the sequence
    const int32_t *buckets;             // [distance], from -(n_rows - 1) on
    float max, sum;
} query;

static const float *vector(const query *q, int source, int64_t row)
{
    return q->task->x[source] + (row * q->n_head + q->head) * q->task->node->src[source]->shape[2];
}

static void attend_block(query *q, int64_t begin, int64_t n)
{
    const frit_node *node = q->task->node;
    const frit_relate *relate = &node->relate;
    const int64_t dim = node->shape[2];
    const float *c = vector(q, 3, q->row);
    float scores[BLOCK + FRIT_ATTEND_LANES], *y = q->task->y + (q->row * q->n_head + q->head) * dim;
    const uint8_t *keys[BLOCK], *values[BLOCK];
    for (int64_t i = 0; i < n; i++) {
        keys[i] = (const uint8_t *)vector(q, 1, begin + i);
        values[i] = (const uint8_t *)vector(q, 2, begin + i);
    }
    q->kernels->attend_scores[FRIT_DTYPE_F32](scores, vector(q, 0, q->row), 1, keys, n, node->src[0]->shape[2]);
    for (int64_t i = 0; i < n; i++) {
        const int32_t bucket = q->buckets[q->row - begin - i];
        scores[i] = (scores[i] + c[bucket] + vector(q, 4, begin + i)[bucket]) * relate->scale;
    }
    const float before = q->kernels->attend_weigh(scores, 0, n, n, &q->max, &q->sum);
    if (before != 1) q->kernels->scale(y, y, before, dim);
    q->kernels->attend_values[FRIT_DTYPE_F32](y, scores, 1, values, n, dim);
}

static void attend(query *q, int64_t n_rows)
{
    const int64_t dim = q->task->node->shape[2];
    float *y = q->task->y + (q->row * q->n_head + q->head) * dim;
    memset(y, 0, (size_t)dim * sizeof *y);
    for (int64_t i = 0; i < n_rows; i += BLOCK) attend_block(q, q->first + i, n_rows - i < BLOCK ? n_rows - i : BLOCK);
    q->kernels->scale(y, y, 1 / q->sum, dim);
}

void frit_fast_attend_relative(const frit_task *task, frit_share share)
{
    const frit_batch *batch = task->env->batch;
    const int64_t n_head = task->node->shape[1];
    for (int i = 0; i < batch->n_seqs; i++) {
        const frit_seq *seq = &batch->seqs[i];
        const frit_range r = frit_split(seq->n_rows * n_head, 1, share);
        int32_t *buckets = (int32_t *)frit_task_workspace(task, share) + seq->n_rows;
        for (int64_t d = 1 - seq->n_rows; d < seq->n_rows && r.begin < r.end; d++)
            buckets[d] = (int32_t)frit_relate_bucket(&task->node->relate, d);
        for (int64_t k = r.begin; k < r.end; k++) {
            query q = {task,
                       task->env->kernels,
                       seq->first_row,
                       seq->first_row + k / n_head,
                       k % n_head,
                       n_head,
                       buckets,
                       -INFINITY,
                       0};
            attend(&q, seq->n_rows);
        }
    }
}
