// SPDX-License-Identifier: MIT
// Checks that all numbers of a tensor are finite, before a model is measured or converted.
#include "convert/convert.h"
#include "format/rows.h"

#include <float.h>
#include <stdlib.h>

enum { ROWS_AT_ONCE = 32 };   // packed codes are read in groups of this size

typedef struct checking {
    const frit_tensor *tensor;
    uint8_t *memory;   // [parts, part_bytes]: values, rows, scratch
    size_t part_bytes, values_bytes, rows_bytes;
    int64_t *first_bad;   // [parts]: element; -1: none
    float *bad;           // [parts]
} checking;

static size_t aligned(size_t n_bytes)
{
    return (n_bytes + 63) / 64 * 64;
}

static void check_part(void *ctx, int thread, int n_threads)
{
    const checking *c = ctx;
    const frit_dtype_info *type = frit_dtype_get(c->tensor->dtype);
    const int64_t n_rows = frit_tensor_n_rows(c->tensor), width = frit_tensor_width(c->tensor);
    const int64_t n_groups = (n_rows + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;
    const int64_t begin = n_groups * thread / n_threads * ROWS_AT_ONCE,
                  last = n_groups * (thread + 1) / n_threads * ROWS_AT_ONCE;
    const int64_t end = last < n_rows ? last : n_rows;
    uint8_t *memory = c->memory + (size_t)thread * c->part_bytes, *rows = memory + c->values_bytes;
    float *values = (float *)(void *)memory;
    c->first_bad[thread] = -1;
    for (int64_t i = begin, n; i < end && c->first_bad[thread] < 0; i += n) {
        n = end - i < ROWS_AT_ONCE ? end - i : ROWS_AT_ONCE;
        const uint8_t *at = frit_tensor_rows(c->tensor, i, n, rows, rows + c->rows_bytes);
        for (int64_t k = 0; k < n && c->first_bad[thread] < 0; k++, at += frit_tensor_row_bytes(c->tensor)) {
            type->decode(at, values, width);
            const int64_t column = frit_first_beyond(values, width, FLT_MAX);
            if (column == width) continue;
            c->first_bad[thread] = (i + k) * width + column;
            c->bad[thread] = values[column];
        }
    }
}

frit_status frit_convert_check_finite(const frit_tensor *tensor, frit_pool *pool)
{
    if (frit_tensor_n_elems(tensor) == 0) return FRIT_OK;
    const size_t n_parts = (size_t)frit_pool_size(pool);
    const int64_t width = frit_tensor_width(tensor);
    checking c = {.tensor = tensor, .values_bytes = aligned((size_t)width * sizeof(float))};
    c.rows_bytes = tensor->data ? 0 : aligned(ROWS_AT_ONCE * (size_t)frit_tensor_row_bytes(tensor));
    c.part_bytes = c.values_bytes + c.rows_bytes + aligned(frit_tensor_scratch_bytes(tensor));
    c.memory = malloc(n_parts * c.part_bytes);
    c.first_bad = calloc(n_parts, sizeof *c.first_bad);
    c.bad = calloc(n_parts, sizeof *c.bad);
    const bool has_memory = c.memory && c.first_bad && c.bad;
    if (has_memory) frit_pool_run(pool, check_part, &c);
    frit_status status =
        has_memory ? frit_tensor_check(tensor) : frit_fail_memory(n_parts * c.part_bytes, tensor->name);
    for (size_t i = 0; i < n_parts && status == FRIT_OK; i++)
        if (c.first_bad[i] >= 0)
            status =
                frit_tensor_fail_number(tensor->name, c.first_bad[i], width, c.bad[i], frit_dtype_get(tensor->dtype));
    free(c.memory);
    free(c.first_bad);
    free(c.bad);
    return status;
}
