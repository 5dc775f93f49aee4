// SPDX-License-Identifier: MIT
// A phase of a decode step: the conversion of its input, the product of each row tile with weights that stream through
// shared memory, and an epilogue. Made for 1 to 16 rows, where the time is that of reading the weights. product.cu and
// experts.cu are kernels made of it.
//
// A block of threads has GROUPS groups of WARPS warps. Group g computes the row tiles blockIdx.x + (i * GROUPS + g) *
// GRID; the warps of a group share the columns of a tile. Each warp has a ring of STAGES tiles in shared memory, which
// it fills ahead of the products.
//
// The host defines (product.c):
//
//     name           meaning                                                                  8B gate-up, 1 row
//     ROWS           rows of the input, 1 to 16                                               1
//     GROUPS, WARPS  groups of warps in a block; warps of a group                             2, 8
//     GRID           blocks that share the row tiles                                          132
//     K              columns                                                                  4096
//     STAGES         tiles in the ring of a warp                                              2
//     OPEN_STAGES    tiles of the ring that are fetched before the input is read              1
//     STAGE_BYTES    bytes of the largest tile                                                2304
//     COPY           1: bulk copies (sm_90); 0: cp.async                                      1
//     IS_16_BITS     1: weights are f32, f16 or bf16, multiplied in f16 or bf16; 0: codes     0
//     GLU_ACT        with EPILOGUE_GLU: the activation; ACT_SILU if it is not defined         -
//     HEADS, KV_HEADS, HEAD, PAGE_BYTES, IS_NEOX
//                    with EPILOGUE_QKV: shape of heads and cache; IS_NEOX 1: a pair that is
//                    rotated is p and p + HEAD / 2, otherwise 2p and 2p + 1
//
// A phase is a struct of constants and two functions:
//
//     k, stride      columns; numbers from row to row of the input
//     type0, tiles0  type and row tiles of the first matrix
//     type1, tiles1  type and row tiles of the second matrix, or 0 tiles
//     n              rows of the matrices, without the padding of the last tile
//     norm           true: the input is normed
//     epilogue       EPILOGUE_STORE, _ADD, _GLU or _QKV
//     load, result   where a row of the input lies, and where its results go; rows_in_order has the usual ones
#pragma once
#include "activation.cuh"
#include "args.h"
#include "tile_any.cuh"

#define EPILOGUE_STORE 0   // out = v
#define EPILOGUE_ADD   1   // out = residual + v
#define EPILOGUE_GLU   2   // rows r and r + 8 of a tile are a gate and its value: out = act(gate) * value
#define EPILOGUE_QKV   3   // rows r and r + 8 of a tile are a pair: rotates queries and keys, writes the cache

#ifndef GLU_ACT
#define GLU_ACT ACT_SILU
#endif

#define IS_BF16_INPUT(type) ((type) == TYPE_BF16 || (type) == TYPE_F32)
#define THREADS             (GROUPS * WARPS * 32)
#define PAIRS               ((ROWS + 1) / 2)   // of columns of the results: a warp finishes two at a time
#define BLOCKS_OF(k)        (((k) + 255) / 256)
#define BLOCK_BYTES         (IS_16_BITS ? 512 : 256)
#define COLUMN_BYTES_OF(k)  (BLOCKS_OF(k) * BLOCK_BYTES + 64)   // the 64 keep two columns in different banks
#define SUM_BYTES_OF(k)     (BLOCKS_OF(k) * 80)                 // 64 bytes of sums, the factor

// Shared memory: ring | activations, what they round | their sums and factors | partial results | squares | barriers
static const int x_at = GROUPS * WARPS * STAGES * STAGE_BYTES;
static const int sums_at = x_at + 2 * ROWS * COLUMN_BYTES_OF(K);
static const int partial_at = sums_at + ROWS * SUM_BYTES_OF(K);
static const int squares_at = partial_at + GROUPS * 2 * WARPS * ROWS * 16 * 4;
static const int barriers_at = squares_at + (GROUPS * WARPS * ROWS * 4 + 7) / 8 * 8;
static const int shared_end = barriers_at + GROUPS * WARPS * STAGES * 8;

