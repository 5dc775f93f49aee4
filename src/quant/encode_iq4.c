// SPDX-License-Identifier: MIT
// Encoders of IQ4_NL and IQ4_XS: the scale of 32 numbers by trial, then the nearest of sixteen uneven levels.
#include <math.h>

#include "quant/blocks.h"
#include "quant/dtype.h"
#include "quant/encode.h"
#include "quant/half.h"
#include "quant/levels.h"

// middles[i]: between levels i and i + 1.
static const float middles[15] = {-115.5f, -93.5f, -74, -57, -42, -28.5f, -16, -4.5f, 7, 19, 31.5f, 45.5f, 61, 79, 101};

// The index of the nearest level, the upper of two equally near.
static int nearest_level(float x)
{
    int index = 0;
    for (int step = 8; step > 0; step /= 2) {
        if (x >= middles[index + step - 1]) index += step;
    }
    return index;
}

// The scale for which levels fit x best. The extreme goes to levels[0] = -127 or thereabouts, or, in the first trial,
// to 127.
static float fit_levels(const float x[32], const float weights[32])
{
    enum { TRIALS = 7 };
    float extreme = frit_extreme(x, 32), d = 0, best = 0;
    if (fabsf(extreme) < 1e-15f) return 0;
    for (int trial = -TRIALS - 1; trial <= TRIALS; trial++) {
        bool first = trial < -TRIALS;
        float inverse = first ? 1 / (extreme / 127) : (float)(trial - 127) / extreme, sum_xq = 0, sum_qq = 0;
        for (int j = 0; j < 32; j++) {
            float q = (float)frit_iq4_levels[nearest_level(inverse * x[j])], wq = weights[j] * q;
            sum_xq += wq * x[j];
            sum_qq += wq * q;
        }
        if (!(sum_qq > 0 && (first || sum_xq * sum_xq > best * sum_qq))) continue;
        d = sum_xq / sum_qq;
        best = d * sum_xq;
    }
    return d;
}

// `mean`: twice the mean square of the block.
static float fit_block(const float *x, const float *importance, float mean)
{
    float weights[32];
    if (importance)
        frit_weigh(x, importance, 32, mean, weights);
    else
        frit_weigh_by_square(x, 32, weights);
    return fit_levels(x, weights);
}

static void encode_levels(const float *x, float inverse, uint8_t qs[16])
{
    for (int j = 0; j < 16; j++) {
        qs[j] = (uint8_t)(nearest_level(inverse * x[j]) | nearest_level(inverse * x[j + 16]) << 4);
    }
}

void frit_encode_iq4_nl(const float *values, void *blocks, int64_t n, const float *importance)
{
    frit_block_iq4_nl *block = blocks;
    for (int64_t i = 0; i < n; i += 32, block++) {
        const float *x = values + i;
        float mean = importance ? frit_sum_of_squares(x, 32) * (2.0f / 32) : 0;
        float d = fit_block(x, importance ? importance + i : NULL, mean);
        block->d = frit_float_to_half(d);
        encode_levels(x, frit_inverse(d), block->qs);
    }
}

void frit_encode_iq4_xs(const float *values, void *blocks, int64_t n, const float *importance)
{
    frit_block_iq4_xs *block = blocks;
    for (int64_t i = 0; i < n; i += 256, block++) {
        const float *x = values + i;
        float mean = importance ? frit_sum_of_squares(x, 256) * (2.0f / 256) : 0, fits[8];
        for (int g = 0; g < 8; g++) fits[g] = fit_block(x + g * 32, importance ? importance + i + g * 32 : NULL, mean);
        float d = -frit_extreme(fits, 8) / 32, inverse = frit_inverse(d);
        unsigned low = 0, high = 0;   // four and two bits of each group's scale
        for (int g = 0; g < 8; g++) {
            int scale = frit_round_clamped(inverse * fits[g], -32, 31);
            encode_levels(x + g * 32, frit_inverse(d * (float)scale), block->qs + g * 16);
            low |= (unsigned)((scale + 32) & 15) << 4 * g;
            high |= (unsigned)((scale + 32) >> 4) << 2 * g;
        }
        block->d = frit_float_to_half(d);
        block->scales_high = (uint16_t)high;
        for (int k = 0; k < 4; k++) block->scales_low[k] = (uint8_t)(low >> 8 * k);
    }
}
