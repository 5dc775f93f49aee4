// SPDX-License-Identifier: MIT
// The fast transform: sums and differences over growing distances. Short distances have their own loops, which
// compilers vectorize.
#include "quant/hadamard.h"

#include <math.h>

static void butterflies(float *x, int64_t n, int64_t distance)
{
    for (int64_t i = 0; i < n; i += 2 * distance) {
        float *a = x + i, *b = a + distance;
        for (int64_t j = 0; j < distance; j++) {
            const float sum = a[j] + b[j], difference = a[j] - b[j];
            a[j] = sum;
            b[j] = difference;
        }
    }
}

// Distances 1 and 2 in one pass.
static void by_four(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += 4) {
        const float a = x[i] + x[i + 1], b = x[i] - x[i + 1], c = x[i + 2] + x[i + 3], d = x[i + 2] - x[i + 3];
        x[i] = a + c;
        x[i + 1] = b + d;
        x[i + 2] = a - c;
        x[i + 3] = b - d;
    }
}

void frit_hadamard(float *x, int64_t n, int32_t block)
{
    if (block <= 1) return;
    int64_t distance = 1;
    if (block >= 4) {
        by_four(x, n);
        distance = 4;
    }
    for (; distance < block; distance *= 2) butterflies(x, n, distance);
    const float scale = 1 / sqrtf((float)block);
    for (int64_t i = 0; i < n; i++) x[i] *= scale;
}