// ------------------------------------------------------------------------------- the weights' ring of a warp

// A matrix of a phase. Row tiles are counted through both matrices: `weights` is where row tile 0 of the phase would
// be.
struct matrix {
    u64 weights;
    int end;             // row tiles of the phase up to the end of this matrix
    int blocks, bytes;   // blocks of a row tile that are read; bytes of a tile
    int stride;          // blocks from row tile to row tile
    int is_new;          // the first of the phase
};

struct ring {
    u32 tiles, barriers;   // shared addresses of this warp's
    matrix now;
    const char *from;              // the next tile to fetch
    int tile, block, begin, end;   // the row tile, and this warp's blocks of it
    int first_tile;                // of this group
    int fetch_stage, stage, parity;
    bool is_done;
};

// A list of matrices says where tiles lie. These: those of a row tile one after the other.
struct tiles_in_order {
    // Finds the tile of the ring's row tile and block.
    DEVICE void locate(ring &r) const
    {
        r.from = (const char *)r.now.weights + ((long long)r.tile * r.now.stride + r.block) * r.now.bytes;
    }
    // Moves to the next tile of the row tile.
    DEVICE void advance(ring &r) const
    {
        r.from += r.now.bytes;
    }
};

// First block of 256 columns that the warp multiplies.
DEVICE int first_block(int blocks, int warp)
{
    return warp * blocks / WARPS;
}

// Finds the next row tile of which this warp has blocks. NEXT has the functions of tiles_in_order, and bool
// next(matrix &), which is false after the last matrix.
template <class NEXT> DEVICE void ring_seek(ring &r, NEXT &list, int warp)
{
    while (r.tile >= r.now.end || r.begin == r.end) {
        if (!list.next(r.now)) {
            r.is_done = true;
            return;
        }
        if (r.now.is_new) {
            r.tile = r.first_tile;
            r.begin = first_block(r.now.blocks, warp);
            r.end = first_block(r.now.blocks, warp + 1);
        }
    }
    r.block = r.begin;
    list.locate(r);
}

template <class NEXT> DEVICE void ring_fetch(ring &r, NEXT &list, int warp, int lane)
{
    if (!r.is_done) {
        const u32 to = r.tiles + r.fetch_stage * STAGE_BYTES;
#if COPY
        if (lane == 0) copy_bulk(to, r.from, r.now.bytes, r.barriers + r.fetch_stage * 8);
#else
        for (int i = lane * 16; i < r.now.bytes; i += 512) copy_16(to + i, r.from + i);
#endif
        if (++r.fetch_stage == STAGES) r.fetch_stage = 0;
        if (++r.block == r.end) {
            r.tile += GRID * GROUPS;
            ring_seek(r, list, warp);
        } else {
            list.advance(r);
        }
    }
#if !COPY
    copy_commit();   // also without copies, because the wait counts groups
#endif
}

template <class NEXT> DEVICE void ring_open(ring &r, NEXT &list, u32 shared, int group, int warp, int lane)
{
    const int ring = group * WARPS + warp;
    r.tiles = shared + ring * STAGES * STAGE_BYTES;
    r.barriers = shared + barriers_at + ring * STAGES * 8;
    r.first_tile = blockIdx.x + group * GRID;
    r.tile = r.begin = r.end = r.now.end = 0;
    r.stage = r.parity = r.fetch_stage = 0;
    r.is_done = false;
#if COPY
    if (lane == 0) {
        for (int i = 0; i < STAGES; i++) barrier_init(r.barriers + i * 8, 1);
        barrier_init_done();
    }
    __syncwarp();
#endif
    ring_seek(r, list, warp);
    for (int i = 0; i < OPEN_STAGES; i++) ring_fetch(r, list, warp, lane);
}

