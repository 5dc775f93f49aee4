// SPDX-License-Identifier: MIT
// Encoders of Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0.
//
// Without importance the extremes of a block determine its scale. With importance, the scale comes from a search that
// weights the squared error of a number by importance * sqrt(mean square of the row + square of the number).
#include <math.h>

#include "quant/blocks.h"
#include "quant/dtype.h"
#include "quant/encode.h"
#include "quant/half.h"
#include "quant/search/offset_search.h"
#include "quant/block_write.h"

static const frit_offset_search weighted_search = {-0.9f, 0.05f, 36, false};

static float mean_square(const float *values, int64_t n, const float *importance)
{
    return importance ? frit_sum_of_squares(values, n) / (float)n : 0;
}

// x = d * (code - half). Without importance the extreme becomes -half, because the range has one more step at this end.
static float fit_symmetric(const float *x, const float *importance, float mean, int half, uint8_t codes[32])
{
    if (importance) {
        float weights[32];
        frit_weigh(x, importance, 32, mean, weights);
        return frit_fit_signed(x, weights, 32, half, codes);
    }
    float d = frit_extreme(x, 32) / (float)-half, inverse = frit_inverse(d);
    for (int j = 0; j < 32; j++) {
        codes[j] = (uint8_t)frit_truncate_clamped(x[j] * inverse + ((float)half + 0.5f), 0, 2 * half - 1);
    }
    return d;
}

// x = scale * code - min: the smallest number becomes 0 and the largest `top`.
static frit_offset_fit fit_extremes(const float *x, int top, uint8_t codes[32])
{
    float min = x[0], max = x[0];
    for (int j = 1; j < 32; j++) {
        min = x[j] < min ? x[j] : min;
        max = x[j] > max ? x[j] : max;
    }
    float d = (max - min) / (float)top, inverse = frit_inverse(d);
    for (int j = 0; j < 32; j++) codes[j] = (uint8_t)frit_truncate_clamped((x[j] - min) * inverse + 0.5f, 0, top);
    return (frit_offset_fit){d, -min};
}

enum { AT_ONCE = 8 };   // blocks

// Computes the scales, mins and codes of n blocks, at most AT_ONCE.
static void fit_offsets(const float *x, const float *importance, float mean, int n, int top, frit_offset_fit *fits,
                        uint8_t *codes)
{
    float weights[AT_ONCE * 32];
    for (int i = 0; i < n && !importance; i++) fits[i] = fit_extremes(x + 32 * i, top, codes + 32 * i);
    if (!importance) return;
    frit_weigh(x, importance, 32 * n, mean, weights);
    frit_fit_offsets(&(frit_offset_groups){x, weights, n, 32, top, &weighted_search, fits, codes});
}

void frit_encode_q4_0(const float *values, void *blocks, int64_t n, const float *importance)
{
    frit_block_q4_0 *block = blocks;
    float mean = mean_square(values, n, importance);
    for (int64_t i = 0; i < n; i += 32, block++) {
        uint8_t codes[32];
        block->d = frit_float_to_half(fit_symmetric(values + i, importance ? importance + i : NULL, mean, 8, codes));
        frit_write_nibbles(codes, block->qs);
    }
}

void frit_encode_q4_1(const float *values, void *blocks, int64_t n, const float *importance)
{
    frit_block_q4_1 *block = blocks;
    float mean = mean_square(values, n, importance);
    for (int64_t i = 0; i < n; i += 32 * AT_ONCE) {
        frit_offset_fit fits[AT_ONCE];
        uint8_t codes[32 * AT_ONCE];
        const int n_now = n - i < 32 * AT_ONCE ? (int)(n - i) / 32 : AT_ONCE;
        fit_offsets(values + i, importance ? importance + i : NULL, mean, n_now, 15, fits, codes);
        for (int k = 0; k < n_now; k++, block++) {
            block->d = frit_float_to_half(fits[k].scale);
            block->m = frit_float_to_half(-fits[k].min);
            frit_write_nibbles(codes + 32 * k, block->qs);
        }
    }
}

void frit_encode_q5_0(const float *values, void *blocks, int64_t n, const float *importance)
{
    frit_block_q5_0 *block = blocks;
    float mean = mean_square(values, n, importance);
    for (int64_t i = 0; i < n; i += 32, block++) {
        uint8_t codes[32];
        block->d = frit_float_to_half(fit_symmetric(values + i, importance ? importance + i : NULL, mean, 16, codes));
        block->qh = frit_write_fifth_bits(codes);
        frit_write_nibbles(codes, block->qs);
    }
}

void frit_encode_q5_1(const float *values, void *blocks, int64_t n, const float *importance)
{
    frit_block_q5_1 *block = blocks;
    float mean = mean_square(values, n, importance);
    for (int64_t i = 0; i < n; i += 32 * AT_ONCE) {
        frit_offset_fit fits[AT_ONCE];
        uint8_t codes[32 * AT_ONCE];
        const int n_now = n - i < 32 * AT_ONCE ? (int)(n - i) / 32 : AT_ONCE;
        fit_offsets(values + i, importance ? importance + i : NULL, mean, n_now, 31, fits, codes);
        for (int k = 0; k < n_now; k++, block++) {
            block->d = frit_float_to_half(fits[k].scale);
            block->m = frit_float_to_half(-fits[k].min);
            block->qh = frit_write_fifth_bits(codes + 32 * k);
            frit_write_nibbles(codes + 32 * k, block->qs);
        }
    }
}

// Maps the largest magnitude to 127 or -127; ties round away from zero. Eight bits need no search.
void frit_encode_q8_0(const float *values, void *blocks, int64_t n, const float *importance)
{
    (void)importance;
    frit_block_q8_0 *block = blocks;
    for (int64_t i = 0; i < n; i += 32, block++) {
        const float *x = values + i;
        float d = fabsf(frit_extreme(x, 32)) / 127, inverse = frit_inverse(d);
        block->d = frit_float_to_half(d);
        for (int j = 0; j < 32; j++) block->qs[j] = (int8_t)frit_round_away_clamped(x[j] * inverse, -128, 127);
    }
}
