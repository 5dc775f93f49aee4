// SPDX-License-Identifier: MIT
// Tiles as f16 fragments in registers, for gemm_small.cu, gemm_wgmma.cu and experts_rows.cu.
//
// A lane's four codes of a row are neighbours (repack.h), so columns 4 t ... 4 t + 3 of 16 are columns 2 t, 2 t + 1,
// 2 t + 8, 2 t + 9 of a fragment, in weights and rows alike.
//
// Weights are rounded as dequantize.cu rounds them. With HALF_MATH they are computed in f16, which halves the
// instructions: in some types scales are rounded to f16 too. Mins are added in two parts, or, with 2, rounded too.
// Weights are then multiplied by 16, so that small scales keep their bits.
//
// Defined by the host: HALF_MATH (0, 1 or 2; default 0).
#pragma once
#include "levels.cuh"

#ifndef HALF_MATH
#define HALF_MATH 0
#endif

// Converts four levels, bytes with or without a sign, to two pairs of f16.
template <bool IS_SIGNED> DEVICE void four_halves(u32 levels, float scale, float min, u32 &first, u32 &second)
{
    const u32 word = IS_SIGNED ? levels ^ 0x80808080u : levels;
    const float center = IS_SIGNED ? 8388736.f : 8388608.f;   // 2^23, whose last bits are an integer
    float v[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        v[i] = scale * (__uint_as_float(__byte_perm(word, 0x4b000000u, 0x7540u | i)) - center) - min;
    first = pack_half2(v[0], v[1]);
    second = pack_half2(v[2], v[3]);
}

// A scale of a row as pairs of equal f16: an 8-bit integer, and the factor of the integer. Products of integers and
// levels are rounded only if they have more than eleven bits.
template <int TYPE> struct integer_scales {
    enum { are_used = 0 };
    static DEVICE u32 level(const scales_of<TYPE> &, int, int)
    {
        return 0;
    }
    static DEVICE float unit(const scales_of<TYPE> &)
    {
        return 1;
    }
};

template <int TYPE> struct six_bits_as_integers {
    enum { are_used = 1 };
    static DEVICE u32 level(const scales_of<TYPE> &s, int g, int)
    {
        return add_half2(__byte_perm(s.scales[g / 4], 0x64646464u, 0x4040u | g % 4 | g % 4 << 8), 0xe400e400u);
    }
    static DEVICE float unit(const scales_of<TYPE> &s)
    {
        return low_half(s.factors);
    }
};

template <int TYPE> struct bytes_as_integers {
    enum { are_used = 1 };
    static DEVICE u32 level(const scales_of<TYPE> &s, int g, int step)
    {
        const int i = scales_of<TYPE>::step == 16 ? g * 2 + step : g;
        return add_half2(__byte_perm(s.bytes[i / 4] ^ 0x80808080u, 0x64646464u, 0x4040u | i % 4 | i % 4 << 8),
                         0xe480e480u);
    }
    static DEVICE float unit(const scales_of<TYPE> &s)
    {
        return s.d;
    }
};

template <> struct integer_scales<TYPE_Q4_K> : six_bits_as_integers<TYPE_Q4_K> {
};
template <> struct integer_scales<TYPE_Q5_K> : six_bits_as_integers<TYPE_Q5_K> {
};
template <> struct integer_scales<TYPE_Q3_K> : bytes_as_integers<TYPE_Q3_K> {
};
template <> struct integer_scales<TYPE_Q6_K> : bytes_as_integers<TYPE_Q6_K> {
};

DEVICE u32 twice_times_16(float x)
{
    return pack_half2(x * 16, x * 16);
}

// Fragments computed in f16, multiplied by 16 (HALF_MATH).
template <int TYPE>
DEVICE void four_by_halves(u32 levels, const scales_of<TYPE> &row, int g, int s, u32 &first, u32 &second)
{
    typedef integer_scales<TYPE> integers;
    const bool is_signed = levels_of<TYPE>::is_signed;
    const u32 word = is_signed ? levels ^ 0x80808080u : levels;
    const u32 center = is_signed ? 0xe480e480u : 0xe400e400u;   // -1152, -1024: f16 whose last bits are an integer
    const float exact_min = row.min(g, s) * -16;
    const u32 min = pack_half2(exact_min, exact_min);
    const u32 scale = twice_times_16(integers::are_used ? integers::unit(row) : row.scale(g, s));
    first = add_half2(__byte_perm(word, 0x64646464u, 0x4140u), center);
    second = add_half2(__byte_perm(word, 0x64646464u, 0x4342u), center);
    if (integers::are_used) {
        const u32 integer = integers::level(row, g, s);
        first = fma_half2(first, integer, 0x80008000u);   // -0 as the third operand keeps the sign of zeros
        second = fma_half2(second, integer, 0x80008000u);
    }
    first = fma_half2(first, scale, min);
    second = fma_half2(second, scale, min);
    if (HALF_MATH == 1 && !scales_of<TYPE>::has_f16_mins) {   // mins are as large as weights: their rounding counts
        const float lost = exact_min - low_half(min);
        const u32 rest = pack_half2(lost, lost);
        first = add_half2(first, rest);
        second = add_half2(second, rest);
    }
}

// Fragments of a tile for columns 64 * pair + 32 * odd + 16 * s.
template <int TYPE, int BITS = tile_of<TYPE>::low_bits> struct f16_tile {
    typedef levels_of<TYPE> kind;
    enum { times = HALF_MATH ? 16 : 1 };   // factor of the weights
    scales_of<TYPE> row, row8;
    kind levels;
    u32 v[2][2][2];
    DEVICE void load(const char *tile, int lane)
    {
        row.load(tile, lane / 4);
        row8.load(tile, lane / 4 + 8);
        levels.load(tile, lane);
    }
    DEVICE void pair(const char *tile, int lane, int pair)
    {
        levels.pair(tile, lane, pair, v);
    }
    DEVICE void fragment(int pair, int odd, int s, u32 (&a)[4]) const
    {
        const int g = pair * 2 + odd;
        if (HALF_MATH) {
            four_by_halves<TYPE>(v[odd][s][0], row, g, s, a[0], a[2]);
            four_by_halves<TYPE>(v[odd][s][1], row8, g, s, a[1], a[3]);
            return;
        }
        four_halves<kind::is_signed>(v[odd][s][0], row.scale(g, s), row.min(g, s), a[0], a[2]);
        four_halves<kind::is_signed>(v[odd][s][1], row8.scale(g, s), row8.min(g, s), a[1], a[3]);
    }
};

#if HALF_MATH
// A pair of f16 that are both 1024 + byte i of a word: the last bits of such an f16 are an integer.
DEVICE u32 byte_twice(u32 word, int i)
{
    return __byte_perm(word, 0x64646464u, 0x4040u | i | i << 8);
}

DEVICE u32 multiply_half2(u32 x, u32 y)
{
    return fma_half2(x, y, 0x80008000u);   // -0 as the third operand keeps the sign of zeros
}

// The most frequent types, with the fewest instructions. Mins become f16 once for each group. One instruction subtracts
// 1024 from a code and multiplies it by its integer scale, exactly, because the result fits into eleven bits. For codes
// in the high bits of a byte the scale has a factor 1/16.
template <> struct f16_tile<TYPE_Q4_K, 4> {
    enum { times = 16 };
    scales_of<TYPE_Q4_K> row[2];
    u32 d[2], m[2];   // factors of integer scales and of mins
    u32 scale[2][2], less[2][2], min[2][2], rest[2][2];
    uint4 codes[2];
    DEVICE void load(const char *tile, int lane)
    {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            row[h].load(tile, lane / 4 + h * 8);
            d[h] = twice_times_16(low_half(row[h].factors));
            m[h] = twice_times_16(-high_half(row[h].factors));
        }
    }
    DEVICE void pair(const char *tile, int lane, int pair)
    {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            if (pair % 2 == 0) codes[h] = ((const uint4 *)tile)[pair / 2 * 64 + h * 32 + lane];
#pragma unroll
            for (int odd = 0; odd < 2; odd++) {
                const int g = pair * 2 + odd;
                const u32 integer = add_half2(byte_twice(row[h].scales[g / 4], g % 4), 0xe400e400u);
                scale[odd][h] = odd ? multiply_half2(integer, 0x2c002c00u) : integer;      // 1 / 16
                less[odd][h] = multiply_half2(integer, odd ? 0xd400d400u : 0xe400e400u);   // - 64, - 1024
                const u32 of_min = add_half2(byte_twice(row[h].mins[g / 4], g % 4), 0xe400e400u);
                min[odd][h] = multiply_half2(of_min, m[h]);
                rest[odd][h] = fma_half2(of_min, m[h], min[odd][h] ^ 0x80008000u);   // what rounding lost
            }
        }
    }
    DEVICE void fragment(int pair, int odd, int s, u32 (&a)[4]) const
    {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const u32 four = word_of(codes[h], pair % 2 * 2 + s) & (odd ? 0xf0f0f0f0u : 0x0f0f0f0fu);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const u32 two = __byte_perm(four, 0x64646464u, i ? 0x4342u : 0x4140u);
                const u32 of_code = fma_half2(two, scale[odd][h], less[odd][h]);
                a[i * 2 + h] = fma_half2(of_code, d[h], min[odd][h]);
                if (HALF_MATH == 1) a[i * 2 + h] = add_half2(a[i * 2 + h], rest[odd][h]);
            }
        }
    }
};

