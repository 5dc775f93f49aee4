// SPDX-License-Identifier: MIT
// backend/cuda/kernels/include/codes.h: reading codes and scales from blocks, in the order of tiles. For the C compiler
// (repack.c) and NVRTC (repack.cu). tiles.def has a row for each type.
//
// Parameters: b: the blocks of a row, up to 256 numbers; k: index of a number; i: index of a byte; n: columns of the
// row, after which codes and scales are zero.
#pragma once

#ifdef __CUDACC_RTC__
static inline float frit_codes_half(unsigned h)
{
    return half_to_float((u16)h);
}

static inline unsigned frit_codes_bits(float x)
{
    return __float_as_uint(x);
}
#else
#include "quant/half.h"

static inline float frit_codes_half(unsigned h)
{
    return frit_half_to_float((uint16_t)h);
}

static inline unsigned frit_codes_bits(float x)
{
    return frit_bits_of_float(x);
}
#endif

typedef const unsigned char *frit_bytes;

// ------------------------------------------------------------------------------- offsets in a plane

// A plane has `bits` bits of each of 16 rows and 256 columns, in the layout of repack.h. A byte has several fields if
// bits < 8.

static inline int frit_plane_row(int bits, int unit, int byte)
{
    const int h = bits == 1 ? byte / 8 : bits == 2 ? unit / 32 : bits == 16 ? byte / 4 % 2 : unit / 32 % 2;
    return unit % 32 / 4 + h * 8;
}

static inline int frit_plane_column(int bits, int unit, int byte, int field)
{
    int g = byte / 4 % 2 * 4 + field / 2, s = field % 2, i = byte % 4;   // 1 bit
    if (bits == 2) g = byte / 4 * 2 + field / 2;
    if (bits == 4) g = unit / 64 * 4 + byte / 8 * 2 + field, s = byte / 4 % 2;
    if (bits == 8) g = unit / 64 * 2 + byte / 8, s = byte / 4 % 2;
    if (bits == 16) g = unit / 64, s = unit / 32 % 2, i = byte / 8 * 2 + byte % 4 / 2;
    if (bits == 32) g = unit / 128, s = unit / 64 % 2, i = byte / 4;
    return g * 32 + s * 16 + unit % 4 * 4 + i;
}

// ------------------------------------------------------------------------------- codes

static inline unsigned frit_word_at(frit_bytes b)
{
    return b[0] | b[1] << 8 | b[2] << 16 | (unsigned)b[3] << 24;
}

// Number k of blocks of 32 with n_bytes each, whose nibbles begin at `at`.
static inline unsigned frit_nibble_at(frit_bytes b, int k, int n_bytes, int at)
{
    return b[k / 32 * n_bytes + at + k % 16] >> k % 32 / 16 * 4 & 15;
}

// The bit of number k in four bytes that begin at `at`.
static inline unsigned frit_bit_at(frit_bytes b, int k, int n_bytes, int at)
{
    return b[k / 32 * n_bytes + at + k % 32 / 8] >> k % 8 & 1;
}

static inline unsigned frit_code_16(frit_bytes b, int k, frit_bytes grid)
{
    (void)grid;
    return b[2 * k] | b[2 * k + 1] << 8;
}

static inline unsigned frit_code_32(frit_bytes b, int k, frit_bytes grid)
{
    (void)grid;
    return frit_word_at(b + 4 * k);
}

static inline unsigned frit_code_q4_0(frit_bytes b, int k, frit_bytes grid)   // and iq4_nl
{
    (void)grid;
    return frit_nibble_at(b, k, 18, 2);
}

static inline unsigned frit_code_q4_1(frit_bytes b, int k, frit_bytes grid)
{
    (void)grid;
    return frit_nibble_at(b, k, 20, 4);
}

static inline unsigned frit_code_q5_0(frit_bytes b, int k, frit_bytes grid)
{
    (void)grid;
    return frit_nibble_at(b, k, 22, 6) | frit_bit_at(b, k, 22, 2) << 4;
}

static inline unsigned frit_code_q5_1(frit_bytes b, int k, frit_bytes grid)
{
    (void)grid;
    return frit_nibble_at(b, k, 24, 8) | frit_bit_at(b, k, 24, 4) << 4;
}

static inline unsigned frit_code_q8_0(frit_bytes b, int k, frit_bytes grid)
{
    (void)grid;
    return b[k / 32 * 34 + 2 + k % 32];
}

static inline unsigned frit_code_q2_k(frit_bytes b, int k, frit_bytes grid)
{
    (void)grid;
    return b[16 + k / 128 * 32 + k % 32] >> k / 32 % 4 * 2 & 3;
}

