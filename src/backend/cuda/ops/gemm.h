// SPDX-License-Identifier: MIT
// backend/cuda/ops/gemm.h: products of plans with FRIT_CUDA_GEMM_FROM rows or more. The input is f16. The kernel is
// gemm_small.h's for up to 128 rows and cuBLASLt (gemm_cublas.h) for more; on sm_90 it is gemm_small.h's for up to 16
// rows and gemm_wgmma.h's for more. Precise graphs (precise.h) have all products here, in f32.
#pragma once
#include "backend/cuda/ops/f16_input.h"
#include "backend/cuda/ops/gemm_cublas.h"

struct frit_cuda_products;
struct frit_cuda_launch;

enum { FRIT_CUDA_GEMM_FROM = 17, FRIT_CUDA_GEMM_VARIANTS = 11 };

// A kernel that multiplies tiles.
typedef struct frit_cuda_gemm_variant {
    frit_cuda_kernel *kernel;
    int rows, n_parts;   // up to `rows` rows; partial results, which are to be added
    int block_rows;      // rows of a block of threads; grid[0] of the kernel is for one such block
    bool is_gated;       // results are activated gates times values
    bool is_fp8;         // the input is quantized before (gemm_fp8.h)
} frit_cuda_gemm_variant;

// Operands of the launch: 0 rows, 1 tiles, 3 residual, 4 tiles of the second segment.
typedef struct frit_cuda_gemm {
    frit_cuda_matmul *matmul;   // cuBLASLt's; NULL: there is a variant for every number of rows
    frit_cuda_gemm_variant variants[FRIT_CUDA_GEMM_VARIANTS];   // ascending rows
    int n_variants;
    frit_cuda_kernel *precise;              // multiplies in f32; NULL: the product is in f16
    frit_cuda_kernel *convert;              // input to f16 (gemm.cu); NULL: it is f16 already
    frit_cuda_kernel *quantize;             // input to e4m3 (quantize_rows.cu), for variants with is_fp8
    uint64_t codes, code_scales;            // offsets in the work memory: what `quantize` writes
    frit_cuda_kernel *finish, *gate;        // finish: results to f32; gate: results to f16; both NULL: results stay
    int k, n;                               // columns of the matrices; rows of the tiles
    bool is_gated;                          // rows of the tiles are gates and values
    frit_cuda_f16_input x, gated;           // the input; the result of `gate`
    frit_cuda_f16_norm norm;                // of the results, computed with them
    uint64_t weights, product, workspace;   // offsets in the device's work memory
    frit_cuda_kernel *measure;              // computes `bounds` when the plan is prepared (bounds.cu); NULL: not needed
    uint64_t bounds;                        // f32 [2]
} frit_cuda_gemm;

// True if the product is a gemm in the node's plan. Products with f32 weights are none: they would lose half of their
// bits in f16, and their matrices (routers) are small.
bool frit_cuda_is_gemm(const frit_exec *exec, const frit_node *linear);
// With `result` the results become its numbers, or its f16 input. Without (NULL) they stay in the work memory as
// frit_cuda_gemm_parts parts, to be added and multiplied by the scale of their row.
frit_status frit_cuda_lower_gemm(frit_exec *exec, const struct frit_cuda_products *products, int64_t max_rows,
                                 const frit_node *result, struct frit_cuda_launch *launch);
int frit_cuda_gemm_parts(const struct frit_cuda_launch *launch, int64_t n_rows);
// Computes the bounds of weights that gated kernels need. Call it once, after all kernels are built.
frit_status frit_cuda_gemm_measure(frit_exec *exec);
// `tune` of frit_backend: chooses cuBLASLt's algorithms for the executable's products, and runs each once.
frit_status frit_cuda_gemm_tune(frit_exec *exec);
void frit_cuda_matmuls_free(frit_exec *exec);
// True if the launch can compute this norm together with its results.
bool frit_cuda_gemm_can_norm(const struct frit_cuda_launch *launch, const frit_node *norm);