template <> struct f16_tile<TYPE_Q6_K, 4> {
    enum { times = 16 };
    scales_of<TYPE_Q6_K> row[2];
    u32 d[2];
    uint4 codes[2], high[2];
    DEVICE void load(const char *tile, int lane)
    {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            row[h].load(tile, lane / 4 + h * 8);
            d[h] = twice_times_16(row[h].d);
            high[h] = ((const uint4 *)tile)[tile_of<TYPE_Q6_K>::high_at / 16 + h * 32 + lane];
        }
    }
    DEVICE void pair(const char *tile, int lane, int pair)
    {
#pragma unroll
        for (int h = 0; h < 2; h++)
            if (pair % 2 == 0) codes[h] = ((const uint4 *)tile)[pair / 2 * 64 + h * 32 + lane];
    }
    DEVICE void fragment(int pair, int odd, int s, u32 (&a)[4]) const
    {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const u32 low = word_of(codes[h], pair % 2 * 2 + s), more = word_of(high[h], pair);
            const int bit = odd * 4 + s * 2, at = pair * 4 + odd * 2 + s;   // bit of the high bits; index of the scale
            const u32 four = ((odd ? low >> 4 : low) & 0x0f0f0f0fu) |
                             ((bit < 4 ? more << (4 - bit) : more >> (bit - 4)) & 0x30303030u);
            const u32 integer = byte_twice(row[h].bytes[at / 4] ^ 0x80808080u, at % 4);
            const u32 scale = multiply_half2(add_half2(integer, 0xe480e480u), d[h]);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const u32 two = __byte_perm(four, 0x64646464u, i ? 0x4342u : 0x4140u);
                a[i * 2 + h] = multiply_half2(add_half2(two, 0xe420e420u), scale);   // - 1024 - 32
            }
        }
    }
};
#endif

