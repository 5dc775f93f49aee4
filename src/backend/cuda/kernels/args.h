// SPDX-License-Identifier: MIT
// backend/cuda/kernels/args.h: the arguments of the kernels, for the C compiler and for NVRTC.
//
// Pointers are device addresses. Most shapes are not here: they are #defines of the compiled kernel.
#pragma once

typedef unsigned long long frit_gpu_ptr;

enum { FRIT_GPU_SEGMENTS = 2 };   // matrices of a phase, which may differ in weight type

// product.cu
typedef struct frit_product_args {
    frit_gpu_ptr weights[FRIT_GPU_SEGMENTS];   // tiles, [row tile][block of 256 columns]
    frit_gpu_ptr x;                            // f32 [rows, K]
    frit_gpu_ptr norm;                         // f32 [K]: weights of the RMS norm
    frit_gpu_ptr out;                          // f32 [rows, n]; queries: f16 [rows, heads * head size]
    frit_gpu_ptr residual;                     // f32 [rows, n] that EPILOGUE_ADD adds; 0: `out`
    frit_gpu_ptr rope;                         // f32 [rows, head size / 2, 2]: cosine and sine of the row's position
    frit_gpu_ptr positions, seq_of;            // i32 [rows]
    frit_gpu_ptr pages;                        // i32 [seqs, page_stride]
    frit_gpu_ptr keys, values;                 // this layer's part of page 0
    frit_gpu_ptr partial;                      // f32 [PARTS, ROWS, n]
    frit_gpu_ptr arrived;                      // u32 [grid], zero between launches
    float epsilon;                             // of the norm
    float query_scale;
    int n_rows, page_stride;   // n_rows: 1 to ROWS
} frit_product_args;

// route.cu: the experts of each row (ops.def)
typedef struct frit_route_args {
    frit_gpu_ptr scores, bias, route;   // f32 [rows, n]; f32 [n], or 0; f32 [rows, 2, n_used]
    float scale, jitter;
} frit_route_args;

// An assignment is an expert of a row; its number is row * n_used + k. A group has assignments of one expert.
typedef struct frit_expert_group {
    int expert, first, n, pad;   // first: index in `order`
} frit_expert_group;

// dispatch.cu
typedef struct frit_dispatch_args {
    frit_gpu_ptr route;    // f32 [rows, 2, n_used]
    frit_gpu_ptr groups;   // frit_expert_group [n_groups]; unused groups are empty
    frit_gpu_ptr order;    // i32 [assignments]: assignments, sorted by expert
    int n_assignments, n_used, n_groups, group_rows;
} frit_dispatch_args;

// experts.cu
typedef struct frit_experts_args {
    frit_gpu_ptr weights;         // tiles of expert 0
    unsigned long long bytes;     // from expert to expert
    frit_gpu_ptr x;               // f32 [rows, K], or [assignments, K]
    frit_gpu_ptr route;           // f32 [rows, 2, n_used]
    frit_gpu_ptr groups, order;   // of dispatch.cu; 0: assignments are not sorted
    frit_gpu_ptr out, residual;   // f32 [assignments, n], or [rows, n]
    int first, n_rows;            // added to blockIdx.y; BY_HEADS: rows of the step
} frit_experts_args;

// experts_rows.cu
typedef struct frit_expert_rows_args {
    frit_gpu_ptr weights;         // tiles of expert 0
    unsigned long long bytes;     // from expert to expert
    frit_gpu_ptr x, scales;       // f16 [rows, K], or [assignments, K]; f32: factor of each row
    frit_gpu_ptr route;           // f32 [rows, 2, n_used]
    frit_gpu_ptr groups, order;   // of dispatch.cu, with at most ROWS assignments in a group
    frit_gpu_ptr out;             // f32 [assignments, n]
} frit_expert_rows_args;

// repack.cu: rows of a matrix to tiles
typedef struct frit_repack_args {
    frit_gpu_ptr blocks, second;   // blocks of rows; second: FRIT_CUDA_ORDER_GATED only
    frit_gpu_ptr grid;             // table that codes index; 0: none
    frit_gpu_ptr out;
    long long n_rows;    // of each matrix
    long long n_tiles;   // row tiles
    long long row_bytes;
    int n_columns;
    int bytes_of_256;        // bytes of the blocks of 256 columns
    int order, head_pairs;   // frit_cuda_row_order; half of the head size
} frit_repack_args;

