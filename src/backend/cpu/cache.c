// SPDX-License-Identifier: MIT
// Rows of the cache, in pages of either layout.
#include "backend/cpu/cache.h"

#include <string.h>

void frit_cache_read(const frit_cache_row *row, float *y)
{
    const frit_cache_side *side = row->side;
    const frit_decode_fn decode = frit_dtype_get(side->dtype)->decode;
    const uint8_t *x = frit_cache_at(side, row->pages, row->position, row->head);
    if (!side->transposed) {
        decode(x, y, side->dim);
        return;
    }
    const size_t elem_bytes = (size_t)side->row_bytes / (size_t)side->dim;
    for (int64_t d = 0; d < side->dim; d++, x += FRIT_PAGE_TOKENS * elem_bytes) decode(x, y + d, 1);
}

void frit_cache_write(const frit_cache_row *row, const uint8_t *encoded)
{
    const frit_cache_side *side = row->side;
    uint8_t *y = frit_cache_at(side, row->pages, row->position, row->head);
    if (!side->transposed) {
        memcpy(y, encoded, (size_t)side->row_bytes);
        return;
    }
    const size_t elem_bytes = (size_t)side->row_bytes / (size_t)side->dim, step = FRIT_PAGE_TOKENS * elem_bytes;
    if (elem_bytes == 2)
        for (int64_t d = 0; d < side->dim; d++) memcpy(y + (size_t)d * step, encoded + 2 * d, 2);
    else
        for (int64_t d = 0; d < side->dim; d++)
            memcpy(y + (size_t)d * step, encoded + (size_t)d * elem_bytes, elem_bytes);
}
