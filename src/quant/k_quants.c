// SPDX-License-Identifier: MIT
// Q2_K to Q6_K: super-blocks of 256 numbers in groups of 16 or 32, whose scales are small integers themselves.
//
//     Q2_K, Q4_K, Q5_K    x = (d * scale[g]) * q - dmin * min[g]      unsigned scales and mins
//     Q3_K, Q6_K          x = (d * scale[g]) * q                      signed scales and q
//
// Fields in one byte belong to numbers that are 32 apart, so 32 bytes contain 128 numbers of two bits, or 64 of four.
// In units of 32 numbers, where byte l of the 32 has number l of each unit:
//
//     two bits    | unit 3 | unit 2 | unit 1 | unit 0 |     units 0..3 in bytes 0..31, units 4..7 in bytes 32..63
//                    7 6      5 4      3 2      1 0
//     four bits   |      unit 1     |     unit 0      |     units 0, 1 in bytes 0..31, units 2, 3 in bytes 32..63, ..
//                    7 6   ..   4      3    ..    0
//     one bit     byte l of 32: bit u belongs to unit u
#include "quant/blocks.h"
#include "quant/dtype.h"
#include "quant/scales.h"

// Sixteen groups of 16. scales[g]: the scale in the low four bits, the min in the high ones.
void frit_decode_q2_k(const void *blocks, float *values, int64_t n)
{
    const frit_block_q2_k *block = blocks;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = frit_half_to_float(block->d), dmin = frit_half_to_float(block->dmin);
        for (int g = 0; g < 16; g++) {
            float scale = d * (float)(block->scales[g] & 15), min = dmin * (float)(block->scales[g] >> 4);
            const uint8_t *qs = block->qs + g / 8 * 32 + g % 2 * 16;
            int shift = g / 2 % 4 * 2;
            for (int l = 0; l < 16; l++) *values++ = scale * (float)(qs[l] >> shift & 3) - min;
        }
    }
}

// Sixteen groups of 16. q is two bits of qs, minus 4 unless the bit of qh is set: -4..3.
void frit_decode_q3_k(const void *blocks, float *values, int64_t n)
{
    const frit_block_q3_k *block = blocks;
    for (int64_t i = 0; i < n; i += 256, block++) {
        int8_t scales[16];
        frit_unpack_scales_q3_k(block->scales, scales);
        float d = frit_half_to_float(block->d);
        for (int g = 0; g < 16; g++) {
            float scale = d * (float)scales[g];
            const uint8_t *qs = block->qs + g / 8 * 32 + g % 2 * 16, *qh = block->qh + g % 2 * 16;
            int unit = g / 2, shift = unit % 4 * 2;
            for (int l = 0; l < 16; l++) {
                *values++ = scale * (float)((qs[l] >> shift & 3) + (qh[l] >> unit & 1) * 4 - 4);
            }
        }
    }
}

// Eight groups of 32.
void frit_decode_q4_k(const void *blocks, float *values, int64_t n)
{
    const frit_block_q4_k *block = blocks;
    for (int64_t i = 0; i < n; i += 256, block++) {
        uint8_t scales[8], mins[8];
        frit_unpack_scales_q4_k(block->scales, scales, mins);
        float d = frit_half_to_float(block->d), dmin = frit_half_to_float(block->dmin);
        for (int g = 0; g < 8; g++) {
            float scale = d * (float)scales[g], min = dmin * (float)mins[g];
            const uint8_t *qs = block->qs + g / 2 * 32;
            int shift = g % 2 * 4;
            for (int l = 0; l < 32; l++) *values++ = scale * (float)(qs[l] >> shift & 15) - min;
        }
    }
}

// Eight groups of 32; as Q4_K with a fifth bit in qh.
void frit_decode_q5_k(const void *blocks, float *values, int64_t n)
{
    const frit_block_q5_k *block = blocks;
    for (int64_t i = 0; i < n; i += 256, block++) {
        uint8_t scales[8], mins[8];
        frit_unpack_scales_q4_k(block->scales, scales, mins);
        float d = frit_half_to_float(block->d), dmin = frit_half_to_float(block->dmin);
        for (int g = 0; g < 8; g++) {
            float scale = d * (float)scales[g], min = dmin * (float)mins[g];
            const uint8_t *qs = block->qs + g / 2 * 32, *qh = block->qh;
            int shift = g % 2 * 4;
            for (int l = 0; l < 32; l++) {
                *values++ = scale * (float)((qs[l] >> shift & 15) + (qh[l] >> g & 1) * 16) - min;
            }
        }
    }
}

// Sixteen groups of 16. Unlike in the other formats, 64 bytes of ql contain 128 numbers, with units 0 and 2 in one
// byte, 1 and 3 in another:
//
//     ql byte l         | unit 2 | unit 0 |        qh byte l   | unit 3 | unit 2 | unit 1 | unit 0 |
//     ql byte l + 32    | unit 3 | unit 1 |
//
// q is four bits of ql and two of qh, minus 32.
void frit_decode_q6_k(const void *blocks, float *values, int64_t n)
{
    const frit_block_q6_k *block = blocks;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = frit_half_to_float(block->d);
        for (int g = 0; g < 16; g++) {
            float scale = d * (float)block->scales[g];
            int half = g / 8, unit = g / 2 % 4, l0 = g % 2 * 16;
            const uint8_t *ql = block->ql + half * 64 + unit % 2 * 32 + l0, *qh = block->qh + half * 32 + l0;
            int shift_low = unit / 2 * 4, shift_high = unit * 2;
            for (int l = 0; l < 16; l++) {
                int q = (ql[l] >> shift_low & 15) | (qh[l] >> shift_high & 3) << 4;
                *values++ = scale * (float)(q - 32);
            }
        }
    }
}
