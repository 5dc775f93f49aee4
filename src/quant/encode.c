// SPDX-License-Identifier: MIT
// Searches for the scale of a group of numbers.
//
// For given codes q the best scale in the sense of least squares is d = sum(w x q) / sum(w q q), and it lowers the
// error by sum(w x q)^2 / sum(w q q). So a search tries scales, rounds to codes, and keeps the codes whose quotient is
// largest; comparing products instead of quotients saves the divisions.
#include "quant/encode.h"

#include <math.h>
#include <string.h>

enum { MAX_GROUP = 32, NO_LOW = -(1 << 22) + 1 };   // NO_LOW: what rounds without a limit

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

float frit_fit_signed(const float *x, const float *weights, int n, int n_max, uint8_t *codes)
{
    float extreme = frit_extreme(x, n);
    if (fabsf(extreme) < too_small) {
        memset(codes, 0, (size_t)n);
        return 0;
    }
    products sum = round_signed(x, weights, n, n_max, (float)-n_max / extreme, codes);
    float d = sum.qq != 0 ? sum.xq / sum.qq : 0, best = d * sum.xq;
    for (int step = -9; step <= 9; step++) {
        uint8_t tried[MAX_GROUP];
        if (step == 0) continue;
        sum = round_signed(x, weights, n, n_max, -((float)n_max + 0.1f * (float)step) / extreme, tried);
        if (!(sum.qq > 0 && sum.xq * sum.xq > best * sum.qq)) continue;
        memcpy(codes, tried, (size_t)n);
        d = sum.xq / sum.qq;
        best = d * sum.xq;
    }
    return d;
}

// Gives each code in turn the value that is best while the others stay, five rounds at most. Codes are q - low; values
// that are tried are at least `lowest`.
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

// Among the numbers of IQ2_XXS some are negative, for which there is no code; where they matter little they may be
// large. The reference encoder computes with them all the same, without a lower limit, and here and there in an
// unsigned byte, -1 as 255; the choice of the scale depends on it, so `wrap` does.
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

static float offset_error(const float *x, const float *weights, int n, float scale, float min, bool absolute,
                          const uint8_t *codes)
{
    float sum = 0;
    for (int i = 0; i < n; i++) {
        float error = scale * (float)codes[i] + min - x[i];
        sum += weights[i] * (absolute ? fabsf(error) : error * error);
    }
    return sum;
}

static void round_offset(const float *x, int n, int n_max, float inverse, float min, uint8_t *codes)
{
    for (int i = 0; i < n; i++) codes[i] = (uint8_t)frit_round_clamped(inverse * (x[i] - min), 0, n_max);
}

// The line of least squares through the points (q, x), which for the given codes is best; min here is at most 0.
// False if the codes do not determine it.
static bool fit_line(const float *x, const float *weights, int n, float sum_w, float sum_x, const uint8_t *codes,
                     float *scale, float *min)
{
    float sum_q = 0, sum_qq = 0, sum_xq = 0;
    for (int i = 0; i < n; i++) {
        float wq = weights[i] * (float)codes[i];
        sum_q += wq;
        sum_qq += wq * (float)codes[i];
        sum_xq += wq * x[i];
    }
    float determinant = sum_w * sum_qq - sum_q * sum_q;
    if (!(determinant > 0)) return false;
    *scale = (sum_w * sum_xq - sum_x * sum_q) / determinant;
    *min = (sum_qq * sum_x - sum_q * sum_xq) / determinant;
    if (*min > 0) {
        *min = 0;
        *scale = sum_xq / sum_qq;
    }
    return true;
}

frit_offset_fit frit_fit_offset(const float *x, const float *weights, int n, int n_max,
                                const frit_offset_search *search, uint8_t *codes)
{
    float min = x[0], max = x[0], sum_w = 0, sum_x = 0;
    for (int i = 0; i < n; i++) {
        min = x[i] < min ? x[i] : min;
        max = x[i] > max ? x[i] : max;
        sum_w += weights[i];
        sum_x += weights[i] * x[i];
    }
    if (min > 0) min = 0;
    if (!(max > min)) {
        memset(codes, 0, (size_t)n);
        return (frit_offset_fit){0, -min};
    }
    float inverse = (float)n_max / (max - min), scale = 1 / inverse;
    round_offset(x, n, n_max, inverse, min, codes);
    float best = offset_error(x, weights, n, scale, min, search->absolute, codes);
    for (int i = 0; i <= search->n_steps; i++) {
        uint8_t tried[MAX_GROUP];
        float tried_scale, tried_min;
        inverse = (search->first + search->step * (float)i + (float)n_max) / (max - min);   // the best min so far
        round_offset(x, n, n_max, inverse, min, tried);
        if (!fit_line(x, weights, n, sum_w, sum_x, tried, &tried_scale, &tried_min)) continue;
        float error = offset_error(x, weights, n, tried_scale, tried_min, search->absolute, tried);
        if (!(error < best)) continue;
        memcpy(codes, tried, (size_t)n);
        best = error;
        scale = tried_scale;
        min = tried_min;
    }
    return (frit_offset_fit){scale, -min};
}
