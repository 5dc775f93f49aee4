// SPDX-License-Identifier: MIT
// Reference of disentangled attention: for each row and head two passes over the sequence's rows, the largest score,
// then the weighted sum.
#include "backend/cpu/ref/ref.h"

#include <math.h>

typedef struct view {
    const frit_task *task;
    int64_t first, row, head, n_head;   // first row of the sequence
} view;

static double score(const view *v, int64_t other)
{
    const frit_node *node = v->task->node;
    const frit_relate *relate = &node->relate;
    const int64_t dim = node->src[0]->shape[2], n = 2 * (int64_t)relate->span;
    const int64_t at = v->row * v->n_head + v->head, to = other * v->n_head + v->head;
    const int64_t bucket = frit_relate_bucket(relate, v->row - other);
    const float *const *x = v->task->x;
    const double sum = frit_ref_dot(x[0] + at * dim, x[1] + to * dim, dim);
    return (double)relate->scale * (sum + (double)x[3][at * n + bucket] + (double)x[4][to * n + bucket]);
}

static void attend(const view *v, int64_t n_rows)
{
    const int64_t dim = v->task->node->shape[2], at = v->row * v->n_head + v->head;
    double max = -INFINITY, total = 0;
    for (int64_t s = v->first; s < v->first + n_rows; s++) max = fmax(max, score(v, s));
    for (int64_t s = v->first; s < v->first + n_rows; s++) total += exp(score(v, s) - max);
    for (int64_t i = 0; i < dim; i++) {
        double sum = 0;
        for (int64_t s = v->first; s < v->first + n_rows; s++)
            sum += exp(score(v, s) - max) * v->task->x[2][(s * v->n_head + v->head) * dim + i];
        v->task->y[at * dim + i] = (float)(sum / total);
    }
}

void frit_ref_attend_relative(const frit_task *task, frit_share share)
{
    const frit_batch *batch = task->env->batch;
    const int64_t n_head = task->node->shape[1];
    for (int i = 0; i < batch->n_seqs; i++) {
        const frit_seq *seq = &batch->seqs[i];
        const frit_range r = frit_split(seq->n_rows * n_head, 1, share);
        for (int64_t k = r.begin; k < r.end; k++)
            attend(&(view){task, seq->first_row, seq->first_row + k / n_head, k % n_head, n_head}, seq->n_rows);
    }
}
