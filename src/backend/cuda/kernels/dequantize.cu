// SPDX-License-Identifier: MIT
// Converts tiles to rows of bf16 or f16 for cuBLASLt. A block of 256 threads for each tile; a thread has 16 columns
// (step s of group g) of one row.
//
// Defined by the host: TYPE0, K, IS_F16 (1: f16, 0: bf16).
#include "args.h"
#include "numbers.cuh"

#define BLOCKS ((K + 255) / 256)

DEVICE u32 two_numbers(float x, float y)
{
    return IS_F16 ? pack_half2(x, y) : pack_bf16x2(x, y);
}

extern "C" __global__ void __launch_bounds__(256) dequantize(const frit_dequantize_args a)
{
    __shared__ __align__(16) char tile[tile_of<TYPE0>::bytes];
    const uint4 *from = (const uint4 *)((const char *)a.tiles + (u64)blockIdx.x * tile_of<TYPE0>::bytes);
    for (int i = threadIdx.x; i < tile_of<TYPE0>::bytes / 16; i += 256) ((uint4 *)tile)[i] = __ldcs(from + i);
    __syncthreads();
    const int row = threadIdx.x / 16, group = threadIdx.x % 16;
    const int column = blockIdx.x % BLOCKS * 256 + group * 16;
    if (K % 256 && column >= K) return;
    float v[16];
    u32 out[8];
    numbers_of<TYPE0>(tile, row, group / 2, group % 2, v);
#pragma unroll
    for (int i = 0; i < 8; i++) out[i] = two_numbers(v[2 * i], v[2 * i + 1]);
    uint4 *to = (uint4 *)((u16 *)a.out + ((u64)(blockIdx.x / BLOCKS) * 16 + row) * K + column);
    to[0] = make_uint4(out[0], out[1], out[2], out[3]);
    to[1] = make_uint4(out[4], out[5], out[6], out[7]);
}
