// SPDX-License-Identifier: MIT
// Encoders of the formats that need no search: Q1_0, Q2_0, TQ1_0, TQ2_0, MXFP4 and NVFP4. They ignore importance.
#include <math.h>

#include "quant/blocks.h"
#include "quant/dtype.h"
#include "quant/encode.h"
#include "quant/levels.h"
#include "quant/scales.h"

// d is the mean magnitude; the bits are signs.
void frit_encode_q1_0(const float *values, void *blocks, int64_t n, const float *importance)
{
    (void)importance;
    frit_block_q1_0 *block = blocks;
    for (int64_t i = 0; i < n; i += 128, block++) {
        const float *x = values + i;
        float sum = 0;
        for (int j = 0; j < 128; j++) sum += fabsf(x[j]);
        block->d = frit_float_to_half(sum / 128);
        memset(block->qs, 0, sizeof block->qs);
        for (int j = 0; j < 128; j++) block->qs[j / 8] |= (uint8_t)((x[j] >= 0) << j % 8);
    }
}

// d is the largest magnitude, so the code for 2 d stays unused.
void frit_encode_q2_0(const float *values, void *blocks, int64_t n, const float *importance)
{
    (void)importance;
    frit_block_q2_0 *block = blocks;
    for (int64_t i = 0; i < n; i += 64, block++) {
        const float *x = values + i;
        float d = fabsf(frit_extreme(x, 64)), inverse = frit_inverse(d);
        block->d = frit_float_to_half(d);
        memset(block->qs, 0, sizeof block->qs);
        for (int j = 0; j < 64; j++)
            block->qs[j / 4] |= (uint8_t)((frit_round_away_clamped(x[j] * inverse, -1, 2) + 1) << j % 4 * 2);
    }
}

// Writes bytes of five digits (or four and a zero). Consecutive digits belong to numbers that are n_bytes apart; see
// low_bits.c.
static const float *encode_digits(const float *x, int n_bytes, int n_digits, float inverse, uint8_t *qs)
{
    for (int l = 0; l < n_bytes; l++) {
        int number = 0;
        for (int digit = 0; digit < 5; digit++) {
            int q = digit < n_digits ? frit_round_away_clamped(x[digit * n_bytes + l] * inverse, -1, 1) + 1 : 0;
            number = number * 3 + q;
        }
        qs[l] = (uint8_t)((number * 256 + 242) / 243);
    }
    return x + n_bytes * n_digits;
}

void frit_encode_tq1_0(const float *values, void *blocks, int64_t n, const float *importance)
{
    (void)importance;
    frit_block_tq1_0 *block = blocks;
    for (int64_t i = 0; i < n; i += 256, block++) {
        const float *x = values + i;
        float d = fabsf(frit_extreme(x, 256)), inverse = frit_inverse(d);
        block->d = frit_float_to_half(d);
        x = encode_digits(x, 32, 5, inverse, block->qs);
        x = encode_digits(x, 16, 5, inverse, block->qs + 32);
        encode_digits(x, 4, 4, inverse, block->qh);
    }
}

void frit_encode_tq2_0(const float *values, void *blocks, int64_t n, const float *importance)
{
    (void)importance;
    frit_block_tq2_0 *block = blocks;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = fabsf(frit_extreme(values + i, 256)), inverse = frit_inverse(d);
        block->d = frit_float_to_half(d);
        for (int l = 0; l < 64; l++) {
            const float *x = values + i + l / 32 * 128 + l % 32;
            int byte = 0;
            for (int k = 0; k < 4; k++) byte |= (frit_round_away_clamped(x[k * 32] * inverse, -1, 1) + 1) << 2 * k;
            block->qs[l] = (uint8_t)byte;
        }
    }
}

// The index of the nearest level, the first of equally near ones; d is half the scale, as in decoding.
static int nearest_fp4(float x, float d)
{
    int nearest = 0;
    float smallest = fabsf((float)frit_fp4_levels[0] * d - x);
    for (int i = 1; i < 16; i++) {
        float error = fabsf((float)frit_fp4_levels[i] * d - x);
        if (!(error < smallest)) continue;
        nearest = i;
        smallest = error;
    }
    return nearest;
}

static void encode_nibbles(const float *x, int half, float d, uint8_t *qs)
{
    for (int j = 0; j < half; j++) qs[j] = (uint8_t)(nearest_fp4(x[j], d) | nearest_fp4(x[j + half], d) << 4);
}

// The scale maps the largest magnitude to a number between 4 and 8 (6 is the largest level): floor(log2(largest)) - 2.
void frit_encode_mxfp4(const float *values, void *blocks, int64_t n, const float *importance)
{
    (void)importance;
    frit_block_mxfp4 *block = blocks;
    for (int64_t i = 0; i < n; i += 32, block++) {
        const float *x = values + i;
        float largest = fabsf(frit_extreme(x, 32));
        int exponent = (int)(frit_bits_of_float(largest) >> 23);   // also the exponent of E8M0: both have the bias 127
        block->e = (uint8_t)(exponent > 2 ? exponent - 2 : 0);
        encode_nibbles(x, 16, frit_e8m0_half(block->e), block->qs);
    }
}

// Rounds to the nearest unsigned E4M3 number, ties up. Numbers from 256 on become the largest, 448. Numbers below 2^-6
// become at most the largest subnormal, 7 * 2^-9.
static uint8_t ue4m3_of(float x)
{
    if (!(x > 0)) return 0;
    if (x < 0x1p-6f) return (uint8_t)frit_truncate_clamped(x * 512 + 0.5f, 0, 7);
    uint32_t rounded = ((frit_bits_of_float(x) + (1u << 19)) >> 20) - ((127 - 7) << 3);
    return (uint8_t)(rounded < 15 << 3 ? rounded : 0x7e);
}

// The scale maps the largest magnitude of sixteen numbers to 6, the largest level.
void frit_encode_nvfp4(const float *values, void *blocks, int64_t n, const float *importance)
{
    (void)importance;
    frit_block_nvfp4 *block = blocks;
    for (int64_t i = 0; i < n; i += 64, block++) {
        for (int g = 0; g < 4; g++) {
            const float *x = values + i + g * 16;
            block->d[g] = ue4m3_of(fabsf(frit_extreme(x, 16)) / 6.0f);
            encode_nibbles(x, 8, frit_ue4m3_half(block->d[g]), block->qs + g * 8);
        }
    }
}