static inline unsigned frit_code_q3_k(frit_bytes b, int k, frit_bytes grid)   // less 4
{
    (void)grid;
    return (b[32 + k / 128 * 32 + k % 32] >> k / 32 % 4 * 2 & 3) | (b[k % 32] >> k / 32 & 1) << 2;
}

static inline unsigned frit_code_q4_k(frit_bytes b, int k, frit_bytes grid)
{
    (void)grid;
    return b[16 + k / 64 * 32 + k % 32] >> k / 32 % 2 * 4 & 15;
}

static inline unsigned frit_code_q5_k(frit_bytes b, int k, frit_bytes grid)
{
    (void)grid;
    return (b[48 + k / 64 * 32 + k % 32] >> k / 32 % 2 * 4 & 15) | (b[16 + k % 32] >> k / 32 & 1) << 4;
}

static inline unsigned frit_code_q6_k(frit_bytes b, int k, frit_bytes grid)   // less 32
{
    const int part = k / 128, unit = k / 32 % 4, l = k % 32;
    (void)grid;
    return (b[part * 64 + unit % 2 * 32 + l] >> unit / 2 * 4 & 15) | (b[128 + part * 32 + l] >> unit * 2 & 3) << 4;
}

static inline unsigned frit_code_iq4_xs(frit_bytes b, int k, frit_bytes grid)
{
    (void)grid;
    return b[8 + k / 32 * 16 + k % 16] >> k % 32 / 16 * 4 & 15;
}

static inline unsigned frit_code_mxfp4(frit_bytes b, int k, frit_bytes grid)
{
    (void)grid;
    return frit_nibble_at(b, k, 17, 1);
}

static inline unsigned frit_code_nvfp4(frit_bytes b, int k, frit_bytes grid)
{
    (void)grid;
    return b[k / 64 * 36 + 4 + k % 64 / 16 * 8 + k % 8] >> k % 16 / 8 * 4 & 15;
}

static inline unsigned frit_code_fp8_128(frit_bytes b, int k, frit_bytes grid)
{
    (void)grid;
    return b[k / 128 * 132 + 4 + k % 128];
}

// The following types become signed bytes with an f32 scale for each 16.

static inline unsigned frit_signed_level(int level, unsigned is_minus)
{
    return (unsigned)(is_minus ? -level : level) & 255;
}

// Sign j of eight signs in seven bits. The eighth makes the number of minus signs even.
static inline unsigned frit_even_sign(unsigned seven, int j)
{
    unsigned parity = seven & 127;
    parity ^= parity >> 4, parity ^= parity >> 2, parity ^= parity >> 1;
    return j < 7 ? seven >> j & 1 : parity & 1;
}

static inline unsigned frit_code_iq2_xxs(frit_bytes b, int k, frit_bytes grid)
{
    const int g = k / 32, l = k / 8 % 4, j = k % 8;
    const unsigned word = frit_word_at(b + 2 + g * 8 + 4);
    return frit_signed_level(grid[b[2 + g * 8 + l] * 8 + j], frit_even_sign(word >> 7 * l & 127, j));
}

static inline unsigned frit_code_iq2_xs(frit_bytes b, int k, frit_bytes grid)
{
    const unsigned code = b[2 + k / 8 * 2] | b[3 + k / 8 * 2] << 8;
    return frit_signed_level(grid[(code & 511) * 8 + (unsigned)(k % 8)], frit_even_sign(code >> 9, k % 8));
}

static inline unsigned frit_code_iq2_s(frit_bytes b, int k, frit_bytes grid)
{
    const int run = k / 8;
    const int index = b[2 + run] | (b[66 + run / 4] >> run % 4 * 2 & 3) << 8;
    return frit_signed_level(grid[index * 8 + k % 8], b[34 + run] >> k % 8 & 1);
}

static inline unsigned frit_code_iq3_xxs(frit_bytes b, int k, frit_bytes grid)
{
    const unsigned word = frit_word_at(b + 66 + k / 32 * 4);
    return frit_signed_level(grid[b[2 + k / 4] * 4 + k % 4], frit_even_sign(word >> k / 8 % 4 * 7 & 127, k % 8));
}

static inline unsigned frit_code_iq3_s(frit_bytes b, int k, frit_bytes grid)
{
    const int index = b[2 + k / 4] | (b[66 + k / 32] >> k / 4 % 8 & 1) << 8;
    return frit_signed_level(grid[index * 4 + k % 4], b[74 + k / 8] >> k % 8 & 1);
}

// Eight times a number of the grid, plus or minus 1.
static inline unsigned frit_shifted_level(int level, unsigned is_minus)
{
    return (unsigned)((signed char)level * 8 + (is_minus ? -1 : 1)) & 255;
}

