// SPDX-License-Identifier: MIT
// backend/cuda/ops/gemm_small.h: products of 9 to 128 rows in f16, which read weights as tiles (kernels/gemm_small.cu).
// For decode steps of many sequences. product.h has products of fewer rows, gemm_cublas.h of more.
//
//     frit_cuda_gemm_small product = {.rows = 64, .k = 4096, .segments = {{FRIT_DTYPE_Q4_K, 256}}};
//     FRIT_TRY(frit_cuda_gemm_small_kernel(&product, &gpu, &kernel));      // launched with frit_gemm_args
#pragma once
#include "backend/cuda/ops/product.h"

enum { FRIT_CUDA_GEMM_SMALL_ROWS = 128 };

// Shared memory of a block of threads, as kernels/include/gemm_small.cuh lays it out: in each stage, 256 columns of
// n_rows rows and of n_tiles row tiles.
int frit_cuda_gemm_small_shared(int n_rows, int n_tiles, int tile_bytes, int stages);

typedef struct frit_cuda_gemm_small {
    int rows;   // at most, of the input: a multiple of 8, at most FRIT_CUDA_GEMM_SMALL_ROWS
    int k;
    frit_cuda_segment segments[FRIT_GPU_SEGMENTS];   // the second may be empty
    // 0: chosen by estimate, and set.
    int tiles, warps;   // row tiles of a warp, warps of a block of threads
    int splits;         // parts of the columns, whose partial results are to be added
    int stages;         // of 256 columns; while one is multiplied, the next are fetched
    bool is_gated;      // asks for activated gates times values, in f16; cleared if there are splits
    bool is_exact;      // weights are rounded to f16 once; otherwise scales are rounded too, which is faster
} frit_cuda_gemm_small;

// Upper bound of the bytes of all partial results of a product with up to n_rows rows of n numbers.
uint64_t frit_cuda_gemm_small_bytes(const frit_cuda_gpu *gpu, uint64_t n, uint64_t n_rows);
// Stores up to `most` candidates in `out`, the fastest by estimate first. Returns their number; 0: none fits.
int frit_cuda_gemm_small_candidates(const frit_cuda_gemm_small *wanted, const frit_cuda_gpu *gpu,
                                    frit_cuda_gemm_small *out, int most);
// Estimated nanoseconds of the kernels after the product: adding partial results, and gates if it does not compute
// them.
double frit_cuda_gemm_small_after_ns(const frit_cuda_gemm_small *product, bool wants_gates, const frit_cuda_gpu *gpu);
extern const double frit_cuda_gates_ns;
// Fills in the kernel's file, defines and launch shape. FRIT_E_UNSUPPORTED: a type without tiles or of 32 bits, an
// unknown shape, or too little shared memory.
frit_status frit_cuda_gemm_small_kernel(frit_cuda_gemm_small *product, const frit_cuda_gpu *gpu,
                                        frit_cuda_kernel *kernel);
