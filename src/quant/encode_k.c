// SPDX-License-Identifier: MIT
// Encoders of Q2_K to Q6_K.
//
// 1. A search gives each group of numbers its own scale (and min), in float.
// 2. The scales of a super-block become small integers with a common scale d (and dmin).
// 3. The numbers are rounded again, to the stored scales: half d times integer.
// 4. Codes are packed; k_quants.c shows the layout.
#include <math.h>

#include "quant/blocks.h"
#include "quant/dtype.h"
#include "quant/encode.h"
#include "quant/search/offset_search.h"
#include "quant/block_write.h"
#include "quant/scales.h"

// Step 3: finds codes q - low for x = d * q - min. A group whose scale is zero keeps the codes of its search.
static void round_again(const float *x, int n, float d, float min, int low, int high, uint8_t *codes)
{
    if (d == 0) return;
    for (int i = 0; i < n; i++) codes[i] = (uint8_t)(frit_round_clamped((x[i] + min) / d, low, high) - low);
}

// ---------------------------------------------------------------------- formats with mins: Q2_K, Q4_K, Q5_K

typedef struct offset_format {
    int group;            // numbers in a group
    int top, top_scale;   // the largest code, and the largest integer scale or min
    bool add_rms;         // weights without importance: |x|, or |x| + root mean square of the group
    float spread;         // weights with importance: importance * sqrt(spread * mean square + x^2)
    frit_offset_search search, weighted_search;
} offset_format;

static const offset_format q2_k = {16, 3, 15, false, 1, {-0.5f, 0.1f, 15, true}, {-0.9f, 0.05f, 36, false}};
static const offset_format q4_k = {32, 15, 63, true, 2, {-1.0f, 0.1f, 20, false}, {-0.9f, 0.05f, 36, false}};
static const offset_format q5_k = {32, 31, 63, true, 2, {-0.5f, 0.1f, 15, false}, {-0.9f, 0.05f, 36, false}};

typedef struct offset_block {
    frit_half d, dmin;
    uint8_t scales[16], mins[16], codes[256];
} offset_block;

// Step 2 without importance: the largest scale becomes `top`.
static float round_scales(const float *scales, int n, int top, uint8_t *rounded)
{
    float max = 0;
    for (int g = 0; g < n; g++) max = scales[g] > max ? scales[g] : max;
    float inverse = max > 0 ? (float)top / max : 0;
    for (int g = 0; g < n; g++) rounded[g] = (uint8_t)frit_round_clamped(inverse * scales[g], 0, top);
    return max / (float)top;
}

static void weigh_group(const offset_format *format, const float *x, const float *importance, float mean,
                        float *weights)
{
    if (importance) {
        frit_weigh(x, importance, format->group, mean, weights);
        return;
    }
    float rms = format->add_rms ? sqrtf(frit_sum_of_squares(x, format->group) / (float)format->group) : 0;
    for (int l = 0; l < format->group; l++) weights[l] = rms + fabsf(x[l]);
}

// Step 1: fits each group.
static void fit_groups(const offset_format *format, const float *x, const float *weights, bool is_weighted,
                       float *scales, float *mins, uint8_t *codes)
{
    frit_offset_fit fits[16];
    const frit_offset_groups groups = {.x = x,
                                       .weights = weights,
                                       .n_groups = 256 / format->group,
                                       .n = format->group,
                                       .n_max = format->top,
                                       .search = is_weighted ? &format->weighted_search : &format->search,
                                       .fits = fits,
                                       .codes = codes};
    frit_fit_offsets(&groups);
    for (int g = 0; g < groups.n_groups; g++) {
        scales[g] = fits[g].scale;
        mins[g] = fits[g].min;
    }
}

static void encode_offset(const offset_format *format, const float *x, const float *importance, offset_block *out)
{
    int size = format->group, n_groups = 256 / size;
    float mean = importance ? format->spread * frit_sum_of_squares(x, 256) / 256 : 0;
    float weights[256], scales[16], mins[16], sums[16];
    for (int g = 0; g < n_groups; g++) {
        weigh_group(format, x + g * size, importance ? importance + g * size : NULL, mean, weights + g * size);
        sums[g] = 0;
        for (int l = 0; l < size; l++) sums[g] += weights[g * size + l];
    }
    fit_groups(format, x, weights, importance != NULL, scales, mins, out->codes);
    if (importance) {
        out->d = frit_float_to_half(frit_fit_unsigned(scales, sums, n_groups, format->top_scale, out->scales));
        out->dmin = frit_float_to_half(frit_fit_unsigned(mins, sums, n_groups, format->top_scale, out->mins));
    } else {
        out->d = frit_float_to_half(round_scales(scales, n_groups, format->top_scale, out->scales));
        out->dmin = frit_float_to_half(round_scales(mins, n_groups, format->top_scale, out->mins));
    }
    float d = frit_half_to_float(out->d), dmin = frit_half_to_float(out->dmin);
    for (int g = 0; g < n_groups; g++) {
        float scale = d * (float)out->scales[g], min = dmin * (float)out->mins[g];
        round_again(x + g * size, size, scale, min, 0, format->top, out->codes + g * size);
    }
}