static inline unsigned frit_code_iq1_s(frit_bytes b, int k, frit_bytes grid)
{
    const int qh = b[34 + k / 32 * 2] | b[35 + k / 32 * 2] << 8;
    const int index = b[2 + k / 8] | (qh >> k / 8 % 4 * 3 & 7) << 8;
    return frit_shifted_level(grid[index * 8 + k % 8], (unsigned)qh >> 15);
}

static inline unsigned frit_code_iq1_m(frit_bytes b, int k, frit_bytes grid)
{
    const int nibble = b[32 + k / 16] >> k / 8 % 2 * 4 & 15;
    return frit_shifted_level(grid[(b[k / 8] | (nibble & 7) << 8) * 8 + k % 8], (unsigned)nibble >> 3);
}

static inline unsigned frit_code_tq1_0(frit_bytes b, int k, frit_bytes grid)
{
    int at = k % 32, digit = k / 32;
    if (k >= 160) at = 32 + (k - 160) % 16, digit = (k - 160) / 16;
    if (k >= 240) at = 48 + (k - 240) % 4, digit = (k - 240) / 4;
    unsigned power = 1;
    for (int i = 0; i < digit; i++) power *= 3;
    (void)grid;
    return ((((b[at] * power) & 255) * 3 >> 8) - 1) & 255;
}

static inline unsigned frit_code_tq2_0(frit_bytes b, int k, frit_bytes grid)
{
    (void)grid;
    return ((b[k / 128 * 32 + k % 32] >> k / 32 % 4 * 2 & 3) - 1u) & 255;
}

static inline unsigned frit_code_q1_0(frit_bytes b, int k, frit_bytes grid)
{
    (void)grid;
    return b[k / 128 * 18 + 2 + k % 128 / 8] >> k % 8 & 1 ? 1 : 255;
}

static inline unsigned frit_code_q2_0(frit_bytes b, int k, frit_bytes grid)
{
    (void)grid;
    return ((b[k / 64 * 18 + 2 + k % 64 / 4] >> k % 4 * 2 & 3) - 1u) & 255;
}

// ------------------------------------------------------------------------------- scales

// Byte i of the scales of a row, which a tile has in two planes: head and tail.

static inline unsigned frit_head_none(frit_bytes b, int i, int n)
{
    (void)b, (void)i, (void)n;
    return 0;
}

static inline unsigned frit_head_16(frit_bytes b, int i, int n)   // the first 16 bytes
{
    (void)n;
    return b[i];
}

// The first two bytes of each block of 32 numbers and n_bytes bytes.
static inline unsigned frit_pair_at(frit_bytes b, int i, int n, int n_bytes)
{
    return i / 2 * 32 < n ? b[i / 2 * n_bytes + i % 2] : 0;
}

static inline unsigned frit_head_q4_0(frit_bytes b, int i, int n)
{
    return frit_pair_at(b, i, n, 18);
}

static inline unsigned frit_head_fp8_128(frit_bytes b, int i, int n)   // f32 of two blocks
{
    return i / 4 * 128 < n ? b[i / 4 * 132 + i % 4] : 0;
}

static inline unsigned frit_head_q8_0(frit_bytes b, int i, int n)
{
    return frit_pair_at(b, i, n, 34);
}

static inline unsigned frit_head_q5_0(frit_bytes b, int i, int n)
{
    return frit_pair_at(b, i, n, 22);
}

static inline unsigned frit_head_q4_1(frit_bytes b, int i, int n)   // d of 8 blocks
{
    return frit_pair_at(b, i, n, 20);
}

static inline unsigned frit_tail_q4_1(frit_bytes b, int i, int n)   // m of 8 blocks
{
    return frit_pair_at(b + 2, i, n, 20);
}

static inline unsigned frit_head_q5_1(frit_bytes b, int i, int n)
{
    return frit_pair_at(b, i, n, 24);
}

static inline unsigned frit_tail_q5_1(frit_bytes b, int i, int n)
{
    return frit_pair_at(b + 2, i, n, 24);
}

static inline unsigned frit_tail_q2_k(frit_bytes b, int i, int n)
{
    (void)n;
    return b[80 + i];
}

// Scales of six bits, less 32 (quant/scales.h), one in a byte.
static inline unsigned frit_head_q3_k(frit_bytes b, int i, int n)
{
    const int low = i < 8 ? b[96 + i] & 15 : b[96 + i - 8] >> 4, high = b[104 + i % 4] >> i / 4 * 2 & 3;
    (void)n;
    return (unsigned)((low | high << 4) - 32) & 255;
}