// dequantize.cu
typedef struct frit_dequantize_args {
    frit_gpu_ptr tiles;
    frit_gpu_ptr out;   // bf16 or f16 [row tiles * 16, K]
} frit_dequantize_args;

// precise_rows.cu
typedef struct frit_precise_args {
    frit_gpu_ptr tiles, x, out;   // x: f32 [n_rows, K]; out: f32 [n_rows, stride]
    int n_rows, stride;
} frit_precise_args;

// gemm_small.cu, gemm_wgmma.cu, gemm_fp8.cu
typedef struct frit_gemm_args {
    frit_gpu_ptr weights[FRIT_GPU_SEGMENTS];   // tiles
    // f16 [n_rows, K]; gemm_wgmma.cu: in slabs (slabs.cuh); gemm_fp8.cu: e4m3 from quantize_rows.cu.
    frit_gpu_ptr x;
    frit_gpu_ptr x_scales;   // gemm_fp8.cu: f32 [K / 128, x_rows], from quantize_rows.cu
    frit_gpu_ptr scales;     // f32 [n_rows], factors of rows of x; 0: results are not multiplied
    frit_gpu_ptr out;        // f32 [SPLITS, n_rows, rows of the tiles]; GATED: f16 [n_rows, rows of the tiles / 2]
    // GATED: f32 [n_rows], sums of the squares of rows of x; f32 [2], from bounds.cu; f32 [n_rows], factors of rows of
    // out.
    frit_gpu_ptr squares, bounds, out_scales;
    int n_rows, slab_rows;   // slab_rows: with GATED, of out
} frit_gemm_args;

// quantize_rows.cu
typedef struct frit_quantize_args {
    frit_gpu_ptr x;                   // f16 in slabs (slabs.cuh)
    frit_gpu_ptr y, scales;           // e4m3 [width / 128, slab_rows, 128]; f32 [width / 128, slab_rows]
    int n_rows, slab_rows, n_slabs;   // n_slabs: width / 128
} frit_quantize_args;

// bounds.cu
typedef struct frit_bounds_args {
    frit_gpu_ptr tiles, largest;   // f32 [2], zero before the launch
} frit_bounds_args;

// attend.cu
typedef struct frit_attend_args {
    frit_gpu_ptr q;                   // f16 [rows, heads * head size], scaled by log2(e) / sqrt(head size)
    frit_gpu_ptr positions, seq_of;   // i32 [rows]
    frit_gpu_ptr pages;               // i32 [seqs, page_stride]
    frit_gpu_ptr keys, values;        // this layer's part of page 0
    frit_gpu_ptr sinks;               // f32 [heads]
    frit_gpu_ptr partial;             // f32 [rows, query tiles, shared + own parts, queries of a tile, head size + 2]
    frit_gpu_ptr n_shared;            // with SHARED_PARTS: i32 [rows]: pages at the beginning that attend_rows has read
    frit_gpu_ptr arrived;             // u32 [rows, query tiles], zero between launches
    frit_gpu_ptr out;                 // OUT [rows, heads * head size]
    float softcap, inverse_softcap;   // times log2(e), and one over that
    int page_stride, slab_rows;       // slab_rows: of out in f16 (slabs.cuh)
} frit_attend_args;

// embed_rows.cu
typedef struct frit_embed_rows_args {
    frit_gpu_ptr table;       // tiles of [vocabulary, DIM]
    frit_gpu_ptr tokens;      // i32 [rows]: ids, or ~i: picked[i]
    frit_gpu_ptr picked;      // i32: picks of the step before
    frit_gpu_ptr positions;   // i32 [rows]
    frit_gpu_ptr frequency;   // f64 [ROTATED / 2]
    frit_gpu_ptr x;           // f32 [rows, DIM]
    frit_gpu_ptr rope;        // f32 [rows, ROTATED / 2, 2]: cosine and sine
    float scale;              // of x
    float magnitude;          // of the rotation
} frit_embed_rows_args;

