// SPDX-License-Identifier: MIT
// Searches for the scale of a group of numbers.
//
// For given codes q the best scale in the sense of least squares is d = sum(w x q) / sum(w q q), and it lowers the
// error by sum(w x q)^2 / sum(w q q). So a search tries scales, rounds to codes, and keeps the codes whose quotient is
// largest; comparing products instead of quotients saves the divisions.
#include "quant/encode.h"

#include <math.h>
#include <string.h>

enum { MAX_GROUP = 32 };

typedef struct products {
    float xq, qq; // sum(w x q), sum(w q q)
} products;

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
    float extreme = 0;
    for (int i = 0; i < n; i++) {
        if (fabsf(x[i]) > fabsf(extreme)) extreme = x[i];
    }
    if (fabsf(extreme) < 1e-15f) {
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
