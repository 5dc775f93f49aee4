// SPDX-License-Identifier: MIT
// tfs: tail-free sampling (Phenix and Egan 2019): drops the tail of the sorted probabilities. It begins where the
// absolute second differences, divided by their sum, add up to more than z. The likeliest token always stays.
#include "sample/sampler.h"

#include <math.h>

bool frit_tail_free_is_on(const frit_sampler_options *options)
{
    const float z = frit_stage_number(options, tfs_z);
    return z > 0 && z < 1 && options->temp > 0;
}

// |(p[i] - p[i + 1]) - (p[i + 1] - p[i + 2])|
static double curvature(const frit_candidates *candidates, const frit_softmax_sums *softmax, int32_t i)
{
    double p[3];
    for (int k = 0; k < 3; k++) p[k] = frit_softmax_probability(softmax, candidates->items[i + k].logit);
    return fabs(p[0] - 2 * p[1] + p[2]);
}

void frit_tail_free_apply(frit_sampler *sampler, frit_candidates *candidates)
{
    const double z = (double)frit_stage_number(&sampler->options, tfs_z);
    const int32_t n = candidates->n - 2;
    if (n <= 0) return;
    frit_candidates_sort(candidates, candidates->n);
    const frit_softmax_sums softmax = frit_candidates_softmax(candidates);
    if (softmax.max == -INFINITY) return;
    double total = 0, sum = 0;
    for (int32_t i = 0; i < n; i++) total += curvature(candidates, &softmax, i);
    for (int32_t i = 0; i < n; i++) {
        // A line has no curvature; then all positions get equal weight.
        sum += total > 1e-6 ? curvature(candidates, &softmax, i) / total : 1.0 / n;
        if (sum <= z || i == 0) continue;
        candidates->n = i;
        return;
    }
}
