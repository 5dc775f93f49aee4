// SPDX-License-Identifier: MIT
// Shared by gemm_small.cu and experts_rows.cu: the product of tiles, as f16 fragments in registers (f16_tile.cuh), and
// 256 columns of rows in shared memory.
//
// Defined by the host: K, ROWS (a multiple of 8), TILES (row tiles of a warp), WARPS, HALF_MATH (default 0).
#pragma once
#include "args.h"
#include "f16_tile.cuh"

#define BLOCKS   ((K + 255) / 256)
#define GROUP    (WARPS * TILES)
#define X_STRIDE 544   // bytes of a row: 512, and 32 to avoid bank conflicts
#define X_BYTES  (ROWS * X_STRIDE)

template <int TYPE> struct stage_of {
    enum { tile = tile_of<TYPE>::bytes, bytes = X_BYTES + GROUP * tile };
};

// Starts the copy of 256 columns of a warp's tiles, to shared memory after the rows.
template <int TYPE> DEVICE void fetch_tiles(const char *tiles, int n_tiles, int first, int block, u32 to)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, bytes = stage_of<TYPE>::tile;
#pragma unroll
    for (int i = 0; i < TILES; i++) {
        const int tile = min(first + warp * TILES + i, n_tiles - 1);
        const char *from = tiles + ((long long)tile * BLOCKS + block) * bytes;
        for (int unit = lane; unit < bytes / 16; unit += 32)
            copy_16(to + X_BYTES + (warp * TILES + i) * bytes + unit * 16, from + unit * 16);
    }
}

// Multiplies the first n_rows rows, eight at a time.
template <int TYPE>
DEVICE void multiply_block(const char *shared, int n_rows, int warp, int lane, frag (&sums)[TILES][ROWS / 8])
{
    const char *x = shared + lane / 4 * X_STRIDE + lane % 4 * 8;
    const char *tile[TILES];
    f16_tile<TYPE> weights[TILES];
#pragma unroll
    for (int i = 0; i < TILES; i++) {
        tile[i] = shared + X_BYTES + (warp * TILES + i) * stage_of<TYPE>::tile;
        weights[i].load(tile[i], lane);
    }
#pragma unroll
    for (int pair = 0; pair < 4; pair++) {
#pragma unroll
        for (int i = 0; i < TILES; i++) weights[i].pair(tile[i], lane, pair);
#pragma unroll
        for (int step = 0; step < 4; step++) {
            u32 w[TILES][4];
#pragma unroll
            for (int i = 0; i < TILES; i++) weights[i].fragment(pair, step / 2, step % 2, w[i]);
#pragma unroll
            for (int n = 0; n < ROWS / 8; n++) {
                if (n * 8 >= n_rows) continue;
                const uint2 v = *(const uint2 *)(x + n * 8 * X_STRIDE + pair * 128 + step * 32);
#pragma unroll
                for (int i = 0; i < TILES; i++)
                    sums[i][n] = mma_f16(w[i][0], w[i][1], w[i][2], w[i][3], v.x, v.y, sums[i][n]);
            }
        }
    }
}