// Fills the rest of the ring, after loads that are needed sooner were started.
template <class NEXT> DEVICE void ring_fill(ring &r, NEXT &list, int warp, int lane)
{
    for (int i = OPEN_STAGES; i < STAGES; i++) ring_fetch(r, list, warp, lane);
}

DEVICE void ring_wait(ring &r)
{
#if COPY
    barrier_wait(r.barriers + r.stage * 8, r.parity);
#else
    copy_wait<STAGES - 1>();
    __syncwarp();
#endif
}

template <class NEXT> DEVICE void ring_next(ring &r, NEXT &list, int warp, int lane)
{
    __syncwarp();   // all lanes have read the tile that is overwritten next
    ring_fetch(r, list, warp, lane);
    if (++r.stage == STAGES) {
        r.stage = 0;
        r.parity ^= 1;
    }
}

// ------------------------------------------------------------------------------- the input

// Each warp converts the columns that it multiplies: block by block, 8 columns a lane. With one group no warp waits for
// another. With several groups, the warps that multiply the same columns divide the conversion among them.

struct eight {
    float v[8];
};

// Loads results of other blocks of threads, so it bypasses the L1.
template <int N> DEVICE eight load_eight(const float *row, int column)
{
    eight e;
    float4 a = make_float4(0, 0, 0, 0), b = a;
    if (N % 256 == 0 || column < N) {   // N is a multiple of 32
        a = __ldcg((const float4 *)(row + column));
        b = __ldcg((const float4 *)(row + column + 4));
    }
    e.v[0] = a.x, e.v[1] = a.y, e.v[2] = a.z, e.v[3] = a.w, e.v[4] = b.x, e.v[5] = b.y, e.v[6] = b.z, e.v[7] = b.w;
    return e;
}

// The usual layout: rows follow each other in the input and in the results.
template <class P> struct rows_in_order {
    static DEVICE eight load(const frit_product_args &a, int row, int column)
    {
        return load_eight<P::k>((const float *)a.x + (long long)row * P::stride, column);
    }
    static DEVICE long long result(const frit_product_args &, int column)
    {
        return column;
    }
};

// Stores the sum of a group of 16 columns (two lanes with eight each), divided by 8, as two f16.
DEVICE void store_sum(char *sums, int lane, float sum)
{
    sum = (sum + __shfl_xor_sync(~0u, sum, 1)) * 0.125f;
    if (lane % 2) return;
    const u16 high = float_to_half(sum);
    ((u16 *)sums)[lane / 2] = high;
    ((u16 *)sums)[16 + lane / 2] = float_to_half(sum - half_to_float(high));
}

// Splits four 15-bit integers into 128 * high + low, with low from -64 to 63. The integers are the last bits of words
// and have 64 added, so high is what is above the last 7 bits.
DEVICE void split_four(const u32 (&u)[4], u32 &high, u32 &low)
{
    const u32 first = __byte_perm(u[0], u[1], 0x5410), second = __byte_perm(u[2], u[3], 0x5410);
    const u32 left = (__byte_perm(first, second, 0x6420) & 0x7f7f7f7fu) ^ 0x40404040u;
    high = __byte_perm(first >> 7, second >> 7, 0x6420);
    low = left | (left & 0x40404040u) << 1;
}

