// SPDX-License-Identifier: MIT
// backend/cuda/ops/gemm_wgmma.h: products of 17 rows or more in f16 on sm_90, which read weights as tiles
// (kernels/gemm_wgmma.cu), and x in slabs. Other GPUs have gemm_small.h for up to 128 rows and gemm_cublas.h for more.
//
//     frit_cuda_gemm_wgmma product = {.n_rows = 256, .k = 4096, .segments = {{FRIT_DTYPE_Q4_K, 256}}};
//     FRIT_TRY(frit_cuda_gemm_wgmma_kernel(&product, &gpu, &kernel));
//     kernel.grid[0] = frit_cuda_gemm_wgmma_blocks(&product, n_rows);      // launched with frit_gemm_args
#pragma once
#include "backend/cuda/ops/product.h"

enum { FRIT_CUDA_GEMM_WGMMA_FROM = 17 };   // rows from which gemms are multiplied by it

typedef struct frit_cuda_gemm_wgmma {
    int n_rows;   // of the input that the choices below are made for; the kernel takes any number
    int k;
    frit_cuda_segment segments[FRIT_GPU_SEGMENTS];   // the second may be empty
    bool is_gated;   // asks for activated gates times values, in f16; cleared if there are splits
    bool is_exact;   // weights are rounded to f16 once; otherwise scales are rounded too, and mins up to 64 rows
    // 0: chosen by estimate, and set.
    int rows;           // of a block of threads: 32, 64, 96, 128, 192 or 256
    int tiles, warps;   // row tiles of a warp, warps of a block of threads that multiply
    int splits;         // parts of the columns, whose partial results are to be added
    int at_once;        // blocks of threads that a multiprocessor runs
    // Set:
    int stages;   // of 256 columns of weights; while one is multiplied, the next are fetched
} frit_cuda_gemm_wgmma;

// True if the GPU has the kernel's instructions.
bool frit_cuda_has_wgmma(const frit_cuda_gpu *gpu);
// True if the GPU multiplies matrices of k columns by the kernel.
bool frit_cuda_gemm_is_wgmma(const frit_cuda_gpu *gpu, int64_t k);
// Upper bound of the bytes of all partial results of a product with up to n_rows rows of n numbers.
uint64_t frit_cuda_gemm_wgmma_bytes(const frit_cuda_gpu *gpu, uint64_t n, uint64_t n_rows);
// Stores up to `most` candidates in `out`, the fastest by estimate first. Returns their number; 0: none fits.
int frit_cuda_gemm_wgmma_candidates(const frit_cuda_gemm_wgmma *wanted, const frit_cuda_gpu *gpu,
                                    frit_cuda_gemm_wgmma *out, int most);
// Fills in the kernel's file, defines and launch shape, but for the number of blocks. FRIT_E_UNSUPPORTED: a type
// without tiles or of 32 bits, an unknown shape, or too little shared memory.
frit_status frit_cuda_gemm_wgmma_kernel(frit_cuda_gemm_wgmma *product, const frit_cuda_gpu *gpu,
                                        frit_cuda_kernel *kernel);
// Blocks of threads of each split for n_rows rows.
unsigned frit_cuda_gemm_wgmma_blocks(const frit_cuda_gemm_wgmma *product, int64_t n_rows);