template <int TYPE> struct f16_tile<TYPE, 16> {
    enum { times = 1 };
    uint4 units[4];
    DEVICE void load(const char *, int)
    {
    }
    DEVICE void pair(const char *tile, int lane, int pair)
    {
#pragma unroll
        for (int i = 0; i < 4; i++) units[i] = ((const uint4 *)tile)[(pair * 4 + i) * 32 + lane];
    }
    DEVICE void fragment(int, int odd, int s, u32 (&a)[4]) const
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const u32 w = word_of(units[odd * 2 + s], i);
            a[i] = TYPE == TYPE_F16 ? w : pack_half2(__uint_as_float(w << 16), __uint_as_float(w & 0xffff0000u));
        }
    }
};

// Codes are exact in f16. Their scale is the sum of two f16, so that a weight is rounded about once.
template <> struct f16_tile<TYPE_FP8_128, 8> {
    enum { times = HALF_MATH ? 16 : 1 };
    float scales[2][2];   // [row][128 columns]
    u32 d[2], rest[2];
    uint4 codes[2];
    DEVICE void load(const char *tile, int lane)
    {
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                scales[h][half] = scale_of_e4m3(tile, lane / 4 + h * 8, half) * (256 * times);
    }
    DEVICE void pair(const char *tile, int lane, int pair)
    {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float scale = scales[h][pair / 2];
            codes[h] = ((const uint4 *)tile)[pair * 64 + h * 32 + lane];
            d[h] = pack_half2(scale, scale);
            const float lost = scale - low_half(d[h]);
            rest[h] = pack_half2(lost, lost);
        }
    }
    DEVICE void fragment(int, int odd, int s, u32 (&a)[4]) const
    {
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const u32 two = halves_of_e4m3(word_of(codes[h], odd * 2 + s), i);
                a[i * 2 + h] = fma_half2(two, d[h], fma_half2(two, rest[h], 0x80008000u));
            }
    }
};
