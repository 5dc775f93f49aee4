// SPDX-License-Identifier: MIT
// From codes to numbers, for any type: levels are four codes of a lane as bytes, multiplied by the scales of a row.
//
//     x = scale(g, s) * level - min(g, s)          group g of 32 columns, step s of 16
//
// Levels are unsigned bytes in types with mins, and signed bytes in others.
#pragma once
#include "tiles.cuh"

DEVICE int byte_of(u32 word, int i)
{
    return (int)__byte_perm(word, 0, 0x4440u | i);
}

DEVICE int signed_byte_of(u32 word, int i)
{
    return (int)permute_signed(word, i | (i | 8) << 4 | (i | 8) << 8 | (i | 8) << 12);
}

DEVICE u32 word_of(const uint4 &four, int i)
{
    return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w;
}

DEVICE float half_of(const uint4 &eight, int i)
{
    return i % 2 ? high_half(word_of(eight, i / 2)) : low_half(word_of(eight, i / 2));
}

// ------------------------------------------------------------------------------- scales of a row

// step: columns that share a scale. has_f16_mins: mins are f16 in the file, so that f16 has them exactly. min_pair: mins of groups of 16 columns 2t, 2t + 1 (is_upper: 2t + 8, 2t + 9) as two
// f16. min_unit: the factor of a min for product_of_sums (tile.cuh).
template <int TYPE> struct scales_of;

struct scales_without_mins {
    enum { has_mins = 0, has_f16_mins = 1 };
    DEVICE float min(int, int) const
    {
        return 0;
    }
    DEVICE u32 min_pair(int, bool) const
    {
        return 0;
    }
    DEVICE float min_unit() const
    {
        return 0;
    }
};

template <int TYPE> DEVICE uint4 head_16(const char *tile, int row)
{
    return ((const uint4 *)(tile + tile_of<TYPE>::head_at))[row];
}

template <int TYPE> DEVICE float tail_half(const char *tile, int row)
{
    return half_to_float(((const u16 *)(tile + tile_of<TYPE>::tail_at))[row]);
}

// One f16 for each block of 32.
template <int TYPE> struct scales_of_blocks : scales_without_mins {
    enum { step = 32 };
    uint4 d;
    DEVICE void load(const char *tile, int row)
    {
        d = head_16<TYPE>(tile, row);
    }
    DEVICE float scale(int g, int) const
    {
        return half_of(d, g);
    }
};

// One f16 scale and one f16 min, which is added, for each block of 32.
template <int TYPE> struct scales_and_mins_of_blocks {
    enum { step = 32, has_mins = 1, has_f16_mins = 1 };
    uint4 d, m;
    DEVICE void load(const char *tile, int row)
    {
        d = head_16<TYPE>(tile, row);
        m = ((const uint4 *)(tile + tile_of<TYPE>::tail_at))[row];
    }
    DEVICE float scale(int g, int) const
    {
        return half_of(d, g);
    }
    DEVICE float min(int g, int) const
    {
        return -half_of(m, g);
    }
    DEVICE u32 min_pair(int t, bool is_upper) const
    {
        const u32 two = word_of(m, t / 2 + is_upper * 2);
        return __byte_perm(two, 0, t % 2 ? 0x3232 : 0x1010);
    }
    DEVICE float min_unit() const
    {
        return -8;   // sums are divided by 8
    }
};

// Eight scales and mins of six bits (quant/scales.h).
template <int TYPE> struct scales_of_six_bits {
    enum { step = 32, has_mins = 1, has_f16_mins = 0 };
    u32 scales[2], mins[2], factors;
    DEVICE void load(const char *tile, int row)
    {
        const uint4 head = head_16<TYPE>(tile, row);
        scales[0] = head.y & 0x3f3f3f3f;
        scales[1] = (head.w & 0x0f0f0f0f) | (head.y >> 2 & 0x30303030);
        mins[0] = head.z & 0x3f3f3f3f;
        mins[1] = (head.w >> 4 & 0x0f0f0f0f) | (head.z >> 2 & 0x30303030);
        factors = head.x;
    }
    DEVICE float scale(int g, int) const
    {
        return low_half(factors) * byte_of(scales[g / 4], g % 4);
    }
    DEVICE float min(int g, int) const
    {
        return high_half(factors) * byte_of(mins[g / 4], g % 4);
    }
    DEVICE u32 min_pair(int t, bool is_upper) const
    {
        return __byte_perm(mins[is_upper], 0, 0x4040u | t | t << 8);   // integers as subnormal f16
    }
    DEVICE float min_unit() const
    {
        return high_half(factors) * 134217728.f;
    }
};

