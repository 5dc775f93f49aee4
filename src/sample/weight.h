// SPDX-License-Identifier: MIT
// sample/weight.h: softmax weights whose sum does not depend on the order of addition.
//
// The weight of a logit is e^(logit - max) as an integer in units of 2^-30 (the largest logit has 1; less than 2^-31 is
// 0). Sums of integers are exact. They do not depend on the order of tokens or on how threads or devices divide them,
// so every device draws the same token:
//
//     at = random number below the sum of the weights        token = the first id at which the running sum exceeds it
//
// Float sums have a fixed order instead: 64 blocks of consecutive tokens, each with 8 lanes.
//
// All functions are plain arithmetic in float and double without contraction, so that compilers may vectorize them and
// results are equal on all machines.
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { FRIT_BLOCKS = 64, FRIT_CHUNK = 32, FRIT_LANES = 8 };

// The number of logits in a block, in whole chunks. The last blocks of n logits may be short or empty.
static inline int32_t frit_block_size(int32_t n)
{
    const int32_t size = n / FRIT_BLOCKS + (n % FRIT_BLOCKS != 0);
    return (size + FRIT_CHUNK - 1) / FRIT_CHUNK * FRIT_CHUNK;
}

// max(x, -87) for x <= 0, on integers: compilers do not vectorize a comparison of floats here.
static inline float frit_exp_clamp(float x)
{
    const uint32_t most = 0x42ae0000;   // 87
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= 0x7fffffff;
    bits = (bits < most ? bits : most) | 0x80000000;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// e^x for x <= 0 with a relative error of 2e-7; below -87 the value at -87. The polynomial is the one of Cephes' expf.
static inline float frit_exp(float x)
{
    const float rounder = 12582912.0f;   // 1.5 * 2^23: adding it rounds to an integer
    x = frit_exp_clamp(x);
    const float shifted = x * 1.44269504088896341f + rounder, n = shifted - rounder;
    const float r = x - n * 0.693359375f - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1;
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 23) + (127u << 23);   // 2^n
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

// The weight for x = logit - max, or (logit - max) / temperature.
static inline uint32_t frit_weight(float x)
{
    return (uint32_t)(int32_t)(frit_exp(x) * 0x1p30f + 0.5f);
}

static inline double frit_lanes_sum(const double lanes[FRIT_LANES])
{
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// Adds e^(x - max) of a chunk.
static inline void frit_lanes_add_exp(double lanes[FRIT_LANES], const float *x, float max)
{
    for (int i = 0; i < FRIT_CHUNK; i += FRIT_LANES)
        for (int j = 0; j < FRIT_LANES; j++) lanes[j] += (double)frit_exp(x[i + j] - max);
}

// Sums of max - logit and of its square, for top-n-sigma. Logits of -infinity do not count.
typedef struct frit_spread {
    double sum[FRIT_LANES], squares[FRIT_LANES], n[FRIT_LANES];
} frit_spread;

static inline void frit_spread_add(frit_spread *spread, const float *x, float max)
{
    for (int i = 0; i < FRIT_CHUNK; i += FRIT_LANES)
        for (int j = 0; j < FRIT_LANES; j++) {
            const double below = x[i + j] > -INFINITY ? (double)max - (double)x[i + j] : 0;
            spread->sum[j] += below;
            spread->squares[j] += below * below;
            spread->n[j] += x[i + j] > -INFINITY ? 1 : 0;
        }
}

typedef struct frit_spread_sums {
    double sum, squares, n;
} frit_spread_sums;

static inline frit_spread_sums frit_spread_end_block(const frit_spread *spread)
{
    return (frit_spread_sums){frit_lanes_sum(spread->sum), frit_lanes_sum(spread->squares), frit_lanes_sum(spread->n)};
}

static inline void frit_spread_sums_add(frit_spread_sums *sums, const frit_spread_sums *block)
{
    sums->sum += block->sum;
    sums->squares += block->squares;
    sums->n += block->n;
}

// The largest distance to the largest logit that top-n-sigma allows: n standard deviations.
static inline double frit_spread_limit(const frit_spread_sums *sums, float n_sigma)
{
    const double mean = sums->sum / sums->n, variance = sums->squares / sums->n - mean * mean;
    return (double)n_sigma * sqrt(variance > 0 ? variance : 0);
}

// The logit of a token that occurred `count` times within the window; `factor` 1: no repetition penalty.
static inline float frit_penalized(float logit, uint32_t count, float factor, float frequency, float presence)
{
    const float most = 3.402823466e38f;   // a tiny factor may overflow; the chain has no +infinity
    logit = logit > 0 ? logit / factor : logit * factor;
    logit -= (float)count * frequency + presence;
    return logit > most ? most : logit;
}
