// SPDX-License-Identifier: MIT
// Reference kernels of the ops between the ranks of a group. env->ranks is NULL outside of a group.
#include "backend/cpu/ref/ref.h"

#include "graph/shard.h"

#include <string.h>

// Adds one number of each rank as a balanced tree.
static float sum_of(const float **x, int n, int64_t i)
{
    float terms[FRIT_MAX_RANKS] = {0};
    for (int r = 0; r < n; r++) terms[r] = x[r][i];
    for (; n > 1; n = (n + 1) / 2)
        for (int k = 0; k < n / 2 + n % 2; k++)
            terms[k] = 2 * k + 1 < n ? terms[2 * k] + terms[2 * k + 1] : terms[2 * k];
    return terms[0];
}

void frit_ref_reduce(const frit_task *task, frit_share share)
{
    const float **x = task->of_ranks;
    float *y = task->y;
    const frit_range r = frit_split(frit_node_elems(task->node), 1, share);
    const int n = x ? (int)task->node->ranks.n : 1;
    if (n == 1) {
        for (int64_t i = r.begin; i < r.end; i++) y[i] = task->x[0][i];
    } else if (n == 2) {
        for (int64_t i = r.begin; i < r.end; i++) y[i] = x[0][i] + x[1][i];
    } else if (n == 4) {
        for (int64_t i = r.begin; i < r.end; i++) y[i] = (x[0][i] + x[1][i]) + (x[2][i] + x[3][i]);
    } else {
        for (int64_t i = r.begin; i < r.end; i++) y[i] = sum_of(x, n, i);
    }
}

// The dimensions before the axis, and the numbers of one part from the axis on.
typedef struct sizes {
    int64_t n_outer, n_part;
} sizes;

static sizes sizes_of(const frit_node *part, int axis)
{
    sizes s = {1, 1};
    for (int i = 0; i < axis; i++) s.n_outer *= part->shape[i];
    for (int i = axis; i < part->n_dims; i++) s.n_part *= part->shape[i];
    return s;
}

void frit_ref_gather(const frit_task *task, frit_share share)
{
    const frit_ranks *ranks = &task->node->ranks;
    const sizes s = sizes_of(task->node->src[0], ranks->axis);
    const frit_range r = frit_split(s.n_outer * ranks->n_parts, 1, share);
    for (int64_t i = r.begin; i < r.end; i++) {
        const int64_t outer = i / ranks->n_parts, part = i % ranks->n_parts;
        const float *x = task->of_ranks ? task->of_ranks[part * ranks->n / ranks->n_parts] : task->x[0];
        memcpy(task->y + i * s.n_part, x + outer * s.n_part, (size_t)s.n_part * sizeof(float));
    }
}

void frit_ref_part(const frit_task *task, frit_share share)
{
    const frit_ranks *ranks = &task->node->ranks;
    const sizes s = sizes_of(task->node, ranks->axis);
    const frit_range r = frit_split(s.n_outer, 1, share);
    const int64_t rank = task->env->ranks ? task->env->ranks->rank : 0, part = rank * ranks->n_parts / ranks->n;
    for (int64_t i = r.begin; i < r.end; i++)
        memcpy(task->y + i * s.n_part, task->x[0] + (i * ranks->n_parts + part) * s.n_part,
               (size_t)s.n_part * sizeof(float));
}
