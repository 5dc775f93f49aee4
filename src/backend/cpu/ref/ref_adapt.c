// SPDX-License-Identifier: MIT
// Reference kernels of adapters: the formulas of the op table, element by element.
#include "backend/cpu/ops/adapt.h"
#include "backend/cpu/ref/ref.h"
#include "quant/dtype.h"

const float *frit_adapt_scales(const frit_task *task, int64_t t)
{
    const frit_batch *batch = task->env->batch;
    if (!batch->scales || batch->n_seqs == 0) return NULL;
    const int64_t row = task->node->rows == FRIT_SHAPE_OUTS ? batch->out_rows[t] : t;
    int32_t first = 0, last = batch->n_seqs - 1;
    while (first < last) {   // finds the last sequence that begins at or before the row
        const int32_t middle = (first + last + 1) / 2;
        if (batch->seqs[middle].first_row <= row)
            first = middle;
        else
            last = middle - 1;
    }
    return batch->scales + (int64_t)first * batch->n_adapters;
}

int64_t frit_adapt_width(const frit_task_env *env, const frit_adapted *adapted)
{
    int64_t n = 0;
    for (int32_t u = 0; env->batch->scales && u < env->adapters->n_used; u++)
        n += env->adapters->tables[env->adapters->used[u]].matrices[adapted->matrix].rank;
    return n < adapted->n_h ? n : adapted->n_h;
}

static double number_at(const frit_tensor *tensor, int64_t i)
{
    const frit_dtype_info *info = frit_dtype_get(tensor->dtype);
    float value;
    info->decode((const uint8_t *)tensor->data + (size_t)i * info->block_bytes, &value, 1);
    return value;
}

// The expert of an assignment of the route, source i of the node.
static int64_t expert_of(const frit_task *task, int i, int64_t assignment)
{
    const int64_t n_used = task->node->src[i]->shape[2];
    return (int64_t)task->x[i][assignment / n_used * 2 * n_used + assignment % n_used];
}

static double product(const frit_low_rank *low_rank, const float *x, int64_t matrix, int64_t j, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * number_at(low_rank->a, (matrix * low_rank->rank + j) * n + i);
    return sum;
}

void frit_ref_adapt_down(const frit_task *task, frit_share share)
{
    const frit_node *node = task->node, *x = node->src[0];
    const frit_adapted *adapted = &node->adapted[0];
    const bool is_lookup = frit_node_is_ids(x), has_route = node->n_src > 1;
    const int64_t n_used = has_route ? node->shape[1] : 1, n_in = is_lookup ? 0 : frit_node_width(x);
    const frit_range r = frit_split(node->shape[0] * n_used, 1, share);
    for (int64_t row = r.begin; row < r.end; row++) {
        const float *scales = frit_adapt_scales(task, row / n_used);
        const int64_t matrix = has_route ? expert_of(task, 1, row) : 0;
        for (frit_adapt_walk p = {0}; frit_adapt_next(task->env, scales, adapted->matrix, &p);) {
            float *h = task->y + row * adapted->n_h + p.first;
            for (int32_t j = 0; j < p.low_rank->rank; j++) {
                if (is_lookup)
                    h[j] = (float)(p.scale * number_at(p.low_rank->a,
                                                       (int64_t)frit_task_ids(task, 0)[row] * p.low_rank->rank + j));
                else
                    h[j] =
                        (float)(p.scale * product(p.low_rank, task->x[0] + (x->n_dims == 3 ? row : row / n_used) * n_in,
                                                  matrix, j, n_in));
            }
        }
    }
}

static double adapter_term(const frit_task *task, int i_h, const frit_adapted *adapted, int64_t row, int64_t t,
                           int64_t expert, int64_t o, double y)
{
    const float *scales = frit_adapt_scales(task, t), *h = task->x[i_h] + row * adapted->n_h;
    double sum = 0;
    for (frit_adapt_walk p = {0}; frit_adapt_next(task->env, scales, adapted->matrix, &p);) {
        const int64_t width = p.low_rank->b->shape[p.low_rank->b->n_dims - 1];
        for (int32_t j = 0; j < p.low_rank->rank; j++)
            sum += h[p.first + j] *
                   number_at(p.low_rank->b, (expert * p.low_rank->rank + j) * width + adapted->first_row + o);
        if (p.low_rank->gain) sum += (double)p.of_row * number_at(p.low_rank->gain, adapted->first_row + o) * y;
        if (p.low_rank->shift) sum += (double)p.of_row * number_at(p.low_rank->shift, adapted->first_row + o);
    }
    return sum;
}

double frit_ref_adapt(const frit_task *task, int i, int64_t row, int64_t t, int64_t expert, int64_t o, double y)
{
    const int i_h = frit_node_adapts(task->node, i);
    return i_h < 0 ? 0 : adapter_term(task, i_h, &task->node->adapted[i], row, t, expert, o, y);
}

void frit_ref_adapt_up(const frit_task *task, frit_share share)
{
    const frit_node *node = task->node;
    const int64_t n_used = node->n_dims == 3 ? node->shape[1] : 1, n = frit_node_width(node);
    const frit_range r = frit_split(frit_node_elems(node), 1, share);
    for (int64_t at = r.begin; at < r.end; at++) {
        const int64_t row = at / n, expert = node->n_src == 3 ? expert_of(task, 2, row) : 0;
        const double y = task->x[0][at];
        task->y[at] = (float)(y + adapter_term(task, 1, &node->adapted[0], row, row / n_used, expert, at % n, y));
    }
}

const float *frit_adapt_direction(const frit_task *task, const float *scales, int32_t u, float *scale)
{
    const int32_t i = task->env->adapters->used[u], layer = task->node->layer;
    const frit_tensor *direction = task->env->adapters->tables[i].directions[layer];
    *scale = scales[i];
    return direction && *scale != 0 ? direction->data : NULL;
}

void frit_ref_steer(const frit_task *task, frit_share share)
{
    const int64_t n = frit_node_width(task->node);
    const frit_range r = frit_split(frit_node_elems(task->node), 1, share);
    for (int64_t at = r.begin; at < r.end; at++) {
        const float *scales = frit_adapt_scales(task, at / n);
        double sum = task->x[0][at];
        for (int32_t u = 0; scales && u < task->env->adapters->n_used; u++) {
            float scale;
            const float *direction = frit_adapt_direction(task, scales, u, &scale);
            if (direction) sum += (double)scale * direction[at % n];
        }
        task->y[at] = (float)sum;
    }
}