void frit_encode_q2_k(const float *values, void *blocks, int64_t n, const float *importance)
{
    frit_block_q2_k *block = blocks;
    for (int64_t i = 0; i < n; i += 256, block++) {
        offset_block from;
        encode_offset(&q2_k, values + i, importance ? importance + i : NULL, &from);
        block->d = from.d;
        block->dmin = from.dmin;
        for (int g = 0; g < 16; g++) block->scales[g] = (uint8_t)(from.scales[g] | from.mins[g] << 4);
        frit_write_two_bits(from.codes, block->qs);
    }
}

void frit_encode_q4_k(const float *values, void *blocks, int64_t n, const float *importance)
{
    frit_block_q4_k *block = blocks;
    for (int64_t i = 0; i < n; i += 256, block++) {
        offset_block from;
        encode_offset(&q4_k, values + i, importance ? importance + i : NULL, &from);
        block->d = from.d;
        block->dmin = from.dmin;
        frit_write_scales_q4_k(from.scales, from.mins, block->scales);
        frit_write_four_bits(from.codes, block->qs);
    }
}

void frit_encode_q5_k(const float *values, void *blocks, int64_t n, const float *importance)
{
    frit_block_q5_k *block = blocks;
    for (int64_t i = 0; i < n; i += 256, block++) {
        offset_block from;
        encode_offset(&q5_k, values + i, importance ? importance + i : NULL, &from);
        block->d = from.d;
        block->dmin = from.dmin;
        frit_write_scales_q4_k(from.scales, from.mins, block->scales);
        frit_write_four_bits(from.codes, block->qs);
        frit_write_one_bit(from.codes, 4, block->qh);
    }
}

// ------------------------------------------------------------------------- formats without mins: Q3_K, Q6_K

// Step 2 without a search: the extreme scale becomes `low`. Returns d.
static float round_signed_scales(const float scales[16], int low, int high, int8_t rounded[16])
{
    float extreme = frit_extreme(scales, 16), inverse = (float)low / extreme;
    for (int g = 0; g < 16; g++) rounded[g] = (int8_t)frit_round_clamped(inverse * scales[g], low, high);
    return 1 / inverse;
}

// Steps 1 and 2. Without importance the weights are x^2, and codes are improved one by one.
static float fit_q3_k(const float *x, const float *importance, int8_t scales[16], uint8_t codes[256])
{
    float mean = importance ? 2 * frit_sum_of_squares(x, 256) / 256 : 0, fits[16], sums[16];
    for (int g = 0; g < 16; g++) {
        if (!importance) {
            fits[g] = frit_fit_signed_by_steps(x + g * 16, 16, 4, codes + g * 16);
            continue;
        }
        float weights[16];
        frit_weigh(x + g * 16, importance + g * 16, 16, mean, weights);
        sums[g] = 0;
        for (int l = 0; l < 16; l++) sums[g] += weights[l];
        fits[g] = frit_fit_signed(x + g * 16, weights, 16, 4, codes + g * 16);
    }
    if (importance) {
        uint8_t rounded[16];
        float d = frit_fit_signed(fits, sums, 16, 32, rounded);
        for (int g = 0; g < 16; g++) scales[g] = (int8_t)(rounded[g] - 32);
        return d;
    }
    if (frit_extreme(fits, 16) != 0) return round_signed_scales(fits, -32, 31, scales);
    for (int g = 0; g < 16; g++) scales[g] = -32;   // stored as zero
    return 0;
}

void frit_encode_q3_k(const float *values, void *blocks, int64_t n, const float *importance)
{
    frit_block_q3_k *block = blocks;
    for (int64_t i = 0; i < n; i += 256, block++) {
        int8_t scales[16];
        uint8_t codes[256];
        block->d = frit_float_to_half(fit_q3_k(values + i, importance ? importance + i : NULL, scales, codes));
        float d = frit_half_to_float(block->d);
        for (int g = 0; g < 16; g++) {
            round_again(values + i + g * 16, 16, d * (float)scales[g], 0, -4, 3, codes + g * 16);
        }
        frit_write_scales_q3_k(scales, block->scales);
        frit_write_two_bits(codes, block->qs);
        frit_write_one_bit(codes, 2, block->qh);
    }
}

// The weights are the importance itself, or x^2.
void frit_encode_q6_k(const float *values, void *blocks, int64_t n, const float *importance)
{
    frit_block_q6_k *block = blocks;
    for (int64_t i = 0; i < n; i += 256, block++) {
        const float *x = values + i;
        float fits[16];
        uint8_t codes[256];
        for (int g = 0; g < 16; g++) {
            float squares[16];
            frit_weigh_by_square(x + g * 16, 16, squares);
            fits[g] =
                frit_fit_signed(x + g * 16, importance ? importance + i + g * 16 : squares, 16, 32, codes + g * 16);
        }
        if (fabsf(frit_extreme(fits, 16)) < 1e-15f) {
            *block = (frit_block_q6_k){0};
            continue;
        }
        block->d = frit_float_to_half(round_signed_scales(fits, -128, 127, block->scales));
        float d = frit_half_to_float(block->d);
        for (int g = 0; g < 16; g++) {
            round_again(x + g * 16, 16, d * (float)block->scales[g], 0, -32, 31, codes + g * 16);
        }
        frit_write_q6_k(codes, block);
    }
}
