// SPDX-License-Identifier: MIT
// Products of one weight tile, 16 rows of 256 columns, with up to 16 columns of activations, by one warp.
//
// This file has the most frequent types; tile_any.cuh has the others. A tile has a type's blocks losslessly, ordered so
// that each lane reads its part of a fragment with 16-byte loads (weights/repack.h). Codes of up to 8 bits are
// multiplied as integers: activations are 15-bit integers, 128 * high + low, with one factor for 256 columns, and high
// and low have a product each. This needs few instructions for a weight, on which the speed of short kernels depends,
// and is accurate: 4-bit codes need only a mask (codes in the high bits count 16 times as much), and integer group
// scales are multiplied as integers too.
//
// Formats store codes with an offset (8, 32, or a min times a scale). Codes are multiplied with their offset; the
// excess, offset * scale * (sum of the group's activations), is subtracted by a separate product of scales and sums, 16
// groups of 16 columns. Its scales are f16; integer scales i are the subnormal f16 i * 2^-24. The sums are divided by
// 8, and stored as an f16 and a second f16 with the remainder.
//
// Columns of a group of 32 are in the order of fragments: column s * 16 + t * 4 + i (s 0..1, t 0..3, i 0..3) belongs to
// lane t of four in step s.
#pragma once
#include "levels.cuh"

#define SUM_UNIT 134217728.f   // 2^24 * 8: factor of product_of_sums for integer scales

// A lane's column of activations, 256 numbers.
struct columns {
    const char *x;      // 8 bits: + g / 2 * 64: 16 bytes, [group g % 2][s][i]; 16 bits: + g * 64: 16 bytes, [s][i]
    const char *low;    // low parts, in the layout of x
    const char *sums;   // + 0, 16: sums of groups of 16, two f16 at 4 t; + 32: remainders
    const float *factor0, *factor1;   // factors of the columns of results 0, 2 and of results 1, 3
};

template <int NB> struct sums_of {
    frag v[NB];
    DEVICE void clear()
    {
        for (int b = 0; b < NB; b++)
            for (int i = 0; i < 4; i++) v[b].v[i] = 0;
    }
};

DEVICE frag no_frag()
{
    return frag{{0, 0, 0, 0}};
}

DEVICE void add_scaled(frag &sum, const frag &part, float row, float row8)
{
    sum.v[0] += row * part.v[0];
    sum.v[1] += row * part.v[1];
    sum.v[2] += row8 * part.v[2];
    sum.v[3] += row8 * part.v[3];
}

// The tile's part of the result, in units of the activations' factor.
DEVICE void add_tile(frag &sum, const frag &part, const columns &c)
{
    sum.v[0] += *c.factor0 * part.v[0];
    sum.v[1] += *c.factor1 * part.v[1];
    sum.v[2] += *c.factor0 * part.v[2];
    sum.v[3] += *c.factor1 * part.v[3];
}

// Scales (a0, a1: groups 2t, 2t+1 of rows r, r + 8; a2, a3: groups 2t+8, 2t+9) times sums of activations.
DEVICE frag product_of_sums(u32 a0, u32 a1, u32 a2, u32 a3, const char *sums)
{
    const u32 *s = (const u32 *)sums;
    const frag high = mma_f16(a0, a1, a2, a3, s[0], s[4], no_frag());
    return mma_f16(a0, a1, a2, a3, s[8], s[12], high);
}

// ------------------------------------------------------------------------------- integers

struct int_sums {
    int_frag high, low;   // products with the high and low parts of activations
    DEVICE void clear()
    {
        for (int i = 0; i < 4; i++) high.v[i] = low.v[i] = 0;
    }
    DEVICE void add(const int_frag &h, const int_frag &l, int row, int row8)
    {
        for (int i = 0; i < 4; i++) {
            high.v[i] += (i < 2 ? row : row8) * h.v[i];
            low.v[i] += (i < 2 ? row : row8) * l.v[i];
        }
    }
    DEVICE float value(int i) const
    {
        return (float)high.v[i] * 128 + (float)low.v[i];
    }
};

