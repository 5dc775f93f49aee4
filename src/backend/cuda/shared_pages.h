// SPDX-License-Identifier: MIT
// backend/cuda/shared_pages.h: sequences of a step whose page tables begin with the same pages, as those of requests
// with one system prompt do. Attention reads these pages once for all rows of a tile (ops/attend.h).
//
// Only sequences of one row take part, and only pages before the row's own: the step writes to none of them.
#pragma once
#include "backend/cuda/kernels/args.h"
#include "graph/batch.h"

// Fewer rows or pages than these gain nothing: a launch more takes longer than the reads that it saves.
enum { FRIT_CUDA_SHARED_LEAST_ROWS = 4, FRIT_CUDA_SHARED_LEAST_PAGES = 16, FRIT_CUDA_SHARED_MOST_ROWS = 256 };

// Groups the first n_rows sequences of the batch by the pages of one group of layers. n_pages [n_rows] receives the
// number of pages that a row shares, or 0. Returns the number of tiles, of which there are at most
// n_rows / FRIT_CUDA_SHARED_LEAST_ROWS + 1; tiles may be NULL, and is not written then.
int32_t frit_cuda_find_shared(const frit_batch *batch, int32_t n_rows, int32_t group, int32_t *n_pages,
                              frit_shared_tile *tiles);
