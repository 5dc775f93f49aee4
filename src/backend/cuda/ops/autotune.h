// SPDX-License-Identifier: MIT
// backend/cuda/ops/autotune.h: which kernel multiplies a shape fastest, measured on the GPU at hand the first time and
// then remembered, beside the compiled kernels. An estimate (gemm_small.c, cuBLASLt's own) says what is tried, and what
// is used where nothing is measured: without a folder and a compiler, or if results are not to depend on what was
// fastest.
//
//     if (frit_cuda_autotune_gemm_small(d, &some, weights)) ...     // known: some says how, or that cuBLASLt is faster
//     FRIT_TRY(frit_cuda_autotune_measure(d, &n));            // what was asked for and not known; n of them are now
#pragma once
#include "backend/cuda/ops/gemm_small.h"

struct frit_cuda_device;
struct frit_cuda_matmul;
struct frit_cuda_matmul_args;

enum { FRIT_CUDA_TUNING_MATRICES = 32 };   // matrices of a shape that are multiplied in turn, so that none is cached

typedef struct frit_cuda_tuned {   // of a product; as it is kept in the file
    int32_t rows, k, types[FRIT_GPU_SEGMENTS], tiles[FRIT_GPU_SEGMENTS], is_gated;   // types[0] -1: of f16 by cuBLASLt
    int32_t by_blas;                                                                 // cuBLASLt is faster
    int32_t row_tiles, warps, splits;                                                // otherwise those of gemm_small.h
    int32_t algorithm;                                                               // types[0] -1: cuBLASLt's
    int32_t nanoseconds;
} frit_cuda_tuned;

typedef struct frit_cuda_tuning_request {   // a product that is not known yet
    frit_cuda_tuned tuned;
    frit_cuda_gemm_small small;
    uint64_t matrices[FRIT_CUDA_TUNING_MATRICES][FRIT_GPU_SEGMENTS];   // tiles
    int n_matrices;
} frit_cuda_tuning_request;

typedef struct frit_cuda_autotune {
    const char *folder;   // of the file; NULL: nothing is measured
    bool is_read;
    frit_cuda_tuned *known;   // [n_known]
    size_t n_known;
    frit_cuda_tuning_request *requests;   // [n_requests]
    size_t n_requests;
} frit_cuda_autotune;

typedef enum frit_cuda_tuned_by { FRIT_CUDA_BY_ESTIMATE, FRIT_CUDA_BY_MEASURE, FRIT_CUDA_BY_BLAS } frit_cuda_tuned_by;

// Sets how `some` is best computed, where that is known; otherwise it is measured later, with these tiles (0: never).
frit_cuda_tuned_by frit_cuda_autotune_gemm_small(struct frit_cuda_device *device, frit_cuda_gemm_small *small,
                                                 const uint64_t weights[FRIT_GPU_SEGMENTS]);
// Measures what was asked for, all kernels of which are compiled then; *n: of how many the choice is another than the
// estimate's. What cannot be measured stays by estimate.
frit_status frit_cuda_autotune_measure(struct frit_cuda_device *device, int *n);
// Which of cuBLASLt's algorithms multiplies fastest, now with these numbers where it is not known; only for whole
// steps of prompts, others have its first.
int frit_cuda_autotune_algorithm(struct frit_cuda_device *device, const struct frit_cuda_matmul *matmul, int n_rows,
                                 const struct frit_cuda_matmul_args *args);
void frit_cuda_autotune_free(frit_cuda_autotune *autotune);
