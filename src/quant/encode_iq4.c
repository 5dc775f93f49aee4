// SPDX-License-Identifier: MIT
// Encoders of IQ4_NL and IQ4_XS: the scale of 32 numbers by trial, then the nearest of sixteen uneven levels.
#include <math.h>

#include "quant/blocks.h"
#include "quant/dtype.h"
#include "quant/encode.h"
#include "quant/half.h"
#include "quant/search/level_search.h"
#include "quant/block_write.h"

// `mean` is twice the mean square of the block.
static float fit_block(const float *x, const float *importance, float mean)
{
    float weights[32];
    if (importance)
        frit_weigh(x, importance, 32, mean, weights);
    else
        frit_weigh_by_square(x, 32, weights);
    return frit_fit_levels(x, weights);
}

static void encode_levels(const float *x, float inverse, uint8_t qs[16])
{
    uint8_t codes[32];
    frit_nearest_levels(x, inverse, codes);
    frit_write_nibbles(codes, qs);
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
