// SPDX-License-Identifier: MIT
// backend/cuda/ops/autotune.h: the fastest kernel for each shape of product. The best candidates by estimate
// are measured when a plan first has the shape, and the result is kept in a file beside the compiled kernels. Without a
// folder and a compiler, or in deterministic mode, nothing is measured and the best estimate is used.
//
//     if (frit_cuda_autotune_gemm_small(d, &small, weights)) ...   // known; sets `small`
//     FRIT_TRY(frit_cuda_autotune_measure(d, &n));                // measures the shapes that were unknown
#pragma once
#include "backend/cuda/ops/gemm_small.h"

struct frit_cuda_device;
struct frit_cuda_matmul;
struct frit_cuda_matmul_args;

// Matrices of a shape that a measurement cycles through, so that none is in the L2.
enum {
    FRIT_CUDA_TUNING_MATRICES = 32,
    FRIT_CUDA_AUTOTUNE_ROWS = 256,   // algorithms of cuBLASLt are measured for multiples of so many rows
};

typedef struct frit_cuda_tuned {   // the fastest way to compute a product, as the file has it
    // Key. types[0] -1: f16 weights, multiplied by cuBLASLt
    int32_t rows, k, types[FRIT_GPU_SEGMENTS], tiles[FRIT_GPU_SEGMENTS], is_gated;
    // Result:
    int32_t by_blas;                    // cuBLASLt is faster
    int32_t row_tiles, warps, splits;   // otherwise: the fields of frit_cuda_gemm_small
    int32_t algorithm;                  // types[0] -1: which one of cuBLASLt's
    int32_t nanoseconds;
} frit_cuda_tuned;

typedef struct frit_cuda_tuning_request {   // a product to measure
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

// Sets tiles, warps and splits of `small` if the fastest are known. Otherwise requests a measurement with these tiles
// (0: none).
frit_cuda_tuned_by frit_cuda_autotune_gemm_small(struct frit_cuda_device *device, frit_cuda_gemm_small *small,
                                                 const uint64_t weights[FRIT_GPU_SEGMENTS]);
// Compiles and measures the candidates of all requests. *n: for how many products another candidate than the best
// estimate is fastest. Products that cannot be measured keep the estimate.
frit_status frit_cuda_autotune_measure(struct frit_cuda_device *device, int *n);
// Index of cuBLASLt's fastest algorithm for the shape, measured now with these operands if it is unknown. Only shapes
// of full prompt steps are measured; others use algorithm 0.
int frit_cuda_autotune_algorithm(struct frit_cuda_device *device, const struct frit_cuda_matmul *matmul, int n_rows,
                                 const struct frit_cuda_matmul_args *args);
void frit_cuda_autotune_free(frit_cuda_autotune *autotune);
