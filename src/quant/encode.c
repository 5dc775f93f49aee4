// SPDX-License-Identifier: MIT
// Searches for the scale of a group of numbers.
//
// For given codes q the best scale in the sense of least squares is d = sum(w x q) / sum(w q q), and it lowers the
// error by sum(w x q)^2 / sum(w q q). So a search tries scales, rounds to codes, and keeps the codes whose quotient is
// largest; comparing products instead of quotients saves the divisions.
#include "quant/encode.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { MAX_GROUP = 32, NO_LOW = -(1 << 22) + 1 };   // NO_LOW: rounding without a lower limit

static const float too_small = 1e-15f;   // a group below this is all zeros

typedef struct products {
    float xq, qq;   // sum(w x q), sum(w q q)
} products;

float frit_extreme(const float *x, int n)
{
    float extreme = 0;
    for (int i = 0; i < n; i++) {
        if (fabsf(x[i]) > fabsf(extreme)) extreme = x[i];
    }
    return extreme;
}

float frit_sum_of_squares(const float *x, int64_t n)
{
    float sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sum;
}

void frit_weigh(const float *x, const float *importance, int n, float mean_square, float *weights)
{
    for (int i = 0; i < n; i++) weights[i] = importance[i] * sqrtf(mean_square + x[i] * x[i]);
}

void frit_weigh_by_square(const float *x, int n, float *weights)
{
    for (int i = 0; i < n; i++) weights[i] = x[i] * x[i];
}

static products round_signed(const float *x, const float *weights, int n, int n_max, float inverse, uint8_t *codes)
{
    products sum = {0, 0};
    for (int i = 0; i < n; i++) {
        int q = frit_round_clamped(inverse * x[i], -n_max, n_max - 1);
        codes[i] = (uint8_t)(q + n_max);
        sum.xq += weights[i] * x[i] * (float)q;
        sum.qq += weights[i] * (float)q * (float)q;
    }
    return sum;
}

// The number of scales that are tried at once, each in a lane. Sums keep the order of their numbers, and compilers
// vectorize over lanes.
enum { TRIES = 19, LANES = 20 };

static void sum_tries(const float *x, const float *weights, int n, int n_max, const float *inverses, products *sums)
{
    float xq[LANES] = {0}, qq[LANES] = {0};
    for (int i = 0; i < n; i++) {
        const float w = weights[i], wx = w * x[i], value = x[i];
        for (int t = 0; t < LANES; t++) {
            const float q =
                (frit_clamp(inverses[t] * value, (float)-n_max, (float)(n_max - 1)) + 12582912.0f) - 12582912.0f;
            xq[t] += wx * q;
            qq[t] += w * q * q;
        }
    }
    for (int t = 0; t < LANES; t++) sums[t] = (products){xq[t], qq[t]};
}

float frit_fit_signed(const float *x, const float *weights, int n, int n_max, uint8_t *codes)
{
    float inverses[LANES] = {0}, extreme = frit_extreme(x, n);
    products sums[LANES];
    int best_try = 0;
    if (fabsf(extreme) < too_small) {
        memset(codes, 0, (size_t)n);
        return 0;
    }
    inverses[0] = (float)-n_max / extreme;
    for (int t = 1; t < TRIES; t++) {
        const int step = t <= 9 ? t - 10 : t - 9;
        inverses[t] = -((float)n_max + 0.1f * (float)step) / extreme;
    }
    sum_tries(x, weights, n, n_max, inverses, sums);
    float d = sums[0].qq != 0 ? sums[0].xq / sums[0].qq : 0, best = d * sums[0].xq;
    for (int t = 1; t < TRIES; t++) {
        if (!(sums[t].qq > 0 && sums[t].xq * sums[t].xq > best * sums[t].qq)) continue;
        best_try = t;
        d = sums[t].xq / sums[t].qq;
        best = d * sums[t].xq;
    }
    for (int i = 0; i < n; i++)
        codes[i] = (uint8_t)(frit_round_clamped(inverses[best_try] * x[i], -n_max, n_max - 1) + n_max);
    return d;
}

// Sets each code in turn to the value that is best while the others stay unchanged, for at most five rounds. Codes are
// q - low; tried values are at least `lowest`.
static float improve_by_steps(const float *x, const float *weights, int n, int low, int lowest, int high, products sum,
                              uint8_t *codes)
{
    bool changed = true;
    for (int round = 0; round < 5 && changed; round++) {
        changed = false;
        for (int i = 0; i < n; i++) {
            float w = weights[i], q = (float)(codes[i] + low);
            products without = {sum.xq - w * x[i] * q, sum.qq - w * q * q};
            if (!(without.xq > 0 && without.qq > 0)) continue;
            int next = frit_round_clamped(x[i] * without.qq / without.xq, lowest, high);
            if (next == codes[i] + low) continue;
            q = (float)next;
            products with = {without.xq + w * x[i] * q, without.qq + w * q * q};
            if (!(with.xq * with.xq * sum.qq > sum.xq * sum.xq * with.qq)) continue;
            codes[i] = (uint8_t)(next - low);
            sum = with;
            changed = true;
        }
    }
    return sum.qq > 0 ? sum.xq / sum.qq : 0;
}

float frit_fit_signed_by_steps(const float *x, int n, int n_max, uint8_t *codes)
{
    float weights[MAX_GROUP], extreme = frit_extreme(x, n);
    if (fabsf(extreme) < too_small) {
        memset(codes, 0, (size_t)n);
        return 0;
    }
    frit_weigh_by_square(x, n, weights);
    products sum = round_signed(x, weights, n, n_max, (float)-n_max / extreme, codes);
    return improve_by_steps(x, weights, n, -n_max, -n_max, n_max - 1, sum, codes);
}

// The numbers of IQ2_XXS may be negative, for which there is no code, and large where their weight is low. The
// reference encoder computes with them nevertheless, without a lower limit and sometimes in an unsigned byte, -1 as
// 255. The choice of the scale depends on it, so `wrap` reproduces it.
static float squared_error(const float *x, const float *weights, int n, int n_max, float inverse, bool wrap)
{
    float d = 1 / inverse, sum = 0;
    for (int i = 0; i < n; i++) {
        int q = frit_round_clamped(inverse * x[i], NO_LOW, n_max);
        float error = x[i] - d * (float)(wrap ? (uint8_t)q : q);
        sum += weights[i] * error * error;
    }
    return sum;
}

float frit_fit_unsigned(const float *x, const float *weights, int n, int n_max, uint8_t *codes)
{
    float max = 0;
    for (int i = 0; i < n; i++) max = x[i] > max ? x[i] : max;
    if (max < too_small) {
        memset(codes, 0, (size_t)n);
        return 0;
    }
    float inverse = (float)n_max / max, best = squared_error(x, weights, n, n_max, inverse, true);
    for (int step = -4; step <= 4; step++) {
        float tried = (0.1f * (float)step + (float)n_max) / max;
        float error = squared_error(x, weights, n, n_max, tried, false);
        if (step == 0 || !(error < best)) continue;
        best = error;
        inverse = tried;
    }
    products sum = {0, 0};
    for (int i = 0; i < n; i++) {
        int q = frit_round_clamped(inverse * x[i], NO_LOW, n_max);
        codes[i] = (uint8_t)q;
        sum.xq += weights[i] * x[i] * (float)q;
        sum.qq += weights[i] * (float)q * (float)q;
    }
    return improve_by_steps(x, weights, n, 0, NO_LOW, n_max, sum, codes);
}