// Multiplies a group of 32 columns. Activations are words 2 * odd and 2 * odd + 1 of x and low.
template <bool SIGNED>
DEVICE void multiply_group(u32 a0, u32 a1, u32 a2, u32 a3, const uint4 &x, const uint4 &low, int odd, int_frag &h,
                           int_frag &l)
{
    h = mma_8_bits<SIGNED>(a0, a1, a2, a3, word_of(x, 2 * odd), word_of(x, 2 * odd + 1));
    l = mma_8_bits<SIGNED>(a0, a1, a2, a3, word_of(low, 2 * odd), word_of(low, 2 * odd + 1));
}

// Product of a group as floats, for float scales.
template <bool SIGNED>
DEVICE frag multiply_group(u32 a0, u32 a1, u32 a2, u32 a3, const uint4 &x, const uint4 &low, int odd)
{
    int_frag h, l;
    frag part;
    multiply_group<SIGNED>(a0, a1, a2, a3, x, low, odd, h, l);
    for (int i = 0; i < 4; i++) part.v[i] = (float)(h.v[i] * 128 + l.v[i]);
    return part;
}

template <int NB> DEVICE void tile_q4_k(const char *tile, int lane, const columns (&c)[NB], sums_of<NB> &sums)
{
    const int r = lane / 4, t = lane % 4;
    const uint4 head = ((const uint4 *)(tile + 2048))[r], head8 = ((const uint4 *)(tile + 2048))[r + 8];
    // Scales and mins of four groups in each word, as bytes (quant/scales.h).
    const u32 scales[2] = {head.y & 0x3f3f3f3f, (head.w & 0x0f0f0f0f) | (head.y >> 2 & 0x30303030)};
    const u32 scales8[2] = {head8.y & 0x3f3f3f3f, (head8.w & 0x0f0f0f0f) | (head8.y >> 2 & 0x30303030)};
    const u32 mins[2] = {head.z & 0x3f3f3f3f, (head.w >> 4 & 0x0f0f0f0f) | (head.z >> 2 & 0x30303030)};
    const u32 mins8[2] = {head8.z & 0x3f3f3f3f, (head8.w >> 4 & 0x0f0f0f0f) | (head8.z >> 2 & 0x30303030)};

    int_sums even[NB], odd[NB];   // sums of groups in the low bits, and in the high bits
#pragma unroll
    for (int b = 0; b < NB; b++) even[b].clear(), odd[b].clear();
#pragma unroll
    for (int pair = 0; pair < 4; pair++) {
        const uint4 *codes = (const uint4 *)tile + pair / 2 * 64 + lane;
        const uint4 w = codes[0], v = codes[32];
        const int i = pair % 2 * 2;
        const u32 w0 = word_of(w, i), w1 = word_of(w, i + 1), v0 = word_of(v, i), v1 = word_of(v, i + 1);
        const u32 m = 0x0f0f0f0f, n = 0xf0f0f0f0;
#pragma unroll
        for (int b = 0; b < NB; b++) {
            const uint4 x = *(const uint4 *)(c[b].x + pair * 64), low = *(const uint4 *)(c[b].low + pair * 64);
            int_frag h, l;
            multiply_group<false>(w0 & m, v0 & m, w1 & m, v1 & m, x, low, 0, h, l);
            even[b].add(h, l, byte_of(scales[pair / 2], i), byte_of(scales8[pair / 2], i));
            multiply_group<false>(w0 & n, v0 & n, w1 & n, v1 & n, x, low, 1, h, l);
            odd[b].add(h, l, byte_of(scales[pair / 2], i + 1), byte_of(scales8[pair / 2], i + 1));
        }
    }
    // Sums are of 16 columns, mins of 32: lane t has groups of 16 number 2t, 2t+1 (32-group t) and 2t+8, 2t+9 (t + 4).
    const u32 twice = 0x4040u | t | t << 8;
    const u32 a0 = __byte_perm(mins[0], 0, twice), a2 = __byte_perm(mins[1], 0, twice);
    const u32 a1 = __byte_perm(mins8[0], 0, twice), a3 = __byte_perm(mins8[1], 0, twice);
    const float d = low_half(head.x), d8 = low_half(head8.x);
    const float dmin = high_half(head.x) * SUM_UNIT, dmin8 = high_half(head8.x) * SUM_UNIT;
#pragma unroll
    for (int b = 0; b < NB; b++) {
        frag part = no_frag(), whole;
        add_scaled(part, product_of_sums(a0, a1, a2, a3, c[b].sums), -dmin, -dmin8);
#pragma unroll
        for (int i = 0; i < 4; i++) {   // even counts 16 times: the sum fits into 31 bits
            even[b].high.v[i] = even[b].high.v[i] * 16 + odd[b].high.v[i];
            even[b].low.v[i] = even[b].low.v[i] * 16 + odd[b].low.v[i];
            whole.v[i] = even[b].value(i);
        }
        add_scaled(part, whole, d * 0.0625f, d8 * 0.0625f);
        add_tile(sums.v[b], part, c[b]);
    }
}

