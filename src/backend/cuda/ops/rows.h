// SPDX-License-Identifier: MIT
// backend/cuda/ops/rows.h: kernels between products: embedding, norms, activations, heads, attention. Prompts
// need them, and decode steps where a product has no epilogue for the op. The caller sets grid[0], the number of rows
// (for attend_rows.cu, of row tiles), before a launch.
//
//     frit_cuda_norm norm = {.width = 4096, .has_weight = true, .out = FRIT_CUDA_F16};
//     FRIT_TRY(frit_cuda_norm_kernel(&norm, &kernel));                // kernel.h makes it
//     kernel.grid[0] = n_rows;
//     FRIT_TRY(frit_cuda_kernel_launch(&gpu, &kernel, stream, &args, FRIT_CUDA_OVERLAPPING));
#pragma once
#include "backend/cuda/ops/product.h"
#include "backend/cuda/weights/repack.h"
#include "graph/graph.h"

typedef enum frit_cuda_numbers { FRIT_CUDA_F32, FRIT_CUDA_F16, FRIT_CUDA_BF16 } frit_cuda_numbers;   // of rows.cuh

// Rows of the token table, and the rotations of positions (frit_embed_rows_args).
typedef struct frit_cuda_embed {
    frit_dtype dtype;   // of the table, as tiles
    int width, rotated;
} frit_cuda_embed;

typedef struct frit_cuda_norm {
    int width;
    bool is_layer;   // layer norm; otherwise RMS norm
    bool has_weight, has_bias;
    frit_cuda_numbers in, out;
    bool is_sum;      // the result is added to the residual instead of being written
    bool is_scaled;   // f16, each row times a power of two
    bool joins;       // first adds the results of a gemm to a residual, and writes that too
    bool is_small;    // for small gemms: enough threads for each row to load all of its numbers at once
} frit_cuda_norm;

// y = f(gate) * value, for rows in FRIT_CUDA_ORDER_GATED, or y = f(x + bias).
typedef struct frit_cuda_glu {
    int width;   // of y
    frit_act act;
    bool is_gated, has_bias;
    frit_cuda_numbers in, out;
} frit_cuda_glu;

// Bias, head norms, rotation and cache writes after the product of queries, keys and values.
typedef struct frit_cuda_heads_rows {
    frit_cuda_heads heads;
    frit_cuda_row_order order;   // of queries and keys
    int rotated;                 // dimensions of a head; 0: none
    frit_rope_style style;
    bool has_bias, has_norm, has_f32_queries;
} frit_cuda_heads_rows;

// Attention with queries in f16.
typedef struct frit_cuda_attend {
    frit_cuda_heads heads;
    int window;   // positions that a row sees, itself included; 0: all
    bool has_softcap, has_sinks;
    frit_cuda_numbers out;   // bf16: attend_rows.cu only
    int stages;              // pages that a warp copies ahead (sm_90 only); 0: it reads pages from global memory
    int shared_parts;        // parts of pages that several sequences share; 0: none
    int own_parts;           // with shared_parts: of a row's own pages
} frit_cuda_attend;

enum { FRIT_CUDA_ROWS_OF_TILE = 64, FRIT_CUDA_QUERY_TILE = 8, FRIT_CUDA_SHARED_PARTS = 8 };

// Each function fills in file, defines and threads. FRIT_E_UNSUPPORTED: the kernel does not support the shape.
frit_status frit_cuda_embed_kernel(const frit_cuda_embed *embed, frit_cuda_kernel *kernel);
frit_status frit_cuda_norm_kernel(const frit_cuda_norm *norm, frit_cuda_kernel *kernel);
frit_status frit_cuda_glu_kernel(const frit_cuda_glu *glu, frit_cuda_kernel *kernel);
// Activated gates times values after a gemm, in f16 (frit_gate_args). width: numbers of a row of the result.
frit_status frit_cuda_gate_kernel(int width, frit_cuda_kernel *kernel);
frit_status frit_cuda_heads_kernel(const frit_cuda_heads_rows *heads, frit_cuda_kernel *kernel);
// Cosines and sines of `rotated` dimensions of a head at each row's position (frit_rope_rows_args).
frit_status frit_cuda_rope_kernel(int rotated, frit_cuda_kernel *kernel);
// x[i,:] = from[rows[i],:] in f32 (frit_take_rows_args).
frit_status frit_cuda_take_rows_kernel(int width, frit_cuda_kernel *kernel);
// Attention of up to 64 consecutive rows of a sequence at a time (frit_row_tile, frit_attend_rows_args).
frit_status frit_cuda_attend_rows_kernel(const frit_cuda_attend *attend, const frit_cuda_gpu *gpu,
                                         frit_cuda_kernel *kernel);
// Attention of single rows (frit_attend_args). The pages of a row are divided among n_splits blocks for each tile of
// query heads. warps: of a block; 0: chosen. grid[0] is set here; the caller sets grid[1], the number of rows.
frit_status frit_cuda_attend_kernel(const frit_cuda_attend *attend, int n_splits, int warps, frit_cuda_kernel *kernel);
// True if keys or values of the cache are not f16.
bool frit_cuda_has_codes(const frit_cuda_heads *heads);
// True if attend.cu and attend_rows.cu read the cache type (FRIT_GPU_CACHE_F16 ...).
bool frit_cuda_is_attended(int type);
// Shared memory of attend_rows.cu, in bytes.
int frit_cuda_attend_rows_bytes(const frit_cuda_heads *heads);
// Pages that a warp can copy ahead into shared memory; 0 if there is room for fewer than two.
int frit_cuda_attend_stages(const frit_cuda_heads *heads, const frit_cuda_gpu *gpu);
// A query tile has up to eight query heads that share a key/value head. The number of tiles, and the heads of the
// largest.
int frit_cuda_query_tiles(const frit_cuda_heads *heads);
int frit_cuda_tile_queries(const frit_cuda_heads *heads);
void frit_cuda_define_attend(frit_cuda_kernel *kernel, const frit_cuda_attend *attend);