// COUNT signed bytes, multiplied by an f16.
template <int TYPE, int COUNT> struct scales_of_bytes : scales_without_mins {
    enum { step = 256 / COUNT };
    u32 bytes[COUNT / 4];
    float d;
    DEVICE void load(const char *tile, int row)
    {
        const u32 *from = (const u32 *)(tile + tile_of<TYPE>::head_at + row * COUNT);
#pragma unroll
        for (int i = 0; i < COUNT / 4; i++) bytes[i] = from[i];
        d = tail_half<TYPE>(tile, row);
    }
    DEVICE float scale(int g, int s) const
    {
        const int i = step == 16 ? g * 2 + s : g;
        return d * signed_byte_of(bytes[i / 4], i % 4);
    }
};

// f32 scales of 16 columns, read when they are needed.
template <int TYPE> struct scales_of_floats : scales_without_mins {
    enum { step = 16 };
    const float *scales;
    DEVICE void load(const char *tile, int row)
    {
        scales = (const float *)(tile + tile_of<TYPE>::head_at) + row * 16;
    }
    DEVICE float scale(int g, int s) const
    {
        return scales[g * 2 + s];
    }
};

template <> struct scales_of<TYPE_Q4_0> : scales_of_blocks<TYPE_Q4_0> {
};
template <> struct scales_of<TYPE_Q5_0> : scales_of_blocks<TYPE_Q5_0> {
};
template <> struct scales_of<TYPE_Q8_0> : scales_of_blocks<TYPE_Q8_0> {
};
template <> struct scales_of<TYPE_IQ4_NL> : scales_of_blocks<TYPE_IQ4_NL> {
};
template <> struct scales_of<TYPE_Q4_1> : scales_and_mins_of_blocks<TYPE_Q4_1> {
};
template <> struct scales_of<TYPE_Q5_1> : scales_and_mins_of_blocks<TYPE_Q5_1> {
};
template <> struct scales_of<TYPE_Q4_K> : scales_of_six_bits<TYPE_Q4_K> {
};
template <> struct scales_of<TYPE_Q5_K> : scales_of_six_bits<TYPE_Q5_K> {
};
template <> struct scales_of<TYPE_Q3_K> : scales_of_bytes<TYPE_Q3_K, 16> {
};
template <> struct scales_of<TYPE_Q6_K> : scales_of_bytes<TYPE_Q6_K, 16> {
};
template <> struct scales_of<TYPE_IQ4_XS> : scales_of_bytes<TYPE_IQ4_XS, 8> {
};
template <> struct scales_of<TYPE_IQ2_XXS> : scales_of_floats<TYPE_IQ2_XXS> {
};
template <> struct scales_of<TYPE_IQ2_XS> : scales_of_floats<TYPE_IQ2_XS> {
};
template <> struct scales_of<TYPE_IQ2_S> : scales_of_floats<TYPE_IQ2_S> {
};
template <> struct scales_of<TYPE_IQ3_XXS> : scales_of_floats<TYPE_IQ3_XXS> {
};
template <> struct scales_of<TYPE_IQ3_S> : scales_of_floats<TYPE_IQ3_S> {
};
template <> struct scales_of<TYPE_IQ1_S> : scales_of_floats<TYPE_IQ1_S> {
};
template <> struct scales_of<TYPE_IQ1_M> : scales_of_floats<TYPE_IQ1_M> {
};
template <> struct scales_of<TYPE_TQ1_0> : scales_of_floats<TYPE_TQ1_0> {
};
template <> struct scales_of<TYPE_TQ2_0> : scales_of_floats<TYPE_TQ2_0> {
};
template <> struct scales_of<TYPE_Q1_0> : scales_of_floats<TYPE_Q1_0> {
};
template <> struct scales_of<TYPE_Q2_0> : scales_of_floats<TYPE_Q2_0> {
};