template <int NB> DEVICE void tile_q6_k(const char *tile, int lane, const columns (&c)[NB], sums_of<NB> &sums)
{
    const int r = lane / 4, t = lane % 4;
    const uint4 scales = ((const uint4 *)(tile + 3072))[r], scales8 = ((const uint4 *)(tile + 3072))[r + 8];
    const uint4 h4 = ((const uint4 *)(tile + 2048))[lane], h48 = ((const uint4 *)(tile + 2048))[32 + lane];
    int_sums total[NB];
#pragma unroll
    for (int b = 0; b < NB; b++) total[b].clear();
#pragma unroll
    for (int pair = 0; pair < 4; pair++) {
        const uint4 *codes = (const uint4 *)tile + pair / 2 * 64 + lane;
        const uint4 w = codes[0], v = codes[32];
        const u32 high = word_of(h4, pair), high8 = word_of(h48, pair);
        const u32 scale = word_of(scales, pair), scale8 = word_of(scales8, pair);
        uint4 x[NB], low[NB];
#pragma unroll
        for (int b = 0; b < NB; b++) {
            x[b] = *(const uint4 *)(c[b].x + pair * 64);
            low[b] = *(const uint4 *)(c[b].low + pair * 64);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {   // group of 16: odd (bits 4..7) * 2 + step; its two high bits at 2 i of a byte
            const u32 four = word_of(w, pair % 2 * 2 + i % 2), four8 = word_of(v, pair % 2 * 2 + i % 2);
            const u32 at4 = i < 2 ? high << (4 - 2 * i) : high >> (2 * i - 4);
            const u32 at48 = i < 2 ? high8 << (4 - 2 * i) : high8 >> (2 * i - 4);
            const u32 q = ((i < 2 ? four : four >> 4) & 0x0f0f0f0f) | (at4 & 0x30303030);
            const u32 q8 = ((i < 2 ? four8 : four8 >> 4) & 0x0f0f0f0f) | (at48 & 0x30303030);
#pragma unroll
            for (int b = 0; b < NB; b++)
                total[b].add(mma_8_bits_half<false>(q, q8, word_of(x[b], i)),
                             mma_8_bits_half<false>(q, q8, word_of(low[b], i)), signed_byte_of(scale, i),
                             signed_byte_of(scale8, i));
        }
    }
    // Signed scales have 128 added to be unsigned bytes; 128 times all sums is subtracted.
    const u32 *bytes = (const u32 *)(tile + 3072 + r * 16), *bytes8 = (const u32 *)(tile + 3072 + (r + 8) * 16);
    const u32 sel = t % 2 ? 0x4342 : 0x4140;   // two bytes of a word, each into 16 bits
    const u32 flip = 0x80808080;
    const u32 a0 = __byte_perm(bytes[t / 2] ^ flip, 0, sel), a2 = __byte_perm(bytes[t / 2 + 2] ^ flip, 0, sel);
    const u32 a1 = __byte_perm(bytes8[t / 2] ^ flip, 0, sel), a3 = __byte_perm(bytes8[t / 2 + 2] ^ flip, 0, sel);
    const u32 ones = 0x00800080;   // 128 in each half
    const float d = half_to_float(((const u16 *)(tile + 3328))[r]);
    const float d8 = half_to_float(((const u16 *)(tile + 3328))[r + 8]);
#pragma unroll
    for (int b = 0; b < NB; b++) {
        const frag with = product_of_sums(a0, a1, a2, a3, c[b].sums);
        const frag without = product_of_sums(ones, ones, ones, ones, c[b].sums);
        frag part = no_frag(), whole;
#pragma unroll
        for (int i = 0; i < 4; i++) whole.v[i] = total[b].value(i) - 32 * SUM_UNIT * (with.v[i] - without.v[i]);
        add_scaled(part, whole, d, d8);
        add_tile(sums.v[b], part, c[b]);
    }
}

template <int NB> DEVICE void tile_q8_0(const char *tile, int lane, const columns (&c)[NB], sums_of<NB> &sums)
{
    const uint4 d = ((const uint4 *)(tile + 4096))[lane / 4], d8 = ((const uint4 *)(tile + 4096))[lane / 4 + 8];
    frag part[NB];
#pragma unroll
    for (int b = 0; b < NB; b++) part[b] = no_frag();
#pragma unroll
    for (int pair = 0; pair < 4; pair++) {
        const uint4 w = ((const uint4 *)tile)[pair * 64 + lane], v = ((const uint4 *)tile)[pair * 64 + 32 + lane];
#pragma unroll
        for (int b = 0; b < NB; b++) {
            const uint4 x = *(const uint4 *)(c[b].x + pair * 64), low = *(const uint4 *)(c[b].low + pair * 64);
            add_scaled(part[b], multiply_group<true>(w.x, v.x, w.y, v.y, x, low, 0), half_of(d, pair * 2),
                       half_of(d8, pair * 2));
            add_scaled(part[b], multiply_group<true>(w.z, v.z, w.w, v.w, x, low, 1), half_of(d, pair * 2 + 1),
                       half_of(d8, pair * 2 + 1));
        }
    }
#pragma unroll
    for (int b = 0; b < NB; b++) add_tile(sums.v[b], part[b], c[b]);
}

template <int NB> DEVICE void tile_q4_0(const char *tile, int lane, const columns (&c)[NB], sums_of<NB> &sums)
{
    const int r = lane / 4, t = lane % 4;
    const u16 *row = (const u16 *)(tile + 2048 + r * 16), *row8 = (const u16 *)(tile + 2048 + (r + 8) * 16);
    const uint4 d = *(const uint4 *)row, d8 = *(const uint4 *)row8;
    frag low_bits[NB], high_bits[NB];
#pragma unroll
    for (int b = 0; b < NB; b++) low_bits[b] = high_bits[b] = no_frag();
#pragma unroll
    for (int pair = 0; pair < 4; pair++) {
        const uint4 *codes = (const uint4 *)tile + pair / 2 * 64 + lane;
        const uint4 w = codes[0], v = codes[32];
        const int i = pair % 2 * 2;
        const u32 w0 = word_of(w, i), w1 = word_of(w, i + 1), v0 = word_of(v, i), v1 = word_of(v, i + 1);
        const u32 m = 0x0f0f0f0f, n = 0xf0f0f0f0;
#pragma unroll
        for (int b = 0; b < NB; b++) {
            const uint4 x = *(const uint4 *)(c[b].x + pair * 64), low = *(const uint4 *)(c[b].low + pair * 64);
            add_scaled(low_bits[b], multiply_group<false>(w0 & m, v0 & m, w1 & m, v1 & m, x, low, 0),
                       half_of(d, pair * 2), half_of(d8, pair * 2));
            add_scaled(high_bits[b], multiply_group<false>(w0 & n, v0 & n, w1 & n, v1 & n, x, low, 1),
                       half_of(d, pair * 2 + 1), half_of(d8, pair * 2 + 1));
        }
    }
    const u32 a0 = row[t], a1 = row8[t], a2 = row[t + 4], a3 = row8[t + 4];   // f16 scales, each twice
#pragma unroll
    for (int b = 0; b < NB; b++) {
        const frag offset = product_of_sums(a0 | a0 << 16, a1 | a1 << 16, a2 | a2 << 16, a3 | a3 << 16, c[b].sums);
        add_scaled(low_bits[b], high_bits[b], 0.0625f, 0.0625f);
        add_scaled(low_bits[b], offset, -64, -64);   // -8 * 8: sums are divided by 8
        add_tile(sums.v[b], low_bits[b], c[b]);
    }
}

// ------------------------------------------------------------------------------- numbers of 8 and 16 bits

// Codes become f16, exactly. Activations are as for 16 bits; sums of 128 columns are multiplied by their scale.
template <int NB> DEVICE void tile_fp8_128(const char *tile, int lane, const columns (&c)[NB], sums_of<NB> &sums)
{
    frag all[NB];
#pragma unroll
    for (int b = 0; b < NB; b++) all[b] = no_frag();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        frag part[NB], rest[NB];
#pragma unroll
        for (int b = 0; b < NB; b++) part[b] = rest[b] = no_frag();
#pragma unroll
        for (int pair = half * 2; pair < half * 2 + 2; pair++) {
            const uint4 w = ((const uint4 *)tile)[pair * 64 + lane], v = ((const uint4 *)tile)[pair * 64 + 32 + lane];
#pragma unroll
            for (int i = 0; i < 4; i++) {   // group i / 2 of the pair, step i % 2
                const u32 a0 = halves_of_e4m3(word_of(w, i), false), a1 = halves_of_e4m3(word_of(v, i), false),
                          a2 = halves_of_e4m3(word_of(w, i), true), a3 = halves_of_e4m3(word_of(v, i), true);
#pragma unroll
                for (int b = 0; b < NB; b++) {
                    const int at = (pair * 2 + i / 2) * 64 + i % 2 * 8;
                    const uint2 x = *(const uint2 *)(c[b].x + at), low = *(const uint2 *)(c[b].low + at);
                    part[b] = mma_f16(a0, a1, a2, a3, x.x, x.y, part[b]);
                    rest[b] = mma_f16(a0, a1, a2, a3, low.x, low.y, rest[b]);
                }
            }
        }
        const float d = scale_of_e4m3(tile, lane / 4, half) * 256, d8 = scale_of_e4m3(tile, lane / 4 + 8, half) * 256;
#pragma unroll
        for (int b = 0; b < NB; b++) {
            add_scaled(part[b], rest[b], 1, 1);
            add_scaled(all[b], part[b], d, d8);
        }
    }
#pragma unroll
    for (int b = 0; b < NB; b++) add_tile(sums.v[b], all[b], c[b]);
}

