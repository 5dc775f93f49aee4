// SPDX-License-Identifier: MIT
// Reference kernels of adapters: the formulas of the op table, number by number.
#include "backend/cpu/adapt.h"
#include "backend/cpu/ref.h"
#include "quant/dtype.h"

const float *frit_adapt_scales(const frit_task *task, int64_t t)
{
    const frit_batch *batch = task->env->batch;
    if (!batch->scales || batch->n_seqs == 0) return NULL;
    const int64_t row = task->node->rows == FRIT_ROWS_OUTS ? batch->out_rows[t] : t;
    int32_t first = 0, last = batch->n_seqs - 1;
    while (first < last) {   // the last sequence that begins at this row or before
        const int32_t middle = (first + last + 1) / 2;
        if (batch->seqs[middle].first_row <= row)
            first = middle;
        else
            last = middle - 1;
    }
    return batch->scales + (int64_t)first * batch->n_adapters;
}

static double number_at(frit_dtype type, const uint8_t *numbers, int64_t i)
{
    const frit_dtype_info *info = frit_dtype_get(type);
    float value;
    info->decode(numbers + (size_t)i * info->block_bytes, &value, 1);
    return value;
}

// Of a slot of a route: source i of the node.
static int64_t expert_of(const frit_task *task, int i, int64_t slot)
{
    const int64_t n_used = task->node->src[i]->shape[2];
    return (int64_t)task->x[i][slot / n_used * 2 * n_used + slot % n_used];
}

static double product(const frit_low_rank *part, const float *x, int64_t matrix, int64_t j, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * number_at(part->a_type, part->a, (matrix * part->rank + j) * n + i);
    return sum;
}

void frit_ref_adapt_down(const frit_task *task, frit_share share)
{
    const frit_node *node = task->node, *x = node->src[0];
    const frit_adapted *adapted = node->adapted;
    const bool is_lookup = frit_node_is_ids(x), has_route = node->n_src > 1;
    const int64_t n_used = has_route ? node->shape[1] : 1, n_in = adapted->n_in;
    const frit_range r = frit_split(node->shape[0] * n_used, 1, share);
    for (int64_t row = r.begin; row < r.end; row++) {
        const float *scales = frit_adapt_scales(task, row / n_used);
        const int64_t matrix = has_route ? expert_of(task, 1, row) : 0;
        for (int32_t p = 0; scales && p < adapted->n; p++) {
            const frit_low_rank *part = &adapted->parts[p];
            const float scale = part->scale * scales[part->adapter];
            float *h = task->y + row * adapted->n_h + part->first;
            for (int32_t j = 0; scale != 0 && j < part->rank; j++) {
                if (is_lookup)
                    h[j] = (float)(scale * number_at(part->a_type, part->a,
                                                     (int64_t)frit_task_ids(task, 0)[row] * part->rank + j));
                else
                    h[j] = (float)(scale * product(part, task->x[0] + (x->n_dims == 3 ? row : row / n_used) * n_in,
                                                   matrix, j, n_in));
            }
        }
    }
}

static double added(const frit_task *task, int i_h, const frit_adapted *adapted, int64_t row, int64_t t, int64_t expert,
                    int64_t o)
{
    const float *scales = frit_adapt_scales(task, t), *h = task->x[i_h] + row * adapted->n_h;
    double sum = 0;
    for (int32_t p = 0; scales && p < adapted->n; p++) {
        const frit_low_rank *part = &adapted->parts[p];
        if (part->scale * scales[part->adapter] == 0) continue;
        for (int32_t j = 0; j < part->rank; j++)
            sum += h[part->first + j] *
                   number_at(part->b_type, part->b, (expert * part->rank + j) * part->b_width + part->b_first + o);
    }
    return sum;
}

double frit_ref_adapt(const frit_task *task, int i, int64_t row, int64_t t, int64_t expert, int64_t o)
{
    const int i_h = frit_node_adapts(task->node, i);
    return i_h < 0 ? 0 : added(task, i_h, task->node->src[i_h]->adapted, row, t, expert, o);
}

void frit_ref_adapt_up(const frit_task *task, frit_share share)
{
    const frit_node *node = task->node;
    const int64_t n_used = node->n_dims == 3 ? node->shape[1] : 1, n = frit_node_width(node);
    const frit_range r = frit_split(frit_node_elems(node), 1, share);
    for (int64_t at = r.begin; at < r.end; at++) {
        const int64_t row = at / n, expert = node->n_src == 3 ? expert_of(task, 2, row) : 0;
        task->y[at] = (float)(task->x[0][at] + added(task, 1, node->adapted, row, row / n_used, expert, at % n));
    }
}

void frit_ref_steer(const frit_task *task, frit_share share)
{
    const frit_steering *steering = task->node->steering;
    const int64_t n = steering->n_embd;
    const frit_range r = frit_split(frit_node_elems(task->node), 1, share);
    for (int64_t at = r.begin; at < r.end; at++) {
        const float *scales = frit_adapt_scales(task, at / n);
        double sum = task->x[0][at];
        for (int32_t p = 0; scales && p < steering->n; p++) {
            const frit_direction *part = &steering->parts[p];
            sum += (double)scales[part->adapter] * part->x[at % n];
        }
        task->y[at] = (float)sum;
    }
}