// For 16 columns: a nibble for the scale and a nibble for the min.
template <> struct scales_of<TYPE_Q2_K> {
    enum { step = 16, has_mins = 1, has_f16_mins = 0 };
    uint4 bytes;
    u32 factors;
    DEVICE void load(const char *tile, int row)
    {
        bytes = head_16<TYPE_Q2_K>(tile, row);
        factors = ((const u32 *)(tile + tile_of<TYPE_Q2_K>::tail_at))[row];
    }
    DEVICE float scale(int g, int s) const
    {
        return low_half(factors) * (byte_of(word_of(bytes, g / 2), g % 2 * 2 + s) & 15);
    }
    DEVICE float min(int g, int s) const
    {
        return high_half(factors) * (byte_of(word_of(bytes, g / 2), g % 2 * 2 + s) >> 4);
    }
    DEVICE u32 min_pair(int t, bool is_upper) const
    {
        return __byte_perm(word_of(bytes, t / 2 + is_upper * 2) >> 4 & 0x0f0f0f0f, 0, t % 2 ? 0x4342 : 0x4140);
    }
    DEVICE float min_unit() const
    {
        return high_half(factors) * 134217728.f;
    }
};

// Powers of two, halved because levels are doubled.
template <> struct scales_of<TYPE_MXFP4> : scales_without_mins {
    enum { step = 32 };
    u32 exponents[2];
    DEVICE void load(const char *tile, int row)
    {
        const uint2 e = ((const uint2 *)(tile + tile_of<TYPE_MXFP4>::head_at))[row];
        exponents[0] = e.x, exponents[1] = e.y;
    }
    DEVICE float scale(int g, int) const
    {
        const u32 e = byte_of(exponents[g / 4], g % 4);
        return __uint_as_float(e < 2 ? 0x00200000u << e : (e - 1) << 23);
    }
};

// UE4M3, halved because levels are doubled.
template <> struct scales_of<TYPE_NVFP4> : scales_without_mins {
    enum { step = 16 };
    uint4 bytes;
    DEVICE void load(const char *tile, int row)
    {
        bytes = head_16<TYPE_NVFP4>(tile, row);
    }
    DEVICE float scale(int g, int s) const
    {
        const u32 x = byte_of(word_of(bytes, g / 2), g % 2 * 2 + s), exponent = x >> 3 & 15, mantissa = x & 7;
        if (x == 0x7f) return 0;
        if (exponent == 0) return mantissa * (1 / 1024.f);
        return __uint_as_float((exponent + 119) << 23 | mantissa << 20);
    }
};

// ------------------------------------------------------------------------------- e4m3

// Two of four codes of e4m3 as f16, divided by 256: shifted into the fields of f16 they are exact.
DEVICE u32 halves_of_e4m3(u32 codes, bool is_upper)
{
    const u32 pair = __byte_perm(codes, 0, is_upper ? 0x3424 : 0x1404);   // in the upper bytes of 16 bits each
    return (pair & 0x80008000u) | (pair >> 1 & 0x3f803f80u);
}

// The scale of 128 columns of a row.
DEVICE float scale_of_e4m3(const char *tile, int row, int half)
{
    return ((const float *)(tile + tile_of<TYPE_FP8_128>::head_at))[row * 2 + half];
}

// ------------------------------------------------------------------------------- levels of a lane

// Subtracted from codes to get signed levels.
template <int TYPE> struct center_of {
    enum {
        value = TYPE == TYPE_Q3_K   ? 4
                : TYPE == TYPE_Q4_0 ? 8
                : TYPE == TYPE_Q5_0 ? 16
                : TYPE == TYPE_Q6_K ? 32
                                    : 0
    };
};