// Stores a block as 15-bit integers, 128 * high + low, and the factor that one unit stands for.
template <class P> DEVICE void store_8_bits(char *to, char *sums, int lane, const eight &e)
{
    const float round = 12582912.f + 64;   // 1.5 * 2^23: adding it rounds to an integer, in the last bits
    float largest = 0;
    u32 sum = 0u - 8 * 0x4b400040u;        // cancels the bits of `round` in the sum
#pragma unroll
    for (int i = 0; i < 8; i++) largest = fmaxf(largest, fabsf(e.v[i]));
    largest = warp_max(largest);
    const float scale = largest > 0 ? __fdividef(16256.f, largest) : 0;
    u32 high[2], low[2];
#pragma unroll
    for (int w = 0; w < 2; w++) {
        u32 u[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            u[i] = __float_as_uint(e.v[w * 4 + i] * scale + round);
            sum += u[i];
        }
        split_four(u, high[w], low[w]);
    }
    // Columns lane * 8: group lane / 4, step lane / 2 % 2, lanes t = lane % 2 * 2 and + 1.
    char *at = to + lane / 8 * 64 + lane % 2 * 32 + lane / 4 % 2 * 8 + lane / 2 % 2 * 4;
    *(u32 *)at = high[0];
    *(u32 *)(at + 16) = high[1];
    *(u32 *)(at + (ROWS * COLUMN_BYTES_OF(P::k))) = low[0];
    *(u32 *)(at + (ROWS * COLUMN_BYTES_OF(P::k)) + 16) = low[1];
    if (lane == 0) *(float *)(sums + 64) = largest * (1 / 16256.f);
    store_sum(sums, lane, (float)(int)sum);
}

template <class P> DEVICE void store_16_bits(char *to, char *sums, int lane, const eight &e)
{
    float largest = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) largest = fmaxf(largest, fabsf(e.v[i]));
    const float scale = IS_BF16_INPUT(P::type0) ? 1 : half_scale(warp_max(largest));
    char *at = to + lane / 4 * 64 + lane % 2 * 32 + lane / 2 % 2 * 8;
#pragma unroll
    for (int w = 0; w < 2; w++) {
        float v[4];
#pragma unroll
        for (int i = 0; i < 4; i++) v[i] = e.v[w * 4 + i] * scale;
        uint2 high, low;
        if (IS_BF16_INPUT(P::type0)) {
            high = make_uint2(pack_bf16x2(v[0], v[1]), pack_bf16x2(v[2], v[3]));
            low.x = pack_bf16x2(v[0] - __uint_as_float(high.x << 16), v[1] - __uint_as_float(high.x & 0xffff0000));
            low.y = pack_bf16x2(v[2] - __uint_as_float(high.y << 16), v[3] - __uint_as_float(high.y & 0xffff0000));
        } else {
            high = make_uint2(pack_half2(v[0], v[1]), pack_half2(v[2], v[3]));
            low.x = pack_half2(v[0] - low_half(high.x), v[1] - high_half(high.x));
            low.y = pack_half2(v[2] - low_half(high.y), v[3] - high_half(high.y));
        }
        *(uint2 *)(at + w * 16) = high;
        *(uint2 *)(at + (ROWS * COLUMN_BYTES_OF(P::k)) + w * 16) = low;
    }
    if (lane == 0) *(float *)(sums + 64) = 1 / scale;
}

// Multiplies by the norm's weights and stores. Returns the sum of squares, by which results are divided at the end.
template <class P> DEVICE float convert_block(char *shared, int row, int block, int lane, eight e, const eight &w)
{
    float squares = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        squares += e.v[i] * e.v[i];
        if (P::norm) e.v[i] *= w.v[i];
    }
    char *to = shared + x_at + row * COLUMN_BYTES_OF(P::k) + block * BLOCK_BYTES;
    char *sums = shared + sums_at + row * SUM_BYTES_OF(P::k) + block * 80;
    if (IS_16_BITS)
        store_16_bits<P>(to, sums, lane, e);
    else
        store_8_bits<P>(to, sums, lane, e);
    return squares;
}

