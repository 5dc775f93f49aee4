// SPDX-License-Identifier: MIT
// backend/cuda/ops/gemm_fp8.h: products of 17 rows or more in e4m3 on sm_90 (kernels/gemm_fp8.cu). Weights are fp8_128,
// and the input is quantized before (kernels/quantize_rows.cu). Only devices with `has_fp8_inputs` use it, for the
// input loses most of its bits.
//
//     frit_cuda_gemm_fp8 product = {.n_rows = 256, .k = 4096, .segments = {{FRIT_DTYPE_FP8_128, 256}}};
//     FRIT_TRY(frit_cuda_gemm_fp8_kernel(&product, &gpu, &kernel));
//     kernel.grid[0] = frit_cuda_gemm_fp8_blocks(&product, n_rows);      // launched with frit_gemm_args
#pragma once
#include "backend/cuda/ops/product.h"

typedef struct frit_cuda_gemm_fp8 {
    int n_rows;   // of the input that the choices below are made for; the kernel takes any number
    int k;
    frit_cuda_segment segments[FRIT_GPU_SEGMENTS];   // the second may be empty
    bool is_gated;   // asks for activated gates times values, in f16; cleared if there are splits
    // 0: chosen by estimate, and set.
    int rows;           // of a block of threads: 32, 64, 96, 128, 192 or 256
    int tiles, warps;   // row tiles of a warp, warps of a block of threads that multiply
    int splits;         // parts of the columns, whose partial results are to be added
    int at_once;        // blocks of threads that a multiprocessor runs
    int stages;         // set: of 256 columns of weights; while one is multiplied, the next are fetched
} frit_cuda_gemm_fp8;

// True if the GPU multiplies these matrices by the kernel.
bool frit_cuda_gemm_is_fp8(const frit_cuda_gpu *gpu, int64_t k, const frit_cuda_segment segments[FRIT_GPU_SEGMENTS]);
// Fills in the kernel's file, defines and launch shape, but for the number of blocks. FRIT_E_UNSUPPORTED: other types,
// an unknown shape, or too little shared memory.
frit_status frit_cuda_gemm_fp8_kernel(frit_cuda_gemm_fp8 *product, const frit_cuda_gpu *gpu, frit_cuda_kernel *kernel);
// Blocks of threads of each split for n_rows rows.
unsigned frit_cuda_gemm_fp8_blocks(const frit_cuda_gemm_fp8 *product, int64_t n_rows);
