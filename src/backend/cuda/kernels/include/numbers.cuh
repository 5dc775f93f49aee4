// SPDX-License-Identifier: MIT
// The numbers of a tile of any type, 16 columns of a row at a time.
#pragma once
#include "levels.cuh"

// Four codes of row r + 8 h of lane r * 4 + t, as bytes.
template <int TYPE> DEVICE u32 codes_at(const char *tile, int lane, int h, int g, int s)
{
    const u32 *words = (const u32 *)tile, *more = (const u32 *)(tile + tile_of<TYPE>::high_at);
    const int low = tile_of<TYPE>::low_bits, high = tile_of<TYPE>::high_bits;
    u32 codes = 0;
    if (low == 8) codes = words[((g / 2 * 2 + h) * 32 + lane) * 4 + g % 2 * 2 + s];
    if (low == 4) codes = words[((g / 4 * 2 + h) * 32 + lane) * 4 + g / 2 % 2 * 2 + s] >> g % 2 * 4 & 0x0f0f0f0f;
    if (low == 2) codes = words[(h * 32 + lane) * 4 + g / 2] >> (g % 2 * 4 + s * 2) & 0x03030303;
    if (high == 2) codes |= (more[(h * 32 + lane) * 4 + g / 2] >> (g % 2 * 4 + s * 2) & 0x03030303) << low;
    if (high == 1) codes |= (more[lane * 4 + h * 2 + g / 4] >> (g % 4 * 2 + s) & 0x01010101) << low;
    return codes;
}

// Decodes 16 columns from g * 32 + s * 16 on of a row of a tile.
template <int TYPE> DEVICE void numbers_of(const char *tile, int row, int g, int s, float (&v)[16])
{
    const int h = row / 8;
    if constexpr (tile_of<TYPE>::low_bits == 16) {
#pragma unroll
        for (int t = 0; t < 4; t++) {
            const u32 *words = (const u32 *)tile + ((g * 2 + s) * 32 + row % 8 * 4 + t) * 4 + h;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const u32 two = words[i / 2 * 2];
                v[t * 4 + i] = TYPE == TYPE_F16 ? (i % 2 ? high_half(two) : low_half(two))
                                                : __uint_as_float(i % 2 ? two & 0xffff0000 : two << 16);
            }
        }
    } else if constexpr (tile_of<TYPE>::low_bits == 32) {
#pragma unroll
        for (int t = 0; t < 4; t++) {
            const float4 four = ((const float4 *)tile)[((g * 2 + s) * 2 + h) * 32 + row % 8 * 4 + t];
            v[t * 4] = four.x, v[t * 4 + 1] = four.y, v[t * 4 + 2] = four.z, v[t * 4 + 3] = four.w;
        }
    } else if constexpr (TYPE == TYPE_FP8_128) {
        const float scale = scale_of_e4m3(tile, row, g / 4) * 256;
#pragma unroll
        for (int t = 0; t < 4; t++) {
            const u32 codes = codes_at<TYPE>(tile, row % 8 * 4 + t, h, g, s);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const u32 two = halves_of_e4m3(codes, i);
                v[t * 4 + i * 2] = scale * low_half(two), v[t * 4 + i * 2 + 1] = scale * high_half(two);
            }
        }
    } else {
        scales_of<TYPE> scales;
        scales.load(tile, row);
        const float scale = scales.scale(g, s), min = scales.min(g, s);
#pragma unroll
        for (int t = 0; t < 4; t++) {
            u32 codes = codes_at<TYPE>(tile, row % 8 * 4 + t, h, g, s);
            if (table_of<TYPE>::is_used) {
                u32 none;
                look_up<TYPE>(codes, codes, none);
            }
            codes = less(codes, center_of<TYPE>::value);
#pragma unroll
            for (int i = 0; i < 4; i++)
                v[t * 4 + i] =
                    scale * (levels_of<TYPE>::is_signed ? signed_byte_of(codes, i) : byte_of(codes, i)) - min;
        }
    }
}

// Decodes a row of a matrix of tiles with COLUMNS columns, times `scale`. All threads of the block call it.
template <int TYPE, int COLUMNS> DEVICE void embed_numbers(u64 tiles, int row, float *to, float scale)
{
    for (int i = threadIdx.x; i < COLUMNS / 16; i += blockDim.x) {
        const long long tile = (long long)(row / 16) * ((COLUMNS + 255) / 256) + i / 16;
        float v[16];
        numbers_of<TYPE>((const char *)tiles + tile * tile_of<TYPE>::bytes, row % 16, i % 16 / 2, i % 2, v);
#pragma unroll
        for (int j = 0; j < 16; j += 4)
            *(float4 *)(to + i * 16 + j) =
                make_float4(v[j] * scale, v[j + 1] * scale, v[j + 2] * scale, v[j + 3] * scale);
    }
}
