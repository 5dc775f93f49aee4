// SPDX-License-Identifier: MIT
// Grouping sequences by their first pages.
#include "backend/cuda/shared_pages.h"

#include <string.h>

enum { MOST = FRIT_CUDA_SHARED_MOST_ROWS };

// Whole pages before the row of sequence i.
static int32_t n_whole(const frit_batch *batch, int32_t i)
{
    return batch->seqs[i].n_past / 32;
}

static const int32_t *pages_of(const frit_batch *batch, int32_t group, int32_t i)
{
    return batch->pages + ((size_t)group * (size_t)batch->n_seqs + (size_t)i) * (size_t)batch->page_stride;
}

static int32_t n_common(const frit_batch *batch, int32_t group, int32_t i, int32_t k)
{
    const int32_t *a = pages_of(batch, group, i), *b = pages_of(batch, group, k);
    const int32_t most = n_whole(batch, i) < n_whole(batch, k) ? n_whole(batch, i) : n_whole(batch, k);
    int32_t n = 0;
    while (n < most && a[n] == b[n] && a[n] >= 0) n++;
    return n;
}

// The number of pages for which most reads are saved, of sequences that share common[k] pages with the first one.
static int32_t choose_pages(const int32_t *common, int32_t n)
{
    int64_t best = 0;
    int32_t n_pages = 0;
    for (int32_t k = 0; k < n; k++) {
        int32_t n_rows = 1;
        if (common[k] < FRIT_CUDA_SHARED_LEAST_PAGES || common[k] == n_pages) continue;
        for (int32_t j = 0; j < n; j++) n_rows += common[j] >= common[k];
        const int64_t saved = (int64_t)common[k] * (n_rows - 1);
        if (n_rows < FRIT_CUDA_SHARED_LEAST_ROWS || saved <= best) continue;
        best = saved;
        n_pages = common[k];
    }
    return n_pages;
}

// Adds a row to the last tile, or to a new one if that is full or of another group.
static int32_t add_row(frit_shared_tile *tiles, int32_t n_tiles, bool is_first, int32_t row, int32_t n_pages)
{
    if (!tiles) return n_tiles;
    if (is_first) tiles[n_tiles - 1] = (frit_shared_tile){.seq = row, .n_pages = n_pages};
    frit_shared_tile *tile = &tiles[n_tiles - 1];
    tile->rows[tile->n_rows++] = row;
    return n_tiles;
}

int32_t frit_cuda_find_shared(const frit_batch *batch, int32_t n_rows, int32_t group, int32_t *n_pages,
                              frit_shared_tile *tiles)
{
    int32_t n_tiles = 0, common[MOST], others[MOST];
    memset(n_pages, 0, (size_t)n_rows * sizeof *n_pages);
    if (n_rows > MOST) return 0;
    for (int32_t i = 0; i + FRIT_CUDA_SHARED_LEAST_ROWS <= n_rows; i++) {
        int32_t n = 0, n_members = 1;
        if (n_pages[i] > 0 || n_whole(batch, i) < FRIT_CUDA_SHARED_LEAST_PAGES) continue;
        for (int32_t k = i + 1; k < n_rows; k++) {
            if (n_pages[k] > 0) continue;
            others[n] = k;
            common[n] = n_common(batch, group, i, k);
            n += common[n] >= FRIT_CUDA_SHARED_LEAST_PAGES;
        }
        const int32_t shared = choose_pages(common, n);
        if (shared == 0) continue;
        n_pages[i] = shared;
        n_tiles = add_row(tiles, n_tiles + 1, true, i, shared);
        for (int32_t k = 0; k < n; k++) {
            if (common[k] < shared) continue;
            n_pages[others[k]] = shared;
            const bool is_full = n_members++ % FRIT_GPU_SHARED_ROWS == 0;
            n_tiles = add_row(tiles, n_tiles + is_full, is_full, others[k], shared);
        }
    }
    return n_tiles;
}
