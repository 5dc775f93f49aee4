// SPDX-License-Identifier: MIT
// backend/cuda/decode.h: whole decode steps of a dense model as one kernel (kernels/decode.cu).
//
//     frit_cuda_decode decode = {.rows = 1, .n_layers = 32, .dim = 4096, ..};
//     FRIT_TRY(frit_cuda_decode_kernel(&decode, &gpu, &kernel));
//     frit_cuda_decode_matrices(&decode, layers, head, args);
#pragma once
#include "backend/cuda/ops/product.h"

typedef struct frit_cuda_decode {
    int rows, n_layers, dim, n_ff, n_vocab;
    int n_positions;   // of each row's sequence: tokens in a row of the table of tokens
    frit_cuda_heads heads;
    frit_dtype most, more, head, table;   // `more`: v and down of some layers; table: of tokens, as tiles
    int groups, warps, stages, splits;    // 0: chosen
    bool is_traced;                       // the kernel writes clocks
} frit_cuda_decode;

// The tiles of a layer.
typedef struct frit_cuda_layer {
    uint64_t qk, v, o, gate_up, down;
    bool is_more;
} frit_cuda_layer;

// Fills in the choices, and the kernel's file, defines and launch shape. FRIT_E_UNSUPPORTED: a type without tiles, more
// layers or rows than the kernel takes, or a GPU older than sm_90.
frit_status frit_cuda_decode_kernel(frit_cuda_decode *decode, const frit_cuda_gpu *gpu, frit_cuda_kernel *kernel);
// The matrices of all layers and the head, in the order in which a step reads them.
void frit_cuda_decode_matrices(const frit_cuda_decode *decode, const frit_cuda_layer *layers, uint64_t head,
                               frit_decode_args *args);
