// SPDX-License-Identifier: MIT
// Encoders of Q4_0 and Q8_0.
//
// Without importance the extreme number of a block sets the scale. With it, the scale comes from a search that weighs
// the squared error of a number by importance * sqrt(mean square of the row + square of the number).
#include <math.h>

#include "quant/blocks.h"
#include "quant/dtype.h"
#include "quant/encode.h"
#include "quant/half.h"

static float mean_square(const float *values, int64_t n)
{
    float sum = 0;
    for (int64_t i = 0; i < n; i++) sum += values[i] * values[i];
    return sum / (float)n;
}

static void weigh(const float *x, const float *importance, float mean, float weights[32])
{
    for (int j = 0; j < 32; j++) weights[j] = importance[j] * sqrtf(mean + x[j] * x[j]);
}

// The number of largest magnitude, with its sign; the first of equals.
static float extreme_of(const float x[32])
{
    float extreme = 0;
    for (int j = 0; j < 32; j++) {
        if (fabsf(extreme) < fabsf(x[j])) extreme = x[j];
    }
    return extreme;
}

static float inverse_of(float d)
{
    return d != 0 ? 1.0f / d : 0.0f;
}

static void pack_nibbles(const uint8_t codes[32], uint8_t qs[16])
{
    for (int j = 0; j < 16; j++) qs[j] = (uint8_t)((codes[j] & 15) | (codes[j + 16] & 15) << 4);
}

// The extreme becomes -8, the end that has one step more.
void frit_encode_q4_0(const float *values, void *blocks, int64_t n, const float *importance)
{
    frit_block_q4_0 *block = blocks;
    float mean = importance ? mean_square(values, n) : 0;
    for (int64_t i = 0; i < n; i += 32, block++) {
        const float *x = values + i;
        uint8_t codes[32];
        float d;
        if (importance) {
            float weights[32];
            weigh(x, importance + i, mean, weights);
            d = frit_fit_signed(x, weights, 32, 8, codes);
        } else {
            d = extreme_of(x) / -8;
            float inverse = inverse_of(d);
            for (int j = 0; j < 32; j++) codes[j] = (uint8_t)frit_truncate_clamped(x[j] * inverse + 8.5f, 0, 15);
        }
        block->d = frit_float_to_half(d);
        pack_nibbles(codes, block->qs);
    }
}

// The largest magnitude becomes 127 or -127; ties round away from zero. Eight bits need no search.
void frit_encode_q8_0(const float *values, void *blocks, int64_t n, const float *importance)
{
    (void)importance;
    frit_block_q8_0 *block = blocks;
    for (int64_t i = 0; i < n; i += 32, block++) {
        const float *x = values + i;
        float d = fabsf(extreme_of(x)) / 127, inverse = inverse_of(d);
        block->d = frit_float_to_half(d);
        for (int j = 0; j < 32; j++) block->qs[j] = (int8_t)frit_truncate_clamped(roundf(x[j] * inverse), -128, 127);
    }
}
