// SPDX-License-Identifier: MIT
// quant/encode.h: functions that encoders share: rounding, and searches for the scale of a group of at most 32 numbers.
//
// An encoder writes the same bits as the format's reference encoder, so the order of its float operations is part of
// its definition. Numbers that are not finite give valid blocks of unspecified content.
#pragma once
#include <stdint.h>

// Clamps to low..high; NaN becomes low. There are no branches, so that compilers vectorize loops of it.
static inline float frit_clamp(float x, float low, float high)
{
    x = x > low ? x : low;
    return x < high ? x : high;
}

// Rounds towards zero.
static inline int frit_truncate_clamped(float x, int low, int high)
{
    return (int)frit_clamp(x, (float)low, (float)high);
}

// Rounds to nearest, ties to even: adding 1.5 * 2^23 leaves no bits for a fraction, so the addition rounds.
static inline int frit_round_clamped(float x, int low, int high)
{
    return (int)((frit_clamp(x, (float)low, (float)high) + 12582912.0f) - 12582912.0f);
}

// Rounds to nearest, ties away from zero, as roundf. The difference to the truncated number is exact.
static inline int frit_round_away_clamped(float x, int low, int high)
{
    float clamped = frit_clamp(x, (float)low, (float)high);
    int whole = (int)clamped;
    float rest = clamped - (float)whole;
    return whole + (rest >= 0.5f) - (rest <= -0.5f);
}

static inline float frit_inverse(float d)
{
    return d != 0 ? 1.0f / d : 0.0f;
}

// The number of largest magnitude, with its sign; the first of equal ones.
float frit_extreme(const float *x, int n);
float frit_sum_of_squares(const float *x, int64_t n);
// weights = importance * sqrt(mean_square + x^2): numbers near zero have less weight, but not none.
void frit_weigh(const float *x, const float *importance, int n, float mean_square, float *weights);
void frit_weigh_by_square(const float *x, int n, float *weights);

// The searches below look for scales, and codes q, for which the sum of weight * error^2 is small.

// x = d * q, q = -n_max..n_max - 1; codes are q + n_max. Tries scales near the one that maps the extreme to -n_max.
float frit_fit_signed(const float *x, const float *weights, int n, int n_max, uint8_t *codes);
// As frit_fit_signed with weights x^2; changes one code at a time instead of the scale.
float frit_fit_signed_by_steps(const float *x, int n, int n_max, uint8_t *codes);
// x = d * q, q = 0..n_max, for x that are not negative.
float frit_fit_unsigned(const float *x, const float *weights, int n, int n_max, uint8_t *codes);
