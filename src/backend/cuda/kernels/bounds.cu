// SPDX-License-Identifier: MIT
// The largest sum of squares of a row of gates, and of a row of values (rows r and r + 8 of each tile). They bound the
// products of a vector with gates and values. A block of threads for each row tile.
//
// Grid: row tiles; 256 threads. Defined by the host: TYPE0, K (a multiple of 32).
#include "args.h"
#include "numbers.cuh"

#define BLOCKS ((K + 255) / 256)

extern "C" __global__ void __launch_bounds__(256) bounds(const frit_bounds_args a)
{
    const int row = threadIdx.x / 16, group = threadIdx.x % 16;
    float squares = 0;
    for (int block = 0; block < BLOCKS; block++) {
        const char *tile = (const char *)a.tiles + ((u64)blockIdx.x * BLOCKS + block) * tile_of<TYPE0>::bytes;
        float v[16];
        if (K % 256 && block * 256 + group * 16 >= K) continue;
        numbers_of<TYPE0>(tile, row, group / 2, group % 2, v);
#pragma unroll
        for (int i = 0; i < 16; i++) squares += v[i] * v[i];
    }
#pragma unroll
    for (int lane = 8; lane > 0; lane /= 2) squares += __shfl_xor_sync(~0u, squares, lane);
    // Non-negative floats compare like their bits.
    if (group == 0) atomicMax((u32 *)a.largest + row / 8, __float_as_uint(squares));
}
