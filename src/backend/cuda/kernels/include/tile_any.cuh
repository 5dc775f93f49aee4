// SPDX-License-Identifier: MIT
// Products of one weight tile of any type. tile.cuh has faster products for the most frequent types.
#pragma once
#include "tile.cuh"

// Levels are 8-bit integers, scales are floats.
template <int TYPE, int NB>
DEVICE void tile_levels(const char *tile, int lane, const columns (&c)[NB], sums_of<NB> &sums)
{
    typedef levels_of<TYPE> kind;
    const int r = lane / 4, t = lane % 4;
    scales_of<TYPE> row, row8;
    kind levels;
    frag part[NB];
    row.load(tile, r);
    row8.load(tile, r + 8);
    levels.load(tile, lane);
#pragma unroll
    for (int b = 0; b < NB; b++) part[b] = no_frag();
#pragma unroll
    for (int pair = 0; pair < 4; pair++) {
        u32 v[2][2][2];
        levels.pair(tile, lane, pair, v);
#pragma unroll
        for (int b = 0; b < NB; b++) {
            const uint4 x = *(const uint4 *)(c[b].x + pair * 64), low = *(const uint4 *)(c[b].low + pair * 64);
#pragma unroll
            for (int odd = 0; odd < 2; odd++) {
                const int g = pair * 2 + odd;
                if (scales_of<TYPE>::step == 32) {
                    add_scaled(part[b],
                               multiply_group<kind::is_signed>(v[odd][0][0], v[odd][0][1], v[odd][1][0], v[odd][1][1],
                                                               x, low, odd),
                               row.scale(g, 0), row8.scale(g, 0));
                    continue;
                }
#pragma unroll
                for (int s = 0; s < 2; s++) {
                    const u32 *a = v[odd][s];
                    const int_frag h = mma_8_bits_half<kind::is_signed>(a[0], a[1], word_of(x, odd * 2 + s));
                    const int_frag l = mma_8_bits_half<kind::is_signed>(a[0], a[1], word_of(low, odd * 2 + s));
                    frag whole;
#pragma unroll
                    for (int i = 0; i < 4; i++) whole.v[i] = (float)(h.v[i] * 128 + l.v[i]);
                    add_scaled(part[b], whole, row.scale(g, s), row8.scale(g, s));
                }
            }
        }
    }
#pragma unroll
    for (int b = 0; b < NB; b++) {
        if (scales_of<TYPE>::has_mins)
            add_scaled(part[b],
                       product_of_sums(row.min_pair(t, false), row8.min_pair(t, false), row.min_pair(t, true),
                                       row8.min_pair(t, true), c[b].sums),
                       -row.min_unit(), -row8.min_unit());
        add_tile(sums.v[b], part[b], c[b]);
    }
}

// Two numbers as bf16, and the remainders as bf16.
DEVICE void split_bf16(float x, float y, u32 &high, u32 &low)
{
    high = pack_bf16x2(x, y);
    low = pack_bf16x2(x - __uint_as_float(high << 16), y - __uint_as_float(high & 0xffff0000));
}

// f32 weights and activations are the sums of two bf16 each, which keeps 16 bits.
template <int NB> DEVICE void tile_f32(const char *tile, int lane, const columns (&c)[NB], sums_of<NB> &sums)
{
    frag part[NB];
#pragma unroll
    for (int b = 0; b < NB; b++) part[b] = no_frag();
#pragma unroll
    for (int step = 0; step < 16; step++) {
        const float4 w = ((const float4 *)tile)[step * 64 + lane], v = ((const float4 *)tile)[step * 64 + 32 + lane];
        u32 high[4], low[4];
        split_bf16(w.x, w.y, high[0], low[0]);
        split_bf16(v.x, v.y, high[1], low[1]);
        split_bf16(w.z, w.w, high[2], low[2]);
        split_bf16(v.z, v.w, high[3], low[3]);
#pragma unroll
        for (int b = 0; b < NB; b++) {
            const uint2 x = *(const uint2 *)(c[b].x + step / 2 * 64 + step % 2 * 8);
            const uint2 rest = *(const uint2 *)(c[b].low + step / 2 * 64 + step % 2 * 8);
            part[b] = mma_bf16(low[0], low[1], low[2], low[3], x.x, x.y, part[b]);
            part[b] = mma_bf16(high[0], high[1], high[2], high[3], rest.x, rest.y, part[b]);
            part[b] = mma_bf16(high[0], high[1], high[2], high[3], x.x, x.y, part[b]);
        }
    }
#pragma unroll
    for (int b = 0; b < NB; b++) add_tile(sums.v[b], part[b], c[b]);
}

template <int TYPE, int NB>
DEVICE void tile_product(const char *tile, int lane, const columns (&c)[NB], sums_of<NB> &sums)
{
    if constexpr (TYPE == TYPE_Q4_K)
        tile_q4_k<NB>(tile, lane, c, sums);
    else if constexpr (TYPE == TYPE_Q6_K)
        tile_q6_k<NB>(tile, lane, c, sums);
    else if constexpr (TYPE == TYPE_Q8_0)
        tile_q8_0<NB>(tile, lane, c, sums);
    else if constexpr (TYPE == TYPE_Q4_0)
        tile_q4_0<NB>(tile, lane, c, sums);
    else if constexpr (TYPE == TYPE_F16)
        tile_16_bits<NB, false>(tile, lane, c, sums);
    else if constexpr (TYPE == TYPE_BF16)
        tile_16_bits<NB, true>(tile, lane, c, sums);
    else if constexpr (TYPE == TYPE_FP8_128)
        tile_fp8_128<NB>(tile, lane, c, sums);
    else if constexpr (TYPE == TYPE_F32)
        tile_f32<NB>(tile, lane, c, sums);
    else
        tile_levels<TYPE, NB>(tile, lane, c, sums);
}