// wait() returns when the input can be read.
template <class P, class WAIT>
DEVICE void convert_input(const frit_product_args &a, char *shared, int group, int warp, int lane, WAIT wait)
{
    const int most = ((BLOCKS_OF(P::k) + WARPS - 1) / WARPS + GROUPS - 1) / GROUPS;
    const int begin = first_block(BLOCKS_OF(P::k), warp) + group, end = first_block(BLOCKS_OF(P::k), warp + 1);
    const bool keeps = ROWS == 1 && most <= 8;   // all loads are started before the first one is used
    const float *norm = (const float *)a.norm;
    const int at_once = keeps ? 1 : ROWS < 4 ? ROWS : 4;   // rows that are loaded together
    eight e[keeps ? most : at_once], w[keeps && P::norm ? most : 1];
    float squares[ROWS];
#pragma unroll
    for (int row = 0; row < ROWS; row++) squares[row] = 0;
    if (keeps && P::norm) {
#pragma unroll
        for (int j = 0; j < most; j++)
            if (begin + j * GROUPS < end) w[j] = load_eight<P::k>(norm, (begin + j * GROUPS) * 256 + lane * 8);
    }
    wait();
    if (keeps) {
#pragma unroll
        for (int j = 0; j < most; j++)
            if (begin + j * GROUPS < end) e[j] = P::load(a, 0, (begin + j * GROUPS) * 256 + lane * 8);
#pragma unroll
        for (int j = 0; j < most; j++)
            if (begin + j * GROUPS < end)
                squares[0] += convert_block<P>(shared, 0, begin + j * GROUPS, lane, e[j], w[P::norm ? j : 0]);
    } else {
        for (int block = begin; block < end; block += GROUPS) {
            if (P::norm) w[0] = load_eight<P::k>(norm, block * 256 + lane * 8);
#pragma unroll
            for (int first = 0; first < ROWS; first += at_once) {
#pragma unroll
                for (int i = 0; i < at_once; i++)
                    if (first + i < ROWS) e[i] = P::load(a, min(first + i, a.n_rows - 1), block * 256 + lane * 8);
#pragma unroll
                for (int i = 0; i < at_once; i++)
                    if (first + i < ROWS)
                        squares[first + i] += convert_block<P>(shared, first + i, block, lane, e[i], w[0]);
            }
        }
    }
    if (P::norm) {
#pragma unroll
        for (int row = 0; row < ROWS; row++) {
            const float sum = warp_sum(squares[row]);
            if (lane == 0) ((float *)(shared + squares_at))[(row * GROUPS + group) * WARPS + warp] = sum;
        }
    }
    if (GROUPS > 1)
        __syncthreads();
    else
        __syncwarp();
}

// ------------------------------------------------------------------------------- the results

// Lanes hold the results of one column: row lane % 16 of a tile. Returns the result of row + 8, or row - 8.
DEVICE float other_row(float v)
{
    return __shfl_xor_sync(~0u, v, 8);
}

#ifdef HEADS
#include "cache.cuh"
#define HEAD_TILES (HEAD / 16)
#define Q_TILES    (HEADS * HEAD_TILES)
#define K_TILES    (KV_HEADS * HEAD_TILES)

DEVICE void finish_qkv(const frit_product_args &a, int tile, int row, int column, float v, float other)
{
    const int position = __ldcg((const int *)a.positions + column);
    const int seq = a.seq_of ? __ldcg((const int *)a.seq_of + column) : column;
    const int page = __ldcg((const int *)a.pages + (long long)seq * a.page_stride + position / 32);
    const int r = row % 8, head = tile / HEAD_TILES, pair = tile % HEAD_TILES * 8 + r;
    if (tile < Q_TILES + K_TILES) {
        const float2 rotation = __ldcg((const float2 *)a.rope + column * (HEAD / 2) + pair);
        const float y = row < 8 ? v * rotation.x - other * rotation.y : v * rotation.x + other * rotation.y;
        const int dim = IS_NEOX ? pair + (row >= 8) * (HEAD / 2) : pair * 2 + (row >= 8);
        if (tile < Q_TILES) {
            ((u16 *)a.out)[(column * HEADS + head) * HEAD + dim] = float_to_half(y * a.query_scale);
        } else {
            char *keys = (char *)a.keys + (long long)page * PAGE_BYTES + (head - HEADS) * (32 * HEAD * 2);
            ((u16 *)keys)[position % 32 * HEAD + dim] = float_to_half(y);
        }
    } else {
        char *values = (char *)a.values + (long long)page * PAGE_BYTES + (head - HEADS - KV_HEADS) * (32 * HEAD * 2);
        ((u16 *)values)[(tile % HEAD_TILES * 16 + row) * 32 + position % 32] = float_to_half(v);
    }
}
#endif

