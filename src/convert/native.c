// SPDX-License-Identifier: MIT
// Finds matrices that were trained for four bits: in such a type already, or with floats on its grid. Encoding them
// again in a type that is not smaller would only lose precision.
#include "convert/convert.h"
#include "format/rows.h"

#include <stdlib.h>

enum { SAMPLED_ROWS = 16, FEWEST_VALUES = 6 };

static const frit_dtype natives[] = {FRIT_DTYPE_MXFP4, FRIT_DTYPE_NVFP4, FRIT_DTYPE_Q4_0};

// True if there are enough different values: three or fewer lie on many grids.
static bool has_values(const float *x, int n)
{
    int n_values = 0;
    for (int i = 0; i < n; i++) {
        bool is_new = true;
        for (int k = 0; k < i; k++) is_new &= x[k] != x[i];
        n_values += is_new;
    }
    return n_values >= FEWEST_VALUES;
}

typedef struct row_buffers {
    float *values, *again;
    uint8_t *row, *blocks, *scratch;
} row_buffers;

// True if encoding the row loses nothing that its own type can represent.
static bool is_on_grid(const row_buffers *r, const frit_tensor *tensor, const frit_dtype_info *native)
{
    const int64_t width = frit_tensor_width(tensor);
    const frit_dtype_info *type = frit_dtype_get(tensor->dtype);
    native->encode(r->values, r->blocks, width, NULL);
    native->decode(r->blocks, r->again, width);
    type->encode(r->again, r->blocks, width, NULL);
    type->decode(r->blocks, r->again, width);
    for (int64_t i = 0; i < width; i++)
        if (r->again[i] != r->values[i]) return false;
    return true;
}

static frit_dtype find_grid(const frit_tensor *tensor, const row_buffers *r)
{
    const int64_t n_rows = frit_tensor_n_rows(tensor), width = frit_tensor_width(tensor);
    const int64_t n = n_rows < SAMPLED_ROWS ? n_rows : SAMPLED_ROWS;
    bool fits[FRIT_COUNT(natives)], has = false;
    for (size_t k = 0; k < FRIT_COUNT(natives); k++) fits[k] = width % frit_dtype_get(natives[k])->block_elems == 0;
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *row = frit_tensor_rows(tensor, i * n_rows / n, 1, r->row, r->scratch);
        bool any = false;
        frit_dtype_get(tensor->dtype)->decode(row, r->values, width);
        has |= has_values(r->values, width < 32 ? (int)width : 32);
        for (size_t k = 0; k < FRIT_COUNT(natives); k++) {
            fits[k] = fits[k] && is_on_grid(r, tensor, frit_dtype_get(natives[k]));
            any |= fits[k];
        }
        if (!any) return FRIT_DTYPE_COUNT;
    }
    for (size_t k = 0; k < FRIT_COUNT(natives) && has; k++)
        if (fits[k]) return natives[k];
    return FRIT_DTYPE_COUNT;
}

frit_status frit_convert_native(const frit_tensor *tensor, frit_dtype *native)
{
    const size_t width = (size_t)frit_tensor_width(tensor);
    *native = FRIT_DTYPE_COUNT;
    for (size_t k = 0; k < FRIT_COUNT(natives); k++)
        if (tensor->dtype == natives[k]) *native = natives[k];
    const bool is_float = frit_dtype_get(tensor->dtype)->block_elems == 1;
    const bool has_rows = tensor->data || tensor->recipe;   // a header has no rows
    if (!is_float || !has_rows || frit_tensor_n_elems(tensor) == 0) return FRIT_OK;
    const row_buffers r = {.values = malloc(width * sizeof(float)),
                           .again = malloc(width * sizeof(float)),
                           .row = malloc((size_t)frit_tensor_row_bytes(tensor)),
                           .blocks = malloc(width * sizeof(float) + 64),
                           .scratch = malloc(frit_tensor_scratch_bytes(tensor) + 16)};
    const bool has_room = r.values && r.again && r.row && r.blocks && r.scratch;
    if (has_room) *native = find_grid(tensor, &r);
    free(r.values);
    free(r.again);
    free(r.row);
    free(r.blocks);
    free(r.scratch);
    return has_room ? FRIT_OK : frit_fail_memory(4 * width * sizeof(float), tensor->name);
}
