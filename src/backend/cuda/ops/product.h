// SPDX-License-Identifier: MIT
// backend/cuda/ops/product.h: the phases of a decode step that multiply with weights, for 1 to 16 rows
// (kernels/product.cu).
//
//     frit_cuda_product product = {.rows = 1, .k = 4096, .is_normed = true, .epilogue = FRIT_GPU_GLU,
//                                  .segments = {{FRIT_DTYPE_Q4_K, 1792}}};
//     FRIT_TRY(frit_cuda_product_kernel(&product, &gpu, &kernel));       // kernel.h makes and launches it
#pragma once
#include "backend/cuda/runtime/kernel.h"
#include "backend/cuda/kernels/args.h"
#include "graph/graph.h"
#include "quant/dtype.h"

typedef enum frit_cuda_epilogue {   // EPILOGUE_.. of kernels/include/phase.cuh
    FRIT_GPU_STORE,
    FRIT_GPU_ADD,   // to a residual
    FRIT_GPU_GLU,   // silu(gate) * value; weights in FRIT_CUDA_ORDER_GATED
    FRIT_GPU_QKV    // rotates queries and keys (FRIT_CUDA_ORDER_ADJACENT or _NEOX), writes the cache
} frit_cuda_epilogue;

// A cache page has 32 positions of several layers: of each layer keys [kv head][32][head size], then values
// [kv head][head size][32], in blocks as keys are.
typedef struct frit_cuda_heads {
    int n_heads, n_kv_heads, head_size;
    bool is_neox;         // rotated pairs are p and p + head_size / 2; otherwise 2p and 2p + 1
    int64_t page_bytes;   // from page to page
    int keys, values;     // types: FRIT_GPU_CACHE_F16 (0) ...
} frit_cuda_heads;

typedef struct frit_cuda_segment {
    frit_dtype dtype;
    int n_tiles;   // row tiles (repack.h)
} frit_cuda_segment;

typedef struct frit_cuda_product {
    int rows, k;
    int n;   // rows of the matrices, if the last tile is not full; 0: all rows of the tiles
    bool is_normed;
    frit_cuda_epilogue epilogue;
    frit_cuda_segment segments[FRIT_GPU_SEGMENTS];   // the second may be empty
    frit_cuda_heads heads;                           // FRIT_GPU_QKV
    // Tuning; 0: chosen.
    int groups, warps, grid;   // groups of warps work on different row tiles, warps of a group on one
    int parts;                 // of the columns, for different blocks of threads
    int stages, open_stages;   // tiles of a warp's ring; tiles fetched before the input is read
    int shared_limit;          // bytes; 0: all that a block of threads can have
    bool copies_by_thread;     // cp.async instead of bulk copies; always before sm_90
} frit_cuda_product;

// True if weights of the type are multiplied in f16 or bf16, not as integer codes.
bool frit_cuda_is_16_bits(frit_dtype dtype);
void frit_cuda_define_heads(frit_cuda_kernel *kernel, const frit_cuda_heads *heads);
// Fills in the kernel's file, defines and launch shape. FRIT_E_UNSUPPORTED: no tiles for the type, more rows or
// columns than shared memory takes, or an unknown shape.
frit_status frit_cuda_product_kernel(const frit_cuda_product *product, const frit_cuda_gpu *gpu,
                                     frit_cuda_kernel *kernel);
// Bytes of partial results that the kernel's blocks exchange (frit_product_args.partial); 0: none. The kernel also
// needs a zeroed u32 for each multiprocessor (`arrived`).
uint64_t frit_cuda_product_partial_bytes(const frit_cuda_product *product, const frit_cuda_gpu *gpu);
