// SPDX-License-Identifier: MIT
// A product in f32 with tiles of any type, for any number of rows. Graphs that need more bits than f16 or 15-bit
// integers use it (precise.c). A block of threads has a row tile and ROWS rows; a thread has 16 of each 256 columns of
// one row of the tile.
//
// Grid: row tiles, rows in groups of ROWS; 256 threads. Defined by the host: TYPE0, K (a multiple of 32), ROWS.
#include "args.h"
#include "numbers.cuh"

#define BLOCKS ((K + 255) / 256)
#define GROUP_FLOATS  20   // floats for 16 columns; the 4 more avoid bank conflicts

extern "C" __global__ void __launch_bounds__(256, 2) precise_rows(const frit_precise_args a)
{
    __shared__ __align__(16) char tile[tile_of<TYPE0>::bytes];
    __shared__ __align__(16) float x[ROWS][16 * GROUP_FLOATS];
    const int row = threadIdx.x / 16, group = threadIdx.x % 16, first = blockIdx.y * ROWS;
    float sums[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; i++) sums[i] = 0;
    let_next_kernel_start();
    wait_for_kernel_before();
    for (int block = 0; block < BLOCKS; block++) {
        const uint4 *from =
            (const uint4 *)((const char *)a.tiles + ((u64)blockIdx.x * BLOCKS + block) * tile_of<TYPE0>::bytes);
        __syncthreads();
        for (int i = threadIdx.x; i < tile_of<TYPE0>::bytes / 16; i += 256) ((uint4 *)tile)[i] = from[i];
        for (int i = threadIdx.x; i < ROWS * 64; i += 256) {
            const int r = i / 64, at = i % 64 * 4, column = block * 256 + at;
            const bool is_there = first + r < a.n_rows && (K % 256 == 0 || column < K);
            *(float4 *)(x[r] + at / 16 * GROUP_FLOATS + at % 16) =
                is_there ? *(const float4 *)((const float *)a.x + (long long)(first + r) * K + column)
                         : make_float4(0, 0, 0, 0);
        }
        __syncthreads();
        if (K % 256 && block * 256 + group * 16 >= K) continue;
        float w[16];
        numbers_of<TYPE0>(tile, row, group / 2, group % 2, w);
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const float4 *v = (const float4 *)(x[i] + group * GROUP_FLOATS);
#pragma unroll
            for (int k = 0; k < 4; k++)
                sums[i] += w[k * 4] * v[k].x + w[k * 4 + 1] * v[k].y + w[k * 4 + 2] * v[k].z + w[k * 4 + 3] * v[k].w;
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
#pragma unroll
        for (int lane = 8; lane > 0; lane /= 2) sums[i] += __shfl_xor_sync(~0u, sums[i], lane);
        if (group == 0 && first + i < a.n_rows)
            ((float *)a.out)[(long long)(first + i) * a.stride + blockIdx.x * 16 + row] = sums[i];
    }
}