template <class P>
DEVICE void finish(const frit_product_args &a, int tile, int row, int column, float v, float other, float before)
{
    const int n = P::n;
    float *out = (float *)a.out;
    if (n % 16 && tile * 16 + row >= n) return;
    if constexpr (P::epilogue == EPILOGUE_STORE) out[P::result(a, column) * n + tile * 16 + row] = v;
    if constexpr (P::epilogue == EPILOGUE_ADD) out[P::result(a, column) * n + tile * 16 + row] = before + v;
    if constexpr (P::epilogue == EPILOGUE_GLU) {
        if (row < 8) out[P::result(a, column) * (n / 2) + tile * 8 + row] = activate<GLU_ACT>(v) * other;
    }
#ifdef HEADS
    if constexpr (P::epilogue == EPILOGUE_QKV) finish_qkv(a, tile, row, column, v, other);
#endif
}

// Each pair of columns of the results is finished by one warp. With more warps than pairs, the finishing warps
// alternate from tile to tile, so that no warp falls behind.
#define FINISHERS (PAIRS < WARPS ? PAIRS : WARPS)
#define OWN_PAIRS ((PAIRS + WARPS - 1) / WARPS)   // pairs that a warp finishes: warp % FINISHERS + i * WARPS

DEVICE bool is_next_warp(int warp, int i)
{
    return warp / FINISHERS == i % (WARPS / FINISHERS);
}

DEVICE int column_of(int i, int warp, int lane)
{
    return (warp % FINISHERS + i * WARPS) * 2 + lane / 16;
}

// Residuals of EPILOGUE_ADD, loaded before the products.
struct residual {
    float v[OWN_PAIRS];
};

template <class P> DEVICE void fetch_residual(const frit_product_args &a, int tile, int lane, int warp, residual &old)
{
#pragma unroll
    for (int i = 0; i < OWN_PAIRS; i++) {
        const int column = column_of(i, warp, lane);
        if (P::epilogue == EPILOGUE_ADD && column < a.n_rows)
            old.v[i] = __ldcg((const float *)(a.residual ? a.residual : a.out) + P::result(a, column) * P::n +
                              min(tile * 16 + lane % 16, P::n - 1));
    }
}

// The factor of the norm of column lane % 16, from the squares that the warps added while they converted it.
template <class P> DEVICE float norm_of_column(const frit_product_args &a, const char *shared, int lane)
{
    const float *squares = (const float *)(shared + squares_at) + min(lane % 16, ROWS - 1) * GROUPS * WARPS;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < GROUPS * WARPS; i++) sum += squares[i];
    return rsqrtf(sum / P::k + a.epsilon);
}

// Finishes the columns of this warp: adds the partial results of the group's warps for each row of the tile.
template <class P>
DEVICE void finish_tile(const frit_product_args &a, const float *partial, int tile, int lane, int warp, float norm,
                        const residual &old)
{
    const int row = lane % 16;
#pragma unroll
    for (int i = 0; i < OWN_PAIRS; i++) {
        const int column = column_of(i, warp, lane), real = min(column, ROWS - 1);
        float v = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++) v += partial[(w * ROWS + real) * 16 + row];
        if (P::norm) v *= __shfl_sync(~0u, norm, real);
        const float other = P::epilogue == EPILOGUE_GLU || P::epilogue == EPILOGUE_QKV ? other_row(v) : 0;
        if (column < a.n_rows) finish<P>(a, tile, row, column, v, other, old.v[i]);
    }
}

