// SPDX-License-Identifier: MIT
// backend/cuda/kernels/args.h: the arguments of the kernels, read by the C compiler and by NVRTC.
//
// Pointers are device addresses. Shapes are not here: they are #defines of the compiled kernel.
#pragma once

typedef unsigned long long frit_gpu_ptr;

enum { FRIT_GPU_SEGMENTS = 2 };   // products of one phase that differ in weight type

// product.cu
typedef struct frit_product_args {
    frit_gpu_ptr weights[FRIT_GPU_SEGMENTS];   // tiles, [row tile][block of 256 columns]
    frit_gpu_ptr x;                            // f32 [rows, K]: the input
    frit_gpu_ptr norm;                         // f32 [K]: factors of the RMS norm
    frit_gpu_ptr out;                          // f32 [rows, n]; queries: f16 [rows, heads * head size]
    frit_gpu_ptr best;                         // u64 [rows]: EPILOGUE_PICK's largest logit and its index
    frit_gpu_ptr rope;                         // f32 [rows, head size / 2, 2]: cosine and sine of the row's position
    frit_gpu_ptr positions;                    // i32 [rows]
    frit_gpu_ptr pages;                        // i32 [rows, PAGE_STRIDE]
    frit_gpu_ptr keys, values;                 // this layer's part of page 0
    float epsilon;                             // of the norm
    float query_scale;
} frit_product_args;

// attend.cu
typedef struct frit_attend_args {
    frit_gpu_ptr q;              // f16 [rows, heads * head size], scaled by log2(e) / sqrt(head size)
    frit_gpu_ptr positions;      // i32 [rows]
    frit_gpu_ptr pages;          // i32 [rows, PAGE_STRIDE]
    frit_gpu_ptr keys, values;   // this layer's part of page 0
    frit_gpu_ptr partial;        // f32 [rows, kv heads, splits, group, head size + 2]
    frit_gpu_ptr arrived;        // u32 [rows, kv heads], zero between launches
    frit_gpu_ptr out;            // f32 [rows, heads * head size]
} frit_attend_args;

// embed.cu
typedef struct frit_embed_args {
    frit_gpu_ptr best;        // u64 [rows]: the pick of the step before; taken and cleared
    frit_gpu_ptr table;       // bf16 [vocabulary, dim]
    frit_gpu_ptr x;           // f32 [rows, dim]
    frit_gpu_ptr positions;   // i32 [rows]: advanced by one
    frit_gpu_ptr rope;        // f32 [rows, head size / 2, 2]
    frit_gpu_ptr frequency;   // f64 [head size / 2]
    frit_gpu_ptr tokens;      // i32 [rows, TOKEN_STRIDE]: the text so far, by position
} frit_embed_args;

// decode.cu
enum { FRIT_GPU_MAX_LAYERS = 128 };

// Matrices in the order in which a step reads them. Row tiles of a phase are counted through: `weights` is where row
// tile 0 of the phase would be.
typedef struct frit_gpu_matrix {
    frit_gpu_ptr weights;
    int end;             // the first row tile after it
    int blocks, bytes;   // of a row tile that are read; of a tile
    int stride;          // blocks from row tile to row tile
    int is_new;          // the first of a phase
    int pad;
} frit_gpu_matrix;

typedef struct frit_decode_layer {
    frit_gpu_ptr norm1, norm2;
    unsigned long long is_more;   // v and down are of TYPE_MORE
} frit_decode_layer;

typedef struct frit_decode_args {
    frit_embed_args embed;
    frit_attend_args attend;   // keys and values: of layer 0
    frit_gpu_ptr h;            // f32 [rows, FF]
    frit_gpu_ptr logits;       // f32 [rows, vocabulary]
    frit_gpu_ptr norm;         // of the output
    frit_gpu_ptr barrier;      // u32, 0 at the start
    frit_gpu_ptr trace;        // u64 [blocks, layers * 14 + 3]: clocks, if the kernel was made with TRACE
    int n_steps;
    float epsilon;
    int n_matrices;   // qk, v, o, gate-up, down of each layer, the head
    int pad;
    frit_decode_layer layers[FRIT_GPU_MAX_LAYERS];
    frit_gpu_matrix matrices[FRIT_GPU_MAX_LAYERS * 5 + 1];
} frit_decode_args;

// probe.cu
typedef struct frit_probe_args {
    frit_gpu_ptr in, out;
    unsigned long long n_bytes;
    unsigned int seed;
    float scale;
} frit_probe_args;