// norm_rows.cu
typedef struct frit_norm_args {
    frit_gpu_ptr x, y;           // [rows, width]
    frit_gpu_ptr weight, bias;   // f32 [width]
    frit_gpu_ptr residual;       // f32 [rows, width], with SUM and JOINS
    frit_gpu_ptr scales;         // f32 [rows]: factors of rows of y, with SCALED
    frit_gpu_ptr squares;        // f32 [rows]: sums of the squares of y before scaling, with SCALED
    // With JOINS: f32 [n_parts, rows, stride]; f32 [rows], factors of its rows, or 0.
    frit_gpu_ptr product, product_scales;
    float epsilon;
    int n_parts, stride, slab_rows;   // slab_rows: of y, with SCALED
} frit_norm_args;

// gate_rows.cu
typedef struct frit_gate_args {
    frit_gpu_ptr x, product_scales;        // f32 [n_parts, rows, stride]; f32 [rows]: factors of rows of x, or 0
    frit_gpu_ptr y, scales;                // f16 [rows, width]; f32 [rows]: factors of rows of y
    int n_parts, stride, slab_rows, pad;   // slab_rows: of y (slabs.cuh)
} frit_gate_args;

// glu_rows.cu
typedef struct frit_glu_args {
    frit_gpu_ptr x;      // [rows, 2 width], or [rows, width] without gates
    frit_gpu_ptr y;      // [rows, width]
    frit_gpu_ptr bias;   // f32 [width]
} frit_glu_args;

// take_rows.cu
typedef struct frit_take_rows_args {
    frit_gpu_ptr from, rows, x;   // f32 [.., width]; i32 [n]; f32 [n, width]
} frit_take_rows_args;

// heads_rows.cu
typedef struct frit_heads_args {
    frit_gpu_ptr x;                      // f32 [n_parts, rows, (heads + 2 kv heads) * head size]: queries, keys, values
    frit_gpu_ptr bias[3];                // f32: of queries, keys and values; 0: none
    frit_gpu_ptr query_norm, key_norm;   // f32 [head size]
    frit_gpu_ptr rope;                   // f32 [rows, ROTATED / 2, 2]
    frit_gpu_ptr positions, seqs;        // i32 [rows]
    frit_gpu_ptr pages;                  // i32 [seqs, page_stride]
    frit_gpu_ptr queries;                // QUERIES [rows, heads * head size]
    frit_gpu_ptr keys, values;           // this layer's part of page 0
    frit_gpu_ptr scales;                 // f32 [rows]: factors of rows of x, or 0
    float epsilon, query_scale;
    int page_stride, n_parts;   // n_parts: partial results in x
} frit_heads_args;

// attend_rows.cu: up to 64 consecutive rows of a sequence
typedef struct frit_row_tile {
    int row, n_rows, position, seq;   // row, position: of the first row
} frit_row_tile;

// With SHARED_PARTS: rows of sequences that begin with the same pages, and see all positions of these.
enum { FRIT_GPU_SHARED_ROWS = 64 };
typedef struct frit_shared_tile {
    int n_rows, n_pages, seq, pad;   // seq: one of the sequences
    int rows[FRIT_GPU_SHARED_ROWS];
} frit_shared_tile;

typedef struct frit_attend_rows_args {
    frit_gpu_ptr q;                   // f16 [rows, heads * head size], scaled by log2(e) / sqrt(head size)
    frit_gpu_ptr tiles;               // frit_row_tile, or frit_shared_tile [grid]
    frit_gpu_ptr pages;               // i32 [seqs, page_stride]
    frit_gpu_ptr keys, values;        // this layer's part of page 0
    frit_gpu_ptr sinks;               // f32 [heads]
    frit_gpu_ptr out;                 // OUT [rows, heads * head size]
    frit_gpu_ptr partial;             // with SHARED_PARTS: of frit_attend_args
    float softcap, inverse_softcap;   // times log2(e), and one over that
    int page_stride, slab_rows;       // slab_rows: of out in f16 (slabs.cuh)
} frit_attend_rows_args;

