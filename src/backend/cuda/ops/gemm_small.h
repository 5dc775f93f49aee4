// SPDX-License-Identifier: MIT
// backend/cuda/ops/gemm_small.h: products of 9 to 128 rows in f16, of weights as they are in tiles
// (kernels/gemm_small.cu). For decode steps of many sequences; products of fewer rows are product.h's, of more than 128
// matmul.h's.
//
//     frit_cuda_gemm_small some = {.rows = 64, .k = 4096, .segments = {{FRIT_DTYPE_Q4_K, 256}}};
//     FRIT_TRY(frit_cuda_gemm_small_kernel(&some, &gpu, &kernel));      // kernel.h makes and launches it
// (frit_gemm_small_args)
#pragma once
#include "backend/cuda/ops/product.h"

enum { FRIT_CUDA_GEMM_SMALL_ROWS = 128 };

// Shared memory of a block of threads, as kernels/include/gemm_small.cuh lays it out: rows and row tiles of 256
// columns, so many times.
int frit_cuda_gemm_small_shared(int n_rows, int n_tiles, int tile_bytes, int stages);

typedef struct frit_cuda_gemm_small {
    int rows;   // that there is room for: a multiple of 8, at most FRIT_CUDA_GEMM_SMALL_ROWS
    int k;
    frit_cuda_segment segments[FRIT_GPU_SEGMENTS];   // the second may be empty
    // How; 0: chosen, and set.
    int tiles, warps;   // row tiles of a warp, warps of a block of threads
    int splits;         // of the columns: so many parts of the results are left to be added
    int stages;         // 256 columns each, of which the last is being fetched
    bool is_gated;   // wanted: results are gates times values, in f16 (FRIT_CUDA_ORDER_GATED); not, if there are splits
    bool is_exact;   // weights are rounded to f16 once; otherwise their scales too, by fewer instructions
} frit_cuda_gemm_small;

// At most so many bytes of results has a product of n numbers a row for up to n_rows rows, in all of its parts.
uint64_t frit_cuda_gemm_small_bytes(const frit_cuda_gpu *gpu, uint64_t n, uint64_t n_rows);
// The fastest by estimate, at most so many, the best first; 0: none fits.
int frit_cuda_gemm_small_candidates(const frit_cuda_gemm_small *wanted, const frit_cuda_gpu *gpu,
                                    frit_cuda_gemm_small *out, int most);
// Nanoseconds, roughly, that a product costs after its kernel: parts to be added, and gates where it leaves them.
double frit_cuda_gemm_small_after_ns(const frit_cuda_gemm_small *product, bool wants_gates, const frit_cuda_gpu *gpu);
extern const double frit_cuda_gates_ns;
// Fills in the kernel's file, defines and launch shape. FRIT_E_UNSUPPORTED: a type without tiles or of 32 bits, an
// unknown shape, or too little shared memory.
frit_status frit_cuda_gemm_small_kernel(frit_cuda_gemm_small *product, const frit_cuda_gpu *gpu,
                                        frit_cuda_kernel *kernel);
