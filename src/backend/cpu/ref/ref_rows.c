// SPDX-License-Identifier: MIT
// Reference kernels that move rows: embed, take_rows, kv_write; and the leaves, which compute nothing.
#include "backend/cpu/ops/cache.h"
#include "backend/cpu/task.h"
#include "quant/hadamard.h"

#include <string.h>

void frit_ref_input(const frit_task *task, frit_share share)
{
    (void)task, (void)share;
}

void frit_ref_weight(const frit_task *task, frit_share share)
{
    (void)task, (void)share;
}

// Plans make it an alias of its source. This copies for a node that runs by itself.
void frit_ref_reshape(const frit_task *task, frit_share share)
{
    frit_range r = frit_split(frit_node_elems(task->node), 1, share);
    if (task->y != task->x[0])
        memcpy(task->y + r.begin, task->x[0] + r.begin, (size_t)(r.end - r.begin) * sizeof(float));
}

void frit_ref_embed(const frit_task *task, frit_share share)
{
    const frit_dtype dtype = task->node->src[0]->tensor->dtype;
    const int64_t width = frit_node_width(task->node);
    const uint64_t row_bytes = frit_dtype_row_bytes(dtype, width);
    const int32_t *ids = frit_task_ids(task, 1);

    frit_range r = frit_split(frit_node_height(task->node), 1, share);
    for (int64_t t = r.begin; t < r.end; t++)
        frit_dtype_get(dtype)->decode(task->w[0] + (uint64_t)ids[t] * row_bytes, task->y + t * width, width);
}

void frit_ref_take_rows(const frit_task *task, frit_share share)
{
    const int32_t *rows = frit_task_ids(task, 1);
    const int64_t n_rows = task->node->shape[0];
    if (n_rows == 0) return;
    const int64_t n = frit_node_elems(task->node) / n_rows;

    frit_range r = frit_split(n_rows, 1, share);
    for (int64_t i = r.begin; i < r.end; i++)
        memcpy(task->y + i * n, task->x[0] + rows[i] * n, (size_t)n * sizeof(float));
}

static void store_row(const frit_cache_side *side, const int32_t *pages, int64_t p, int64_t head, const float *from,
                      float *mixed)
{
    memcpy(mixed, from, (size_t)side->dim * sizeof(float));
    frit_hadamard(mixed, side->dim, side->hadamard);
    if (!side->transposed) {
        frit_dtype_get(side->dtype)->encode(mixed, frit_cache_at(side, pages, p, head), side->dim, NULL);
        return;
    }
    // Types without blocks are at most as large as f32, so the row is encoded in place.
    frit_dtype_get(side->dtype)->encode(mixed, (uint8_t *)mixed, side->dim, NULL);
    frit_cache_write(&(frit_cache_row){side, pages, p, head}, (const uint8_t *)mixed);
}

void frit_ref_kv_write(const frit_task *task, frit_share share)
{
    const frit_batch *batch = task->env->batch;
    const frit_cache_layer *layer = &task->env->cache->layers[task->node->layer];
    const int64_t n_head = layer->spec.n_head_kv;
    float *mixed = frit_task_workspace(task, share);

    for (int i_seq = 0; i_seq < batch->n_seqs; i_seq++) {
        const frit_seq *seq = &batch->seqs[i_seq];
        const int32_t *pages = frit_layer_pages(task, layer, seq);
        frit_range r = frit_split(seq->n_rows, 1, share);
        for (int64_t i = r.begin; i < r.end; i++) {
            const int64_t t = seq->first_row + i, p = seq->n_past + i;
            for (int64_t h = 0; h < n_head; h++) {
                store_row(&layer->k, pages, p, h, task->x[0] + (t * n_head + h) * layer->k.dim, mixed);
                if (task->x[1]) store_row(&layer->v, pages, p, h, task->x[1] + (t * n_head + h) * layer->v.dim, mixed);
            }
        }
    }
}

void frit_ref_index_write(const frit_task *task, frit_share share)
{
    const frit_batch *batch = task->env->batch;
    const frit_cache_layer *layer = &task->env->cache->layers[task->node->layer];
    const frit_cache_side *side = &layer->index;
    float *mixed = frit_task_workspace(task, share);
    for (int i_seq = 0; i_seq < batch->n_seqs; i_seq++) {
        const frit_seq *seq = &batch->seqs[i_seq];
        const int32_t *pages = frit_layer_pages(task, layer, seq);
        frit_range r = frit_split(seq->n_rows, 1, share);
        for (int64_t i = r.begin; i < r.end; i++)
            store_row(side, pages, seq->n_past + i, 0, task->x[0] + (seq->first_row + i) * side->dim, mixed);
    }
}

void frit_ref_slice(const frit_task *task, frit_share share)
{
    const int64_t n = frit_node_width(task->node), n_x = frit_node_width(task->node->src[0]);
    frit_range r = frit_split(frit_node_height(task->node), 1, share);
    for (int64_t t = r.begin; t < r.end; t++)
        memcpy(task->y + t * n, task->x[0] + t * n_x + task->node->begin, (size_t)n * sizeof(float));
}

void frit_ref_concat(const frit_task *task, frit_share share)
{
    const frit_node *a = task->node->src[0], *b = task->node->src[1];
    const int64_t n_a = frit_node_width(a), n_b = frit_node_width(b), height = frit_node_height(a);
    if (height == 0) return;
    const int64_t repeat = height / frit_node_height(b);   // rows of a that share a row of b
    frit_range r = frit_split(height, 1, share);
    for (int64_t t = r.begin; t < r.end; t++) {
        float *y = task->y + t * (n_a + n_b);
        memcpy(y, task->x[0] + t * n_a, (size_t)n_a * sizeof(float));
        memcpy(y + n_a, task->x[1] + t / repeat * n_b, (size_t)n_b * sizeof(float));
    }
}