static inline unsigned frit_tail_q3_k(frit_bytes b, int i, int n)
{
    (void)n;
    return b[108 + i];
}

static inline unsigned frit_head_q6_k(frit_bytes b, int i, int n)
{
    (void)n;
    return b[192 + i];
}

static inline unsigned frit_tail_q6_k(frit_bytes b, int i, int n)
{
    (void)n;
    return b[208 + i];
}

static inline unsigned frit_head_iq4_xs(frit_bytes b, int i, int n)
{
    const int low = b[4 + i / 2] >> i % 2 * 4 & 15, high = (b[2] | b[3] << 8) >> i * 2 & 3;
    (void)n;
    return (unsigned)((low | high << 4) - 32) & 255;
}

static inline unsigned frit_head_mxfp4(frit_bytes b, int i, int n)
{
    return i * 32 < n ? b[i * 17] : 0;
}

static inline unsigned frit_head_nvfp4(frit_bytes b, int i, int n)
{
    return i * 16 < n ? b[i / 4 * 36 + i % 4] : 0;
}

static inline float frit_half_at(frit_bytes b)
{
    return frit_codes_half(b[0] | (unsigned)b[1] << 8);
}

// Byte i of sixteen f32 scales.
static inline unsigned frit_byte_of_scale(float scale, int i)
{
    return frit_codes_bits(scale) >> i % 4 * 8 & 255;
}

static inline unsigned frit_head_iq2_xxs(frit_bytes b, int i, int n)
{
    const unsigned scale = frit_word_at(b + 2 + i / 8 * 8 + 4) >> 28;
    (void)n;
    return frit_byte_of_scale(frit_half_at(b) * (0.5f + (float)scale) * 0.25f, i);
}

static inline unsigned frit_head_iq2_xs(frit_bytes b, int i, int n)
{
    const int scale = b[66 + i / 8] >> i / 4 % 2 * 4 & 15;
    (void)n;
    return frit_byte_of_scale(frit_half_at(b) * (0.5f + (float)scale) * 0.25f, i);
}

static inline unsigned frit_head_iq2_s(frit_bytes b, int i, int n)
{
    const int scale = b[74 + i / 8] >> i / 4 % 2 * 4 & 15;
    (void)n;
    return frit_byte_of_scale(frit_half_at(b) * (0.5f + (float)scale) * 0.25f, i);
}

static inline unsigned frit_head_iq3_xxs(frit_bytes b, int i, int n)
{
    const unsigned scale = frit_word_at(b + 66 + i / 8 * 4) >> 28;
    (void)n;
    return frit_byte_of_scale(frit_half_at(b) * (0.5f + (float)scale) * 0.5f, i);
}

static inline unsigned frit_head_iq3_s(frit_bytes b, int i, int n)
{
    const int scale = b[106 + i / 16] >> i / 8 % 2 * 4 & 15;
    (void)n;
    return frit_byte_of_scale(frit_half_at(b) * (float)(1 + 2 * scale), i);
}

// An eighth of the scale, because codes have a factor 8.
static inline unsigned frit_head_iq1_s(frit_bytes b, int i, int n)
{
    const int scale = b[35 + i / 8 * 2] >> 4 & 7;
    (void)n;
    return frit_byte_of_scale(frit_half_at(b) * (float)(2 * scale + 1) * 0.125f, i);
}

static inline unsigned frit_head_iq1_m(frit_bytes b, int i, int n)
{
    const int group = i / 4;   // of 16 numbers
    const int scale = (b[48 + group / 4 * 2] | b[49 + group / 4 * 2] << 8) >> group % 4 * 3 & 7;
    const unsigned d = b[49] >> 4 | (b[51] & 0xf0u) | (b[53] & 0xf0u) << 4 | (b[55] & 0xf0u) << 8;
    (void)n;
    return frit_byte_of_scale(frit_codes_half(d) * (float)(2 * scale + 1) * 0.125f, i);
}

static inline unsigned frit_head_tq1_0(frit_bytes b, int i, int n)
{
    (void)n;
    return frit_byte_of_scale(frit_half_at(b + 52), i);
}

static inline unsigned frit_head_tq2_0(frit_bytes b, int i, int n)
{
    (void)n;
    return frit_byte_of_scale(frit_half_at(b + 64), i);
}

static inline unsigned frit_head_q1_0(frit_bytes b, int i, int n)
{
    return i / 32 * 128 < n ? frit_byte_of_scale(frit_half_at(b + i / 32 * 18), i) : 0;
}

static inline unsigned frit_head_q2_0(frit_bytes b, int i, int n)
{
    return i / 16 * 64 < n ? frit_byte_of_scale(frit_half_at(b + i / 16 * 18), i) : 0;
}
