// SPDX-License-Identifier: MIT
// Sums in double of exponentials in float, because millions of exponentials are computed.
#include "sample/divergence.h"

#include <math.h>

static double log_sum_of(const float *logits, size_t n)
{
    float largest = logits[0];
    double sum = 0;
    for (size_t i = 1; i < n; i++) largest = logits[i] > largest ? logits[i] : largest;
    for (size_t i = 0; i < n; i++) sum += (double)expf(logits[i] - largest);
    return log(sum) + (double)largest;
}

void frit_log_softmax(const float *logits, size_t n, float *logprobs)
{
    const double log_sum = log_sum_of(logits, n);
    for (size_t i = 0; i < n; i++) logprobs[i] = (float)((double)logits[i] - log_sum);
}

double frit_divergence(const float *base, const float *logits, size_t n)
{
    const double log_sum = log_sum_of(logits, n);
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)expf(base[i]) * ((double)base[i] - ((double)logits[i] - log_sum));
    return sum;
}
