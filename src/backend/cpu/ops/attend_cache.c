// SPDX-License-Identifier: MIT
// Writing keys, values and index keys to the cache, and decoding them for attention.
#include "backend/cpu/ops/attend.h"
#include "backend/cpu/ops/fast.h"
#include "base/minmax.h"
#include "quant/hadamard.h"

#include <string.h>

// ------------------------------------------------------------------------------- reading

static void decode_elems(const frit_attend_item *item, const frit_cache_side *side, const uint8_t *x, float *y,
                         int64_t n)
{
    const frit_kernels *k = item->kernels;
    if (k->decode[side->dtype])
        k->decode[side->dtype](x, y, n);
    else
        frit_dtype_get(side->dtype)->decode(x, y, n);
}

void frit_attend_decode_pages(const frit_attend_item *item, const frit_cache_side *side, frit_range positions, float *y)
{
    for (int64_t p = frit_page_begin(positions.begin); p < positions.end; p += FRIT_PAGE_TOKENS) {
        decode_elems(item, side, frit_cache_at(side, item->pages, p, item->head), y, FRIT_PAGE_TOKENS * side->dim);
        y += FRIT_PAGE_TOKENS * side->dim;
    }
}

// Decodes rows of one page that are stored transposed.
static void decode_transposed(const frit_attend_item *item, const frit_cache_side *side, frit_range positions, float *y)
{
    const uint64_t step = FRIT_PAGE_TOKENS * side->row_bytes / (uint64_t)side->dim;
    const uint8_t *x = frit_cache_at(side, item->pages, positions.begin, item->head);
    const int64_t n = positions.end - positions.begin;
    for (int64_t d = 0; d < side->dim; d++, x += step) {
        float column[FRIT_PAGE_TOKENS];
        decode_elems(item, side, x, column, n);
        for (int64_t i = 0; i < n; i++) y[i * side->dim + d] = column[i];
    }
}

void frit_attend_decode_positions(const frit_attend_item *item, const frit_cache_side *side, frit_range positions,
                                  float *y)
{
    for (int64_t p = positions.begin, next; p < positions.end; p = next) {
        next = frit_min_i64(frit_page_begin(p) + FRIT_PAGE_TOKENS, positions.end);
        // Values that are a part of the keys are not contiguous.
        if (side->row_bytes != frit_dtype_row_bytes(side->dtype, side->dim)) next = p + 1;
        if (side->transposed)
            decode_transposed(item, side, (frit_range){p, next}, y);
        else
            decode_elems(item, side, frit_cache_at(side, item->pages, p, item->head), y, (next - p) * side->dim);
        y += (next - p) * side->dim;
    }
}

// ------------------------------------------------------------------------------- writing

static void store_head(const frit_task *task, const frit_cache_side *side, const int32_t *pages, int64_t p,
                       int64_t head, const float *x, float *mixed)
{
    const frit_kernels *k = task->env->kernels;
    uint8_t *to = side->transposed ? (uint8_t *)mixed : frit_cache_at(side, pages, p, head);
    if (side->hadamard > 1) {
        memcpy(mixed, x, (size_t)side->dim * sizeof(float));
        frit_hadamard(mixed, side->dim, side->hadamard);
        x = mixed;
    }
    if (k->encode[side->dtype])
        k->encode[side->dtype](x, to, side->dim);
    else
        frit_dtype_get(side->dtype)->encode(x, to, side->dim, NULL);
    if (side->transposed) frit_cache_write(&(frit_cache_row){side, pages, p, head}, to);
}

// Writes some heads of the keys or of the values of all rows.
static void write_heads(const frit_task *task, frit_share share)
{
    const frit_batch *batch = task->env->batch;
    const frit_cache_layer *layer = &task->env->cache->layers[task->node->layer];
    const frit_cache_side *side = task->keys ? &layer->k : &layer->v;
    const float *x = task->x[task->keys ? 0 : 1];
    const int64_t n_head = layer->spec.n_head_kv;
    const frit_range heads = frit_split(n_head, 1, share);
    for (int i_seq = 0; i_seq < batch->n_seqs; i_seq++) {
        const frit_seq *seq = &batch->seqs[i_seq];
        const int32_t *pages = frit_layer_pages(task, layer, seq);
        for (int64_t row = seq->first_row; row < seq->first_row + seq->n_rows; row++)
            for (int64_t h = heads.begin; h < heads.end; h++)
                store_head(task, side, pages, seq->n_past + row - seq->first_row, h, x + (row * n_head + h) * side->dim,
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

    for (int i_seq = 0; i_seq < batch->n_seqs; i_seq++) {
        const frit_seq *seq = &batch->seqs[i_seq];
        const int32_t *pages = frit_layer_pages(task, layer, seq);
        const int64_t first = seq->first_row * n_head, end = frit_min_i64(mine.end, first + seq->n_rows * n_head);
        for (int64_t i = frit_max_i64(mine.begin, first); i < end; i++) {
            const int64_t p = seq->n_past + i / n_head - seq->first_row, h = i % n_head;
            store_head(task, &layer->k, pages, p, h, task->x[0] + i * k_dim, mixed);
            if (task->x[1]) store_head(task, &layer->v, pages, p, h, task->x[1] + i * v_dim, mixed);
        }
    }
}

void frit_fast_index_write(const frit_task *task, frit_share share)
{
    const frit_batch *batch = task->env->batch;
    const frit_cache_layer *layer = &task->env->cache->layers[task->node->layer];
    const frit_cache_side *side = &layer->index;
    const frit_range mine = frit_split(batch->n_rows, 1, share);
    for (int i_seq = 0; i_seq < batch->n_seqs; i_seq++) {
        const frit_seq *seq = &batch->seqs[i_seq];
        const int32_t *pages = frit_layer_pages(task, layer, seq);
        const int64_t end = frit_min_i64(mine.end, seq->first_row + seq->n_rows);
        for (int64_t t = frit_max_i64(mine.begin, seq->first_row); t < end; t++)
            store_head(task, side, pages, seq->n_past + t - seq->first_row, 0, task->x[0] + t * side->dim,
                       frit_task_workspace(task, share));
    }
}