// ------------------------------------------------------------------------------- the products

template <class P, int TYPE, class NEXT>
DEVICE void multiply_tiles(const frit_product_args &a, char *shared, ring &r, NEXT &list, int end, int group, int warp,
                           int lane, int &tile, int &i_tile, float &norm)
{
    const int NB = (ROWS + 7) / 8, t = lane % 4;
    const int begin_block = first_block(BLOCKS_OF(P::k), warp), end_block = first_block(BLOCKS_OF(P::k), warp + 1);
    const char *x[NB], *sums_of_column[NB], *factor0[NB], *factor1[NB];
#pragma unroll
    for (int b = 0; b < NB; b++) {
        const int column = min(b * 8 + lane / 4, ROWS - 1), result = b * 8 + t * 2;
        x[b] = shared + x_at + column * COLUMN_BYTES_OF(P::k) + t * 16;
        sums_of_column[b] = shared + sums_at + column * SUM_BYTES_OF(P::k) + t * 4;
        factor0[b] = shared + sums_at + min(result, ROWS - 1) * SUM_BYTES_OF(P::k) + 64;
        factor1[b] = shared + sums_at + min(result + 1, ROWS - 1) * SUM_BYTES_OF(P::k) + 64;
    }
    for (; tile < end; tile += GRID * GROUPS, i_tile++) {
        sums_of<NB> sums;
        residual old = {};
        sums.clear();
        if (is_next_warp(warp, i_tile)) fetch_residual<P>(a, tile, lane, warp, old);
        for (int block = begin_block; block < end_block; block++) {
            columns c[NB];
#pragma unroll
            for (int b = 0; b < NB; b++)
                c[b] = {x[b] + block * BLOCK_BYTES, x[b] + ROWS * COLUMN_BYTES_OF(P::k) + block * BLOCK_BYTES,
                        sums_of_column[b] + block * 80, (const float *)(factor0[b] + block * 80),
                        (const float *)(factor1[b] + block * 80)};
            ring_wait(r);
            tile_product<TYPE, NB>(shared + ((group * WARPS + warp) * STAGES + r.stage) * STAGE_BYTES, lane, c, sums);
            ring_next(r, list, warp, lane);
        }
        // Two buffers alternate: a warp that is a tile ahead does not touch what the finishing warp reads.
        float *partial = (float *)(shared + partial_at) + (group * 2 + i_tile % 2) * WARPS * ROWS * 16;
#pragma unroll
        for (int b = 0; b < NB; b++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int column = b * 8 + t * 2 + i % 2;
                if (column < ROWS) partial[(warp * ROWS + column) * 16 + lane / 4 + i / 2 * 8] = sums.v[b].v[i];
            }
        threads_sync<WARPS * 32>(1 + group);
        if (P::norm && norm < 0) norm = norm_of_column<P>(a, shared, lane);
        if (is_next_warp(warp, i_tile)) finish_tile<P>(a, partial, tile, lane, warp, norm, old);
    }
}

// A whole phase, after its input was converted.
template <class P, class NEXT>
DEVICE void run_phase(const frit_product_args &a, char *shared, ring &r, NEXT &list, int group, int warp, int lane)
{
    int tile = blockIdx.x + group * GRID, i_tile = 0;
    float norm = -1;   // not computed yet
    multiply_tiles<P, P::type0>(a, shared, r, list, P::tiles0, group, warp, lane, tile, i_tile, norm);
    if constexpr (P::tiles1 > 0)
        multiply_tiles<P, P::type1>(a, shared, r, list, P::tiles0 + P::tiles1, group, warp, lane, tile, i_tile, norm);
}