// rope_rows.cu
typedef struct frit_rope_rows_args {
    frit_gpu_ptr positions;           // i32 [rows]
    frit_gpu_ptr frequency, factor;   // f32 [ROTATED / 2]; frequencies are divided by factors, unless factor is 0
    frit_gpu_ptr rope;                // f32 [rows, ROTATED / 2, 2]: cosine and sine
    float magnitude;
    int pad;
} frit_rope_rows_args;

// exchange.cu: between the GPUs of a group (backend/group.h). The buffer of a rank, which the others write:
//
//     f32 [stages][ranks][blocks][units][unit]    pieces that ranks have sent, of one to EXCHANGE_UNITS units
//     u32 [ranks][blocks]                     flags: how many pieces each block of a rank has sent
//     u32 [blocks]                            how many pieces the rank's own blocks had sent before the launch
//     u32 [small blocks]                      how many small pieces
//     u32 [2][ranks][small blocks][2 unit]    small pieces: each number with a flag beside it
enum {
    FRIT_GPU_MOST_RANKS = 8,
    FRIT_GPU_EXCHANGE_BLOCKS = 128,
    FRIT_GPU_EXCHANGE_STAGES = 4,
    FRIT_GPU_EXCHANGE_UNITS = 4,
    FRIT_GPU_EXCHANGE_UNIT = 2048,   // numbers
    FRIT_GPU_EXCHANGE_SMALL = 32     // blocks; small pieces have one unit
};
#define FRIT_GPU_EXCHANGE_DATA_BYTES(ranks)                                                                      \
    ((unsigned long long)FRIT_GPU_EXCHANGE_STAGES * (ranks)*FRIT_GPU_EXCHANGE_BLOCKS * FRIT_GPU_EXCHANGE_UNITS * \
     FRIT_GPU_EXCHANGE_UNIT * 4)
#define FRIT_GPU_EXCHANGE_SMALL_AT(ranks)                                                    \
    (FRIT_GPU_EXCHANGE_DATA_BYTES(ranks) + ((ranks) + 1ull) * FRIT_GPU_EXCHANGE_BLOCKS * 4 + \
     FRIT_GPU_EXCHANGE_SMALL * 4)
#define FRIT_GPU_EXCHANGE_BYTES(ranks) \
    (FRIT_GPU_EXCHANGE_SMALL_AT(ranks) + 2ull * (ranks)*FRIT_GPU_EXCHANGE_SMALL * FRIT_GPU_EXCHANGE_UNIT * 8)

typedef struct frit_exchange_args {
    frit_gpu_ptr x, y;                           // f32: the rank's values; the result
    frit_gpu_ptr residual;                       // REDUCE: f32 that is added to the sum, or 0
    frit_gpu_ptr buffers[FRIT_GPU_MOST_RANKS];   // of each rank
    long long n;                                 // numbers of x
    long long inner;                             // GATHER, PART: neighbours that are of one part
    int rank, n_parts;                           // GATHER, PART: parts of the result, of x
    int n_units, pad;                            // units of a piece
} frit_exchange_args;

// gemm.cu
typedef struct frit_convert_args {
    frit_gpu_ptr x, y, scales;   // f32 [n, width], f16 [n, width]; f32 [n]: factors of rows of y
    long long n;
    int width, slab_rows;   // slab_rows: of y (slabs.cuh)
} frit_convert_args;

typedef struct frit_finish_args {
    frit_gpu_ptr x, scales;   // f32 [n_parts, rows, stride]: results; f32 [rows]: factors, or 0
    frit_gpu_ptr residual;    // f32 [rows, width], or 0
    frit_gpu_ptr y;           // f32 [rows, width]
    long long n;              // numbers of y
    int width, stride;        // of a row of y, of x
    int is_gated;             // each 16 numbers of x are 8 gates and 8 values (FRIT_CUDA_ORDER_GATED)
    int n_parts;              // partial results in x
} frit_finish_args;

