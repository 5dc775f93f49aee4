// SPDX-License-Identifier: MIT
// Reading and writing rows of the cache, in transposed pages and others.
#include "backend/cpu/ops/cache.h"

#include "backend/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

frit_status frit_cpu_cache_bind(frit_cache *out, frit_cache_layer **layers, const frit_cache *cache)
{
    *out = *cache;
    *layers = NULL;
    if (!cache->memory) return FRIT_OK;
    const size_t n = (size_t)cache->n_layers;
    uint8_t *memory = ((const frit_cpu_memory *)cache->memory)->bytes;
    frit_cache_layer *bound = calloc(n + 1, sizeof *bound);
    if (!bound) return frit_fail_memory(n * sizeof *bound, "the layers of a cache");
    memcpy(bound, cache->layers, n * sizeof *bound);
    for (size_t i = 0; i < n; i++) {
        frit_cache_side *const sides[] = {&bound[i].k, &bound[i].v, &bound[i].index};
        for (size_t k = 0; k < FRIT_COUNT(sides); k++) sides[k]->pages = memory + sides[k]->offset;
        bound[i].states = (float *)(void *)(memory + bound[i].states_offset);
    }
    out->layers = *layers = bound;
    return FRIT_OK;
}

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
