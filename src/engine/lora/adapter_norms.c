// SPDX-License-Identifier: MIT
// Magnitudes of an adapter (DoRA): row i of w + scale * b a gets the length magnitude[i]. That multiplies the row's
// result by a number, so the model's matrix does not change. The bias must not grow, so a shift corrects it:
//
//     gain[i] = magnitude[i] / |w[i] + scale * b[i] a| - 1,  shift[i] = -gain[i] * bias[i]
//
// b is multiplied by gain + 1. All rows are computed when the adapter is opened.
#include "base/thread/thread.h"
#include "engine/lora/adapter.h"
#include "format/rows.h"

#include <math.h>
#include <stdlib.h>

typedef struct lengths {
    const frit_tensor *w;
    const float *a, *b;   // [rank, n_in] and [n_out, rank], in the adapter's order of rows
    const frit_row_order *order;
    int64_t rank;
    float scale;
    uint8_t *memory;   // [parts, part_bytes]: a decoded row, the row in the file's type, scratch
    size_t part_bytes, row_bytes, values_bytes;
    double *out;   // [n_out], in the model's order
} lengths;

static size_t aligned(size_t n_bytes)
{
    return (n_bytes + 63) / 64 * 64;
}

static void measure_lengths_part(void *ctx, int thread, int n_threads)
{
    const lengths *l = ctx;
    const int64_t n_in = frit_tensor_width(l->w), n_out = frit_tensor_n_rows(l->w);
    uint8_t *memory = l->memory + (size_t)thread * l->part_bytes, *row = memory + l->values_bytes;
    float *values = (float *)(void *)memory;
    for (int64_t o = n_out * thread / n_threads; o < n_out * (thread + 1) / n_threads; o++) {
        const float *b = l->b + frit_row_order_source(l->order, o) * l->rank;
        double sum = 0;
        frit_dtype_get(l->w->dtype)->decode(frit_tensor_rows(l->w, o, 1, row, row + l->row_bytes), values, n_in);
        for (int64_t j = 0; j < l->rank; j++) {
            const float factor = l->scale * b[j], *a = l->a + j * n_in;
            for (int64_t i = 0; i < n_in; i++) values[i] += factor * a[i];
        }
        for (int64_t i = 0; i < n_in; i++) sum += (double)values[i] * values[i];
        l->out[o] = sqrt(sum);
    }
}

static frit_status measure_lengths(lengths *l)
{
    frit_pool *pool;
    FRIT_TRY(frit_pool_new(&pool, 0));
    const size_t n_parts = (size_t)frit_pool_size(pool);
    l->values_bytes = aligned((size_t)frit_tensor_width(l->w) * sizeof(float));
    l->row_bytes = aligned((size_t)frit_tensor_row_bytes(l->w));
    l->part_bytes = l->values_bytes + l->row_bytes + aligned(frit_tensor_scratch_bytes(l->w));
    l->memory = malloc(n_parts * l->part_bytes);
    const frit_status status = l->memory ? FRIT_OK : frit_fail_memory(n_parts * l->part_bytes, l->w->name);
    if (status == FRIT_OK) frit_pool_run(pool, measure_lengths_part, l);
    free(l->memory);
    frit_pool_free(pool);
    return status;
}

// Decodes a tensor, malloc'd.
static frit_status decode_tensor(const frit_tensor *tensor, float **out)
{
    const size_t n = (size_t)frit_tensor_n_elems(tensor);
    *out = malloc(n * sizeof **out);
    if (!*out) return frit_fail_memory(n * sizeof **out, tensor->name);
    return frit_tensor_decode_rows(tensor, 0, frit_tensor_n_rows(tensor), *out);
}

static frit_status find_gains(const frit_adapter_pair *pair, const frit_row_order *order, const double *lengths_of,
                              float *gain)
{
    float *magnitudes;
    frit_status status = decode_tensor(&pair->magnitudes, &magnitudes);
    const int64_t n_out = pair->b.shape[0];
    for (int64_t o = 0; o < n_out && status == FRIT_OK; o++) {
        gain[o] = (float)((double)magnitudes[frit_row_order_source(order, o)] / lengths_of[o] - 1);
        if (!isfinite(gain[o]))
            status = frit_fail(FRIT_E_FORMAT, "tensor '%s': row %lld of '%s' has the length %g, expected one above 0",
                               pair->magnitudes.name, (long long)o, pair->name, lengths_of[o]);
    }
    free(magnitudes);
    return status;
}

frit_status frit_adapter_gains(const frit_adapter_pair *pair, const frit_tensor *w, const frit_row_order *order,
                               float *gain)
{
    float *a = NULL, *b = NULL;
    const int64_t n_out = pair->b.shape[0];
    if (frit_tensor_n_elems(&pair->magnitudes) != n_out)
        return frit_fail(FRIT_E_INVALID, "tensor '%s' has %lld magnitudes, expected %lld", pair->magnitudes.name,
                         (long long)frit_tensor_n_elems(&pair->magnitudes), (long long)n_out);
    double *out = calloc((size_t)n_out, sizeof *out);
    frit_status status = out ? FRIT_OK : frit_fail_memory((size_t)n_out * sizeof *out, pair->name);
    if (status == FRIT_OK) status = decode_tensor(&pair->a, &a);
    if (status == FRIT_OK) status = decode_tensor(&pair->b, &b);
    lengths l = {.w = w, .a = a, .b = b, .order = order, .rank = pair->b.shape[1], .scale = pair->scale, .out = out};
    if (status == FRIT_OK) status = measure_lengths(&l);
    if (status == FRIT_OK) status = find_gains(pair, order, out, gain);
    free(a);
    free(b);
    free(out);
    return status;
}
