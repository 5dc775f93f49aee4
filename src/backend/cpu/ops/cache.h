// SPDX-License-Identifier: MIT
// backend/cpu/ops/cache.h: keys and values of single positions in the pages of the cache (graph/batch.h).
#pragma once
#include "backend/cpu/task.h"

// The page table of a sequence for the layer's group.
static inline const int32_t *frit_layer_pages(const frit_task *task, const frit_cache_layer *layer, const frit_seq *seq)
{
    return frit_batch_pages(task->env->batch, layer->group, seq);
}

// Address of the key or value of one head at position p. If the side is transposed, element d is d * FRIT_PAGE_TOKENS
// elements after it.
static inline uint8_t *frit_cache_at(const frit_cache_side *side, const int32_t *pages, int64_t p, int64_t head)
{
    assert(pages[p / FRIT_PAGE_TOKENS] >= 0);
    const uint64_t page = (uint64_t)pages[p / FRIT_PAGE_TOKENS], at = (uint64_t)(p % FRIT_PAGE_TOKENS);
    const uint64_t step = side->transposed ? side->row_bytes / (uint64_t)side->dim : side->row_bytes;
    return side->pages + page * side->page_bytes + (uint64_t)head * FRIT_PAGE_TOKENS * side->row_bytes + at * step;
}

// The key or value of one position and head.
typedef struct frit_cache_row {
    const frit_cache_side *side;
    const int32_t *pages;
    int64_t position, head;
} frit_cache_row;

void frit_cache_read(const frit_cache_row *row, float *y);   // y [dim], decoded by the type's codec
// Stores an encoded row.
void frit_cache_write(const frit_cache_row *row, const uint8_t *encoded);
// Sets *out to the cache with addresses for all layers. If the layers have none, *layers is a malloc'd copy with
// addresses.
frit_status frit_cpu_cache_bind(frit_cache *out, frit_cache_layer **layers, const frit_cache *cache);