// pick.cu: picks tokens from rows of logits (sample/pick.h). The host draws random bits and computes logarithms.
enum {
    FRIT_GPU_PICK_BLOCKS = 64,   // blocks of a row: FRIT_BLOCKS of sample/weight.h
    FRIT_GPU_PICK_BINS = 2048,
    FRIT_GPU_PICK_LIST = 1024,   // candidates that are sorted, at most
    FRIT_GPU_PICK_BEST = 256,    // candidates that stay after sorting, at most
    FRIT_GPU_PICK_WAVE = 64      // picks of a launch, at most
};

typedef struct frit_gpu_item {   // a bias, replaced by the logit that it changed; or one of the likeliest tokens
    int token;
    float logit;
} frit_gpu_item;

typedef struct frit_gpu_count {
    int token;        // the last one of a pick may be ~i, for before[i], which replaces it
    unsigned count;   // replaced by the bits of the logit that the penalty changed
} frit_gpu_count;

typedef struct frit_gpu_pick {
    frit_gpu_ptr biases, counts;   // frit_gpu_item [n_biases], frit_gpu_count [n_counts]
    frit_gpu_ptr mask;             // u32, a bit for each token; 0: none
    frit_gpu_ptr out, tops;        // frit_gpu_picked; frit_gpu_item [n_top]: logits. Both are memory of the host.
    unsigned long long drawn;      // the random bits that decide
    int row, n_biases, n_counts;
    int top_k, n_top, has_logprob;
    float temp, top_p, min_p, log_min_p, top_n_sigma;
    float repeat, frequency, presence;
} frit_gpu_pick;

typedef struct frit_gpu_picked {
    int token, status;   // frit_pick_status
    int is_bad;          // a logit of the row is not finite
    float logit;         // unchanged logit of the token
    float max;           // has_logprob: largest unchanged logit, and sum of e^(logit - max)
    int pad;
    double sum;
} frit_gpu_picked;

typedef struct frit_gpu_pick_state {   // between two passes over the row
    int pass;
    int uses_mask, is_bad, bad_changed;   // bad_changed: a logit that biases or penalties changed is not finite
    int lists;                            // tokens that stay are listed and sorted
    int by_weight, level;
    unsigned prefix;
    float max, least, temp, log_max;
    int last, pad;
    double wanted, log_sum;
    unsigned long long n_before, n_ties;
} frit_gpu_pick_state;

// All fields but `state` and `block_..` are zero between steps.
typedef struct frit_gpu_pick_work {
    frit_gpu_pick_state state;
    unsigned n_arrived, n_list;
    int block_bad[FRIT_GPU_PICK_BLOCKS];
    unsigned long long block_best[FRIT_GPU_PICK_BLOCKS], block_sum[FRIT_GPU_PICK_BLOCKS];
    double block_parts[FRIT_GPU_PICK_BLOCKS][3];
    unsigned long long bins[FRIT_GPU_PICK_BINS], list[FRIT_GPU_PICK_LIST];
} frit_gpu_pick_work;

typedef struct frit_pick_args {
    frit_gpu_ptr rows;     // f32 [.., n_vocab]
    frit_gpu_ptr picks;    // frit_gpu_pick [grid y]
    frit_gpu_ptr works;    // frit_gpu_pick_work [grid y]
    frit_gpu_ptr tokens;   // i32 [grid y]: tokens that the next step may read
    frit_gpu_ptr before;   // i32: tokens that the step before picked
    int n_vocab, block_size;
    int is_first, is_last;   // first and last launched pass of the step
} frit_pick_args;

// plain.cu
typedef struct frit_plain_args {
    frit_gpu_ptr x[4];   // f32, unless the kernel says otherwise; 0: absent
    frit_gpu_ptr y;
    long long n;   // numbers of y, or rows of y
    int size[6];
    float factor[4];
} frit_plain_args;

// plain_cache.cu
enum {   // cache types; types from Q8_0 on have blocks of 32 numbers
    FRIT_GPU_CACHE_F16,
    FRIT_GPU_CACHE_F32,
    FRIT_GPU_CACHE_BF16,
    FRIT_GPU_CACHE_F8,   // e4m3
    FRIT_GPU_CACHE_Q8_0,
    FRIT_GPU_CACHE_Q4_0,
    FRIT_GPU_CACHE_Q4_1,
    FRIT_GPU_CACHE_Q5_0,
    FRIT_GPU_CACHE_Q5_1,
    FRIT_GPU_CACHE_IQ4_NL
};

