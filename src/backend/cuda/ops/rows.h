// SPDX-License-Identifier: MIT
// backend/cuda/ops/rows.h: the parts of a step of many rows that are no products: prompts, and what the kernels of
// decode steps have no epilogue for. grid[0] is the number of rows (of attention, of tiles of rows), set before a
// launch.
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

// Rows of the token table in x, and the rotations of positions (frit_embed_rows_args).
typedef struct frit_cuda_embed {
    frit_dtype dtype;   // of the table, as tiles
    int width, rotated;
} frit_cuda_embed;

typedef struct frit_cuda_norm {
    int width;
    bool is_layer;   // mean and variance; otherwise the square alone
    bool has_weight, has_bias;
    frit_cuda_numbers in, out;
    bool is_sum;      // added to the residual in place of being written
    bool is_scaled;   // f16, each row times a power of two
    bool joins;       // of what a product of many rows and a residual give, which is written too
    bool is_small;    // rows: so many threads for each that its numbers come at once
} frit_cuda_norm;

// y = f(gate) * value of rows in FRIT_CUDA_ORDER_GATED, or y = f(x + bias).
typedef struct frit_cuda_glu {
    int width;   // of y
    frit_act act;
    bool is_gated, has_bias;
    frit_cuda_numbers in, out;
} frit_cuda_glu;

// Bias, norm of heads, rotation, and the cache, after the product of queries, keys and values.
typedef struct frit_cuda_heads_rows {
    frit_cuda_heads heads;
    frit_cuda_row_order order;   // of queries and keys
    int rotated;                 // dimensions of a head; 0: none
    frit_rope_style style;
    bool has_bias, has_norm, has_f32_queries;
} frit_cuda_heads_rows;

// Attention of queries in f16.
typedef struct frit_cuda_attend {
    frit_cuda_heads heads;
    int window;   // positions that a row sees, itself included; 0: all
    bool has_softcap, has_sinks;
    frit_cuda_numbers out;   // bf16: only of the kernel of many rows
    int stages;              // pages that a warp copies ahead (sm_90 only); 0: it reads them where they are
} frit_cuda_attend;

enum { FRIT_CUDA_ROWS_OF_TILE = 64, FRIT_CUDA_QUERY_TILE = 8 };

// Each fills in file, defines and threads. FRIT_E_UNSUPPORTED: a shape that the kernel does not take.
frit_status frit_cuda_embed_kernel(const frit_cuda_embed *embed, frit_cuda_kernel *kernel);
frit_status frit_cuda_norm_kernel(const frit_cuda_norm *norm, frit_cuda_kernel *kernel);
frit_status frit_cuda_glu_kernel(const frit_cuda_glu *glu, frit_cuda_kernel *kernel);
// Gates and values after a product of many rows, as f16 (frit_gate_args); width: of what they give.
frit_status frit_cuda_gate_kernel(int width, frit_cuda_kernel *kernel);
frit_status frit_cuda_heads_kernel(const frit_cuda_heads_rows *heads, frit_cuda_kernel *kernel);
// Cosines and sines of so many dimensions of a head at each row's position (frit_rope_rows_args).
frit_status frit_cuda_rope_kernel(int rotated, frit_cuda_kernel *kernel);
// x[i,:] = from[rows[i],:], of f32 (frit_take_rows_args).
frit_status frit_cuda_take_rows_kernel(int width, frit_cuda_kernel *kernel);
// Up to 64 positions of a run at a time (frit_row_tile, frit_attend_rows_args).
frit_status frit_cuda_attend_rows_kernel(const frit_cuda_attend *attend, const frit_cuda_gpu *gpu,
                                         frit_cuda_kernel *kernel);
// Rows one by one (frit_attend_args), whose pages are divided among n_splits blocks for each tile of query heads; warps
// of a block: 0: chosen. grid[0] is all of them, grid[1] the number of rows, set before a launch.
frit_status frit_cuda_attend_kernel(const frit_cuda_attend *attend, int n_splits, int warps, frit_cuda_kernel *kernel);
// Whether the cache has another type than f16; and whether the kernels of attention read a type (FRIT_GPU_CACHE_F16
// ...).
bool frit_cuda_has_codes(const frit_cuda_heads *heads);
bool frit_cuda_is_attended(int type);
// Shared memory that attention of many rows takes.
int frit_cuda_attend_rows_bytes(const frit_cuda_heads *heads);
// So many pages ahead that they fill the shared memory of a multiprocessor, if these are at least two; otherwise 0.
int frit_cuda_attend_stages(const frit_cuda_heads *heads, const frit_cuda_gpu *gpu);
// Up to eight query heads of a key/value head are a query tile: how many tiles there are, and how many heads the
// largest has.
int frit_cuda_query_tiles(const frit_cuda_heads *heads);
int frit_cuda_tile_queries(const frit_cuda_heads *heads);
void frit_cuda_define_attend(frit_cuda_kernel *kernel, const frit_cuda_attend *attend);
