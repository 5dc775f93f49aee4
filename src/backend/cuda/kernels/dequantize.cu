// SPDX-License-Identifier: MIT
// Tiles as rows of bf16, for products that want them so. A block of 256 threads for each tile: a thread has 16 columns
// (a step s of a group g) of one row.
//
// Defined by the host: TYPE0, K.
#include "args.h"
#include "tile.cuh"

#define BLOCKS ((K + 255) / 256)

// The four codes that lane t has of them, as numbers.
DEVICE void codes_of(const char *tile, int row, int g, int s, int t, float (&v)[4])
{
    const int lane = row % 8 * 4 + t, h = row / 8;
    if (TYPE0 == TYPE_Q8_0) {
        const u32 w = *(const u32 *)(tile + ((g / 2 * 2 + h) * 32 + lane) * 16 + (g % 2 * 2 + s) * 4);
        for (int i = 0; i < 4; i++) v[i] = (float)signed_byte_of(w, i);
        return;
    }
    u32 w =
        *(const u32 *)(tile + ((g / 4 * 2 + h) * 32 + lane) * 16 + (g / 2 % 2 * 2 + s) * 4) >> g % 2 * 4 & 0x0f0f0f0f;
    if (TYPE0 == TYPE_Q6_K) {
        const u32 high = *(const u32 *)(tile + 2048 + (h * 32 + lane) * 16 + g / 2 * 4);
        w |= (high >> (g % 2 * 4 + s * 2) & 0x03030303) << 4;
    }
    for (int i = 0; i < 4; i++) v[i] = (float)byte_of(w, i);
}

// x = scale * code - offset
DEVICE void scale_of(const char *tile, int row, int g, int s, float &scale, float &offset)
{
    if (TYPE0 == TYPE_Q4_K) {
        const uint4 head = ((const uint4 *)(tile + 2048))[row];
        const u32 scales = g < 4 ? head.y & 0x3f3f3f3f : (head.w & 0x0f0f0f0f) | (head.y >> 2 & 0x30303030);
        const u32 mins = g < 4 ? head.z & 0x3f3f3f3f : (head.w >> 4 & 0x0f0f0f0f) | (head.z >> 2 & 0x30303030);
        scale = low_half(head.x) * (scales >> g % 4 * 8 & 255);
        offset = high_half(head.x) * (mins >> g % 4 * 8 & 255);
    } else if (TYPE0 == TYPE_Q6_K) {
        scale =
            half_to_float(((const u16 *)(tile + 3328))[row]) * ((const signed char *)tile)[3072 + row * 16 + g * 2 + s];
        offset = 32 * scale;
    } else {
        scale = half_to_float(((const u16 *)(tile + (TYPE0 == TYPE_Q8_0 ? 4096 : 2048)))[row * 8 + g]);
        offset = TYPE0 == TYPE_Q8_0 ? 0 : 8 * scale;
    }
}

extern "C" __global__ void __launch_bounds__(256) dequantize(const frit_probe_args a)
{
    __shared__ __align__(16) char tile[tile_of<TYPE0>::bytes];
    const uint4 *from = (const uint4 *)((const char *)a.in + (u64)blockIdx.x * tile_of<TYPE0>::bytes);
    for (int i = threadIdx.x; i < tile_of<TYPE0>::bytes / 16; i += 256) ((uint4 *)tile)[i] = __ldcs(from + i);
    __syncthreads();
    const int row = threadIdx.x / 16, group = threadIdx.x % 16, g = group / 2, s = group % 2;
    const int column = blockIdx.x % BLOCKS * 256 + group * 16;
    if (K % 256 && column >= K) return;
    float scale, offset;
    u32 out[8];
    scale_of(tile, row, g, s, scale, offset);
#pragma unroll
    for (int t = 0; t < 4; t++) {
        float v[4];
        codes_of(tile, row, g, s, t, v);
        out[t * 2] = pack_bf16x2(scale * v[0] - offset, scale * v[1] - offset);
        out[t * 2 + 1] = pack_bf16x2(scale * v[2] - offset, scale * v[3] - offset);
    }
    uint4 *to = (uint4 *)((u16 *)a.out + ((u64)(blockIdx.x / BLOCKS) * 16 + row) * K + column);
    to[0] = make_uint4(out[0], out[1], out[2], out[3]);
    to[1] = make_uint4(out[4], out[5], out[6], out[7]);
}
