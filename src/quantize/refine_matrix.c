// SPDX-License-Identifier: MIT
// Refining a tensor: its matrices are rounded again, and replaced if that reduces their error on held-out windows.
#include "quantize/refine_job.h"
#include "base/time.h"
#include "backend/cpu/pack/memory.h"
#include "format/rows.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5 };
static const float alpha = 0.5f;   // part of the error of earlier layers that a layer compensates

typedef struct matrix {
    const frit_tensor *from, *to;
    int64_t index, n_rows, width;   // of the tensor's matrices
    float *weights;
    uint8_t *blocks;
} matrix;

static uint64_t weights_bytes(const matrix *m)
{
    return (uint64_t)(m->n_rows * m->width) * sizeof *m->weights;
}

static uint8_t *blocks_of(const frit_refining *r, const matrix *m)
{
    const size_t offset = (size_t)((const char *)m->to->data - r->bytes);
    return (uint8_t *)r->bytes + offset + (size_t)(m->index * m->n_rows) * frit_dtype_row_bytes(m->to->dtype, m->width);
}

typedef struct weights_reading {
    const matrix *m;
    _Atomic bool failed;
} weights_reading;

static void read_weights_part(void *ctx, int thread, int n_threads)
{
    weights_reading *all = ctx;
    const matrix *m = all->m;
    uint8_t *row = malloc((size_t)frit_tensor_row_bytes(m->from)),
            *scratch = malloc(frit_tensor_scratch_bytes(m->from) + 1);
    if (!row || !scratch) all->failed = true;
    for (int64_t i = m->n_rows * thread / n_threads; i < m->n_rows * (thread + 1) / n_threads && !all->failed; i++) {
        const uint8_t *at = frit_tensor_rows(m->from, m->index * m->n_rows + i, 1, row, scratch);
        frit_dtype_get(m->from->dtype)->decode(at, m->weights + i * m->width, m->width);
    }
    free(row);
    free(scratch);
}

static frit_status read_weights(const frit_refining *r, const matrix *m)
{
    weights_reading all = {.m = m};
    frit_pool_run(r->pool, read_weights_part, &all);
    return all.failed ? frit_fail_memory((size_t)frit_tensor_row_bytes(m->from), m->from->name) : FRIT_OK;
}

static void drop_sums(void *ctx, const float *numbers)
{
    const frit_refining *r = ctx;
    frit_covariance_free_sums(r->sums, numbers);
    frit_covariance_free_sums(r->held, numbers);
}

static frit_status prepare_input(frit_refining *r, const frit_covariance_entry *sums, int64_t index)
{
    const frit_covariance_entry *held = frit_covariance_find(r->held, sums->name);
    const int64_t n = sums->width * sums->width;
    const float *at = sums->sums + index * n;
    if (at == r->input_of) return FRIT_OK;
    frit_refine_input_free(&r->input);
    r->input_of = NULL;
    r->input = (frit_refine_input){.dense = r->sums->dense,
                                   .width = sums->width,
                                   .sums = at,
                                   .cross = sums->cross,
                                   .held = held ? held->sums + index * n : NULL,
                                   .held_cross = held ? held->cross : NULL,
                                   .alpha = alpha,
                                   .rounds = ROUNDS,
                                   .drop = sums->n_each > 1 ? NULL : drop_sums,   // experts of the stack follow
                                   .drop_ctx = r};
    const uint64_t start_ns = frit_time_ns();
    FRIT_TRY(frit_refine_factor(&r->input, r->pool));
    frit_refine_count_time(&r->times.factors, start_ns);
    r->input_of = at;
    return FRIT_OK;
}

// Rounds a matrix again. Replaces its blocks if the error on held-out windows falls.
static frit_status refine_matrix(frit_refining *r, matrix *m)
{
    frit_refine_rows rows = {
        .type = m->to->dtype, .weights = m->weights, .initial = blocks_of(r, m), .blocks = m->blocks, .n = m->n_rows};
    const uint64_t start_ns = frit_time_ns();
    FRIT_TRY(read_weights(r, m));
    FRIT_TRY(frit_refine_run(&r->input, &rows, r->pool));
    frit_refine_count_time(&r->times.rounding, start_ns);
    if (rows.change < 0) {
        memcpy(blocks_of(r, m), m->blocks, (size_t)m->n_rows * frit_dtype_row_bytes(m->to->dtype, m->width));
        r->n_refined++;
    } else
        r->n_worse++;
    return FRIT_OK;
}

static frit_status refine_matrices(frit_refining *r, matrix *m, const frit_covariance_entry *sums)
{
    const int64_t n_matrices = m->to->n_dims > 2 ? frit_tensor_n_rows(m->to) / m->n_rows : 1;
    for (m->index = 0; m->index < n_matrices; m->index++) {
        const int64_t each = sums->n_each > 1 ? m->index : 0;
        r->n_matrices++;
        if (sums->counts[each] < FRIT_REFINE_TOKENS_PER_COLUMN * m->width) {
            r->n_few++;
            continue;
        }
        FRIT_TRY(prepare_input(r, sums, each));
        FRIT_TRY(refine_matrix(r, m));
    }
    return FRIT_OK;
}

bool frit_refine_can_round(const frit_refining *r, const char *name)
{
    const frit_tensor *to = frit_checkpoint_find(r->quantized->ckpt, name);
    const frit_tensor *from = frit_checkpoint_find(r->source->ckpt, name);
    return to && from && to->n_dims > 1 && frit_block_format_get(to->dtype) && from->dtype != to->dtype;
}

frit_status frit_refine_tensor(frit_refining *r, const char *name)
{
    const frit_covariance_entry *sums = frit_covariance_find(r->sums, name);
    const frit_tensor *to = frit_checkpoint_find(r->quantized->ckpt, name);
    matrix m = {.from = frit_checkpoint_find(r->source->ckpt, name), .to = to, .width = frit_tensor_width(to)};
    m.n_rows = to->shape[to->n_dims - 2];
    if (frit_tensor_width(m.from) != m.width || frit_tensor_n_rows(m.from) != frit_tensor_n_rows(to))
        return frit_fail_file(FRIT_E_INVALID, "%s: '%s' has another shape than in the model", r->path, to->name);
    if (!sums || sums->width != m.width) return FRIT_OK;
    m.weights = frit_cpu_memory_new(weights_bytes(&m));
    m.blocks = malloc((size_t)m.n_rows * frit_dtype_row_bytes(to->dtype, m.width));
    const frit_status status =
        m.weights && m.blocks ? refine_matrices(r, &m, sums) : frit_fail_memory((size_t)weights_bytes(&m), to->name);
    frit_cpu_memory_free(m.weights, weights_bytes(&m));
    free(m.blocks);
    return status;
}
