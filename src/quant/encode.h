// SPDX-License-Identifier: MIT
// quant/encode.h: what the encoders share: rounding, and searches for scales.
//
// An encoder reproduces the blocks that the formats' reference encoder writes, bit for bit, so the order of its float
// operations is part of its meaning. Numbers that are not finite give blocks of no particular content, but valid ones.
#pragma once
#include <stdint.h>

// Towards zero, into low..high; NaN becomes low.
static inline int frit_truncate_clamped(float x, int low, int high)
{
    if (!(x >= (float)low)) return low;
    return x < (float)high ? (int)x : high;
}

// To nearest, ties to even, into low..high; NaN becomes low. Adding 1.5 * 2^23 leaves no bits for a fraction, so the
// addition rounds. The bounds are a few thousand at most.
static inline int frit_round_clamped(float x, int low, int high)
{
    if (!(x >= (float)low)) return low;
    if (x >= (float)high) return high;
    return (int)((x + 12582912.0f) - 12582912.0f);
}

// The scale d and the codes of -n_max..n_max - 1 (stored with n_max added) that make the sum of
// weight * (x - d * code)^2 small. Tries scales around the one that maps the largest magnitude to -n_max.
float frit_fit_signed(const float *x, const float *weights, int n, int n_max, uint8_t *codes);
