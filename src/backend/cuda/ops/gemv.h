// SPDX-License-Identifier: MIT
// backend/cuda/ops/gemv.h: products of up to 16 rows at a time, in integers, with what precedes and follows them in
// one kernel (product.h). A launch has one kernel for each power of two of rows.
#pragma once
#include "backend/cuda/step.h"

struct frit_cuda_products;
struct frit_cuda_launch;

enum { FRIT_CUDA_GEMV_VARIANTS = 5 };   // 1, 2, 4, 8 and 16 rows

typedef struct frit_cuda_gemv_variant {
    frit_cuda_kernel *kernel;
    int rows;
} frit_cuda_gemv_variant;

// Operands of the launch: 0 rows, 1 tiles, 2 norm, 3 residual, 4 tiles of the second segment, 5 the rope table
// (FRIT_GPU_QKV).
typedef struct frit_cuda_gemv {
    frit_cuda_gemv_variant variants[FRIT_CUDA_GEMV_VARIANTS];   // ascending rows
    int n_variants;
    bool takes_all_rows;      // one launch takes any number of rows
    int k, n;                 // columns of the matrices; numbers of a row of results
    int rotated, row_bytes;   // FRIT_GPU_QKV: rotated dimensions of a head; bytes of a row of queries
    float epsilon, query_scale;
    uint64_t keys, values;   // FRIT_GPU_QKV: this layer's part of page 0
    uint64_t arrived;        // counters of the blocks that share a row tile
} frit_cuda_gemv;

// FRIT_E_UNSUPPORTED: no kernel takes even one row.
frit_status frit_cuda_lower_gemv(frit_exec *exec, const struct frit_cuda_products *products, int64_t max_rows,
                                 struct frit_cuda_launch *launch);
// True if there is a kernel for n_rows rows.
bool frit_cuda_can_gemv(const frit_exec *exec, const struct frit_cuda_products *products, int64_t n_rows);