typedef struct frit_gpu_side {   // keys or values of a layer
    frit_gpu_ptr pages;          // address of page 0
    long long page_bytes;        // from page to page
    int dim, kind;
    int is_transposed;   // [head][dim][32 positions]; otherwise [head][32 positions][row_bytes]
    int row_bytes;       // at least those of dim numbers: values may be the first numbers of keys
    int hadamard, pad;   // frit_cache_side
} frit_gpu_side;

typedef struct frit_gpu_seq {   // frit_seq
    int first_row, n_rows, n_past, state, n_copied, copy_state, n_source;
} frit_gpu_seq;

typedef struct frit_cache_args {
    frit_gpu_ptr k, v;                       // f32 [rows, heads, dim]; v: 0 if values are the first numbers of keys
    frit_gpu_ptr positions, seq_of, pages;   // i32 [rows], [rows], [seqs, page_stride]
    frit_gpu_side keys, values;
    long long n_rows;
    int n_heads, page_stride;
} frit_cache_args;

typedef struct frit_attend_plain_args {
    frit_gpu_ptr q, out;                           // f32 [rows, heads, k dim], [rows, heads, v dim]
    frit_gpu_ptr positions, seq_of, pages, seqs;   // seqs: frit_gpu_seq
    frit_gpu_ptr sinks;                            // f32 [heads], or 0
    frit_gpu_ptr gains;                            // f32 [heads, 2 reach + 1], or 0
    frit_gpu_ptr chosen;                           // f32 [rows, n_chosen]: positions; 0: all
    frit_gpu_ptr ends;                             // f32 [rows, ends_width]: of later positions; 0: none
    frit_gpu_side keys, values;
    int n_chosen, page_stride, n_kv_heads, window, chunk, reach, is_bidirectional, is_cross, temp_length;
    int ends_at, ends_width;   // the column of ends
    float scale, softcap, alibi, temp_scale, temp_offset;
} frit_attend_plain_args;

typedef struct frit_choose_args {
    frit_gpu_ptr q, w;                       // f32 [rows, heads, dim], [rows, heads]
    frit_gpu_ptr positions, seq_of, pages;   // i32 [rows], [rows], [seqs, page_stride]
    frit_gpu_ptr y;                          // f32 [rows, n]: positions, then -1
    frit_gpu_ptr heaps;                      // [rows]: f32 [n] scores, i32 [n] positions
    frit_gpu_side keys;
    int n_heads, n, page_stride, pad;
} frit_choose_args;

// recurrent.cu
typedef struct frit_recurrent_args {
    frit_gpu_ptr x[5], y;        // f32; 0: absent
    frit_gpu_ptr states, seqs;   // the op's f32 state of session 0 in the layer; frit_gpu_seq [grid y]
    long long n_state;           // numbers from session to session
    int size[6];
} frit_recurrent_args;

// adapt.cu
typedef struct frit_gpu_low_rank {   // frit_low_rank; a is 0: no adapter for this matrix
    frit_gpu_ptr a, b;
    int rank, kind_a, kind_b, n_b;   // kinds: FRIT_GPU_CACHE_F32, _F16, _BF16; n_b: numbers of a row of b
    float scale;
    int pad;
} frit_gpu_low_rank;

typedef struct frit_adapt_args {
    frit_gpu_ptr x, h, y;                      // f32 [rows, width], [rows, n_h], y: [rows, n_h] of adapt_down
    frit_gpu_ptr table;                        // frit_gpu_low_rank or frit_gpu_ptr [n_loaded, stride]
    frit_gpu_ptr scales;                       // f32 [seqs, n_adapters]
    frit_gpu_ptr seq_of, out_rows;             // i32 [rows of the batch]; i32 [rows], or 0: rows are all of the batch
    frit_gpu_ptr picked;                       // i32: picks of the step before, which tokens may name
    int n_loaded, n_adapters, stride, index;   // index: matrix or layer, in a row of the table
    int n_h, width, first_row, is_lookup;
} frit_adapt_args;
