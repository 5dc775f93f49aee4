// SPDX-License-Identifier: MIT
// backend/cuda/ops/gemm_cublas.h: products of prompts: tiles become f16 or bf16 matrices, which cuBLASLt multiplies.
//
//     frit_cuda_matmul matmul = {.k = 4096, .in = FRIT_CUDA_F16, .out = FRIT_CUDA_F32, .adds = true,
//                                .segments = {{FRIT_DTYPE_Q4_K, 256}}};
//     FRIT_TRY(frit_cuda_matmul_describe(&matmul));                        // kernel.h makes matmul.dequantize[0 .. n)
//     FRIT_TRY(frit_cuda_matmul_prepare(&matmul, &blas, n_rows, 0, &product));
//     FRIT_TRY(frit_cuda_matmul_run(&matmul, &gpu, &product, &args, stream));
#pragma once
#include "backend/cuda/runtime/cublaslt.h"
#include "backend/cuda/ops/rows.h"

typedef struct frit_cuda_matmul {
    int k;
    frit_cuda_numbers in, out;                       // in: f16 or bf16, also of the weights; out: f32 or bf16
    bool adds;                                       // to `out`, which is f32 then
    frit_cuda_segment segments[FRIT_GPU_SEGMENTS];   // the second may be empty
    // Set by frit_cuda_matmul_describe:
    int n_kernels;
    frit_cuda_kernel dequantize[FRIT_GPU_SEGMENTS];
    frit_cuda_kernel *shared[FRIT_GPU_SEGMENTS];   // the kernel to launch instead of dequantize[i]; NULL: dequantize[i]
} frit_cuda_matmul;

// Operands on the GPU. Results are in the order of the tiles' rows.
typedef struct frit_cuda_matmul_args {
    uint64_t weights[FRIT_GPU_SEGMENTS];   // tiles
    uint64_t x, y;
    uint64_t scratch;     // frit_cuda_matmul_scratch bytes
    uint64_t workspace;   // FRIT_CUBLASLT_WORKSPACE_BYTES
} frit_cuda_matmul_args;

frit_status frit_cuda_matmul_describe(frit_cuda_matmul *matmul);
uint64_t frit_cuda_matmul_scratch(const frit_cuda_matmul *matmul);
// Prepares products with n_rows rows of x. choice: index of cuBLASLt's algorithm, the best by its estimate first.
frit_status frit_cuda_matmul_prepare(const frit_cuda_matmul *matmul, const frit_cublaslt *blas, int n_rows, int choice,
                                     frit_cublaslt_product *product);
frit_status frit_cuda_matmul_run(const frit_cuda_matmul *matmul, const frit_cuda_gpu *gpu,
                                 const frit_cublaslt_product *product, const frit_cuda_matmul_args *args,
                                 frit_cuda_stream stream);
