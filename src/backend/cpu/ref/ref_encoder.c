// SPDX-License-Identifier: MIT
// Reference kernels of encoders of pictures and sounds: mixed rows of tables, given rotations, attention among the rows
// of a step, blocks of rows.
#include "backend/cpu/ref/ref.h"

#include <math.h>
#include <string.h>

void frit_ref_embed_mix(const frit_task *task, frit_share share)
{
    const frit_dtype dtype = task->node->src[0]->tensor->dtype;
    const int64_t width = frit_node_width(task->node), n_taps = frit_node_width(task->node->src[1]) / 2;
    const uint64_t row_bytes = frit_dtype_row_bytes(dtype, width);
    float *row = frit_task_workspace(task, share);
    const frit_range r = frit_split(frit_node_height(task->node), 1, share);
    for (int64_t t = r.begin; t < r.end; t++) {
        const float *taps = task->x[1] + t * 2 * n_taps;
        float *y = task->y + t * width;
        memset(y, 0, (size_t)width * sizeof *y);
        for (int64_t j = 0; j < n_taps; j++) {
            if (taps[n_taps + j] == 0) continue;
            frit_dtype_get(dtype)->decode(task->w[0] + (uint64_t)taps[j] * row_bytes, row, width);
            for (int64_t i = 0; i < width; i++) y[i] += taps[n_taps + j] * row[i];
        }
    }
}

size_t frit_ref_embed_mix_workspace_bytes(const frit_node *node)
{
    return (size_t)frit_node_width(node) * sizeof(float);
}

void frit_ref_rope_angles(const frit_task *task, frit_share share)
{
    const frit_rope *rope = &task->node->rope;
    const int64_t head_dim = frit_node_width(task->node), n_pairs = rope->dim / 2, n_heads = task->node->shape[1];
    const bool adjacent = rope->style == FRIT_ROPE_INTERLEAVED;
    const frit_range r = frit_split(frit_node_height(task->node), 1, share);
    for (int64_t row = r.begin; row < r.end; row++) {
        const float *x = task->x[0] + row * head_dim, *turn = task->x[1] + row / n_heads * rope->dim;
        float *y = task->y + row * head_dim;
        memcpy(y, x, (size_t)head_dim * sizeof(float));   // elements that do not rotate
        for (int64_t i = 0; i < n_pairs; i++) {
            const double c = turn[i], s = turn[n_pairs + i];
            const int64_t a = rope->offset + (adjacent ? 2 * i : i);
            const int64_t b = rope->offset + (adjacent ? 2 * i + 1 : i + n_pairs);
            y[a] = (float)(x[a] * c - x[b] * s);
            y[b] = (float)(x[a] * s + x[b] * c);
        }
    }
}

// A row and head that attends to rows [begin, end).
typedef struct view {
    const frit_task *task;
    int64_t row, head, begin, end;
} view;

// Returns row `row` of a source's head that belongs to the query's head.
static const float *vector(const view *v, int source, int64_t row)
{
    const frit_node *x = v->task->node->src[source];
    return v->task->x[source] + (row * x->shape[1] + v->head * x->shape[1] / v->task->node->shape[1]) * x->shape[2];
}

static double score(const view *v, int64_t other)
{
    const float *segments = v->task->x[3];
    if (segments && segments[other] != segments[v->row]) return -INFINITY;
    const int64_t dim = v->task->node->src[0]->shape[2];
    return (double)v->task->node->factor * frit_ref_dot(vector(v, 0, v->row), vector(v, 1, other), dim);
}

static void attend(const view *v)
{
    const int64_t dim = v->task->node->shape[2];
    float *y = v->task->y + (v->row * v->task->node->shape[1] + v->head) * dim;
    double max = -INFINITY, total = 0;
    for (int64_t s = v->begin; s < v->end; s++) max = fmax(max, score(v, s));
    memset(y, 0, (size_t)dim * sizeof *y);
    for (int64_t s = v->begin; s < v->end; s++) total += exp(score(v, s) - max);
    for (int64_t s = v->begin; s < v->end; s++) {
        const double weight = exp(score(v, s) - max) / total;
        const float *value = vector(v, 2, s);
        for (int64_t i = 0; weight > 0 && i < dim; i++) y[i] += (float)(weight * value[i]);
    }
}

void frit_ref_attend_uncached(const frit_task *task, frit_share share)
{
    const frit_batch *batch = task->env->batch;
    const int64_t n_head = task->node->shape[1];
    for (int i = 0; i < batch->n_seqs; i++) {
        const frit_seq *seq = &batch->seqs[i];
        const frit_range r = frit_split(seq->n_rows * n_head, 1, share);
        for (int64_t k = r.begin; k < r.end; k++)
            attend(
                &(view){task, seq->first_row + k / n_head, k % n_head, seq->first_row, seq->first_row + seq->n_rows});
    }
}

void frit_ref_place_rows(const frit_task *task, frit_share share)
{
    const int64_t n = frit_node_width(task->node);
    const frit_range r = frit_split(frit_node_height(task->node), 1, share);
    for (int64_t t = r.begin; t < r.end; t++) {
        const float *soft = task->x[1] + t * (n + 1);
        memcpy(task->y + t * n, soft[0] != 0 ? soft + 1 : task->x[0] + t * n, (size_t)n * sizeof(float));
    }
}

void frit_ref_take_blocks(const frit_task *task, frit_share share)
{
    const int32_t *rows = frit_task_ids(task, 1);
    const int64_t n = frit_node_width(task->node), width = frit_node_width(task->node->src[0]);
    const frit_range r = frit_split(frit_node_height(task->node), 1, share);
    for (int64_t i = r.begin; i < r.end; i++)
        memcpy(task->y + i * n, task->x[0] + rows[i] * width, (size_t)n * sizeof(float));
}