template <int TYPE> struct table_of {   // codes of four bits that index sixteen levels
    enum {
        is_iq4 = TYPE == TYPE_IQ4_NL || TYPE == TYPE_IQ4_XS,
        is_fp4 = TYPE == TYPE_MXFP4 || TYPE == TYPE_NVFP4,
        is_used = is_iq4 || is_fp4
    };
};

DEVICE u32 less(u32 codes, int center)
{
    return center ? ((codes | 0x80808080u) - (u32)center * 0x01010101u) ^ 0x80808080u : codes;
}

// The levels of eight nibbles: of the low nibbles of four bytes, and of the high nibbles.
template <int TYPE> DEVICE void look_up(u32 codes, u32 &low, u32 &high)
{
    const u32 a0 = table_of<TYPE>::is_iq4 ? 0xbfad9881u : 0x03020100u,
              a1 = table_of<TYPE>::is_iq4 ? 0xf6eaddcfu : 0x0c080604u;
    const u32 b0 = table_of<TYPE>::is_iq4 ? 0x26190d01u : 0xfdfeff00u,
              b1 = table_of<TYPE>::is_iq4 ? 0x71594535u : 0xf4f8fafcu;
    const u32 first = codes & 0x7777u, second = codes >> 16 & 0x7777u, upper = (codes & 0x88888888u) >> 1;
    const u32 x = __byte_perm(__byte_perm(a0, a1, first), __byte_perm(b0, b1, first), 0x3210u | (upper & 0x4444u));
    const u32 y = __byte_perm(__byte_perm(a0, a1, second), __byte_perm(b0, b1, second), 0x3210u | upper >> 16);
    low = __byte_perm(x, y, 0x6420);
    high = __byte_perm(x, y, 0x7531);
}

// Levels of rows r and r + 8 of a lane, four columns in a word.
template <int TYPE> struct levels_of {
    enum { low = tile_of<TYPE>::low_bits, high = tile_of<TYPE>::high_bits };
    enum { is_signed = center_of<TYPE>::value > 0 || low == 8 || table_of<TYPE>::is_used };
    uint4 two[2], more[2];   // planes that a lane reads once: 2-bit codes; high bits

    DEVICE void load(const char *tile, int lane)
    {
        const uint4 *planes = (const uint4 *)tile;
        if (low == 2) two[0] = planes[lane], two[1] = planes[32 + lane];
        if (high) more[0] = planes[tile_of<TYPE>::high_at / 16 + lane];
        if (high == 2) more[1] = planes[tile_of<TYPE>::high_at / 16 + 32 + lane];
    }

    // The high bits of group g, step s, row r + 8 h.
    DEVICE u32 high_part(int g, int s, int h) const
    {
        if (high == 1) return (word_of(more[0], h * 2 + g / 4) >> (g % 4 * 2 + s) & 0x01010101) << low;
        if (high == 2) return (word_of(more[h], g / 2) >> (g % 2 * 4 + s * 2) & 0x03030303) << low;
        return 0;
    }

    // Levels of groups 2 pair and 2 pair + 1, as [odd][s][h].
    DEVICE void pair(const char *tile, int lane, int pair, u32 (&v)[2][2][2]) const
    {
        const uint4 *units = (const uint4 *)tile + (low == 8 ? pair : pair / 2) * 64 + lane;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const uint4 w = low == 2 ? two[h] : units[h * 32];
#pragma unroll
            for (int s = 0; s < 2; s++) {
                const u32 four = low == 8 ? 0 : low == 2 ? word_of(w, pair) : word_of(w, pair % 2 * 2 + s);
                if (table_of<TYPE>::is_used) {
                    look_up<TYPE>(four, v[0][s][h], v[1][s][h]);
                    continue;
                }
#pragma unroll
                for (int odd = 0; odd < 2; odd++) {
                    u32 codes = word_of(w, odd * 2 + s);   // 8 bits
                    if (low == 2) codes = four >> (odd * 4 + s * 2) & 0x03030303;
                    if (low == 4) codes = four >> odd * 4 & 0x0f0f0f0f;
                    v[odd][s][h] = less(codes | high_part(pair * 2 + odd, s, h), center_of<TYPE>::value);
                }
            }
        }
    }
};