// An activation is the sum of two numbers of the weights' type, which together have enough bits.
template <int NB, bool IS_BF16>
DEVICE void tile_16_bits(const char *tile, int lane, const columns (&c)[NB], sums_of<NB> &sums)
{
    frag part[NB], rest[NB];
#pragma unroll
    for (int b = 0; b < NB; b++) part[b] = rest[b] = no_frag();
#pragma unroll
    for (int g = 0; g < 8; g++) {
        const uint4 w = ((const uint4 *)tile)[g * 64 + lane], v = ((const uint4 *)tile)[g * 64 + 32 + lane];
#pragma unroll
        for (int b = 0; b < NB; b++) {
            const uint4 x = *(const uint4 *)(c[b].x + g * 64), low = *(const uint4 *)(c[b].low + g * 64);
            if (IS_BF16) {
                part[b] = mma_bf16(w.x, w.y, w.z, w.w, x.x, x.y, part[b]);
                rest[b] = mma_bf16(w.x, w.y, w.z, w.w, low.x, low.y, rest[b]);
                part[b] = mma_bf16(v.x, v.y, v.z, v.w, x.z, x.w, part[b]);
                rest[b] = mma_bf16(v.x, v.y, v.z, v.w, low.z, low.w, rest[b]);
            } else {
                part[b] = mma_f16(w.x, w.y, w.z, w.w, x.x, x.y, part[b]);
                rest[b] = mma_f16(w.x, w.y, w.z, w.w, low.x, low.y, rest[b]);
                part[b] = mma_f16(v.x, v.y, v.z, v.w, x.z, x.w, part[b]);
                rest[b] = mma_f16(v.x, v.y, v.z, v.w, low.z, low.w, rest[b]);
            }
        }
    }
#pragma unroll
    for (int b = 0; b < NB; b++) {
        add_scaled(part[b], rest[b], 1, 1);
        add_tile(sums.v[b], part[b], c[b]);
    }
}
