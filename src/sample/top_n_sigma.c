// SPDX-License-Identifier: MIT
// top-n-sigma: drops what lies more than n standard deviations of the logits below the largest (Tang et al. 2024,
// "Top-n-sigma: Not All Logits Are You Need"). Banned tokens do not count.
#include "sample/sampler.h"

#include <math.h>

bool frit_top_n_sigma_is_on(const frit_sampler_options *options)
{
    return frit_stage_number(options, top_n_sigma) > 0 && options->temp > 0;
}

void frit_top_n_sigma_apply(frit_sampler *sampler, frit_candidates *candidates)
{
    const float max = frit_candidates_max(candidates);
    if (max == -INFINITY) return;
    double sum = 0, squares = 0;   // of distances to the largest
    int32_t n_finite = 0, n = 0;
    for (int32_t i = 0; i < candidates->n; i++) {
        const double below = (double)max - (double)candidates->items[i].logit;
        if (!isfinite(below)) continue;
        sum += below;
        squares += below * below;
        n_finite++;
    }
    const double mean = sum / n_finite, variance = fmax(squares / n_finite - mean * mean, 0);
    const double furthest = (double)frit_stage_number(&sampler->options, top_n_sigma) * sqrt(variance);
    for (int32_t i = 0; i < candidates->n; i++)
        if ((double)max - (double)candidates->items[i].logit <= furthest) candidates->items[n++] = candidates->items[i];
    candidates->n = n;
}
