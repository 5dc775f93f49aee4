// SPDX-License-Identifier: MIT
// backend/cuda/ops/attend.h: attention with queries in f16. Steps of one row a sequence run attend.cu, which divides
// the pages of each row among blocks; longer parts of a prompt run attend_rows.cu, 64 rows of a sequence at a time. A
// deterministic device has one kernel for all rows, which divides the pages of a row by its position alone.
//
// Pages that several sequences begin with are read once (cascade attention): attend_rows.cu multiplies them by the
// queries of up to 64 rows and writes parts, which attend.cu joins with the parts of a row's own pages.
#pragma once
#include "backend/cuda/ops/product.h"
#include "backend/cuda/step.h"

enum {
    FRIT_CUDA_ATTEND_VARIANTS = 5,
    FRIT_CUDA_ATTEND_ROWS_FROM = 17,   // rows of a step from which attend_rows.cu may run
    // Most rows of a launch, and parts of a row, of a deterministic device.
    FRIT_CUDA_ATTEND_ONLY_ROWS = 64,
    FRIT_CUDA_ATTEND_ONLY_PARTS = 8,
};

typedef struct frit_cuda_attend_variant {
    frit_cuda_kernel *kernel;
    frit_cuda_kernel *far;   // copies pages ahead, for long contexts; NULL: not on this GPU
    int rows, n_splits, n_far_splits;
    int far_from;   // entries of page tables from which `far` runs
} frit_cuda_attend_variant;

// Operands of the launch: 0 queries, 1 partial results, 2 counters of arrived parts, 3 sinks, 4 counters of rows that
// share pages.
typedef struct frit_cuda_attend_fast {
    frit_cuda_attend_variant variants[FRIT_CUDA_ATTEND_VARIANTS];   // ascending rows
    int n_variants;
    int most_rows;            // of a launch of variants[0], which is the only variant; 0: any number
    frit_cuda_kernel *rows;   // attend_rows.cu; NULL: no step of the plan is that long
    // attend_rows.cu for pages that sequences share, and attend.cu for the other pages of their rows; NULL: the layer's
    // pages are read for each row.
    frit_cuda_kernel *shared, *beside;
    uint64_t keys, values;
} frit_cuda_attend_fast;

// True if there are kernels for the node's shape and cache.
bool frit_cuda_can_attend(const frit_exec *exec, const frit_node *attend);
// Bytes of work memory in plans of n_rows rows.
uint64_t frit_cuda_attend_work(const frit_exec *exec, const frit_cuda_heads *heads, int window, int64_t n_rows);
frit_status frit_cuda_lower_attend(frit_exec *exec, const frit_node *attend);
