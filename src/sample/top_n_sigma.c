// SPDX-License-Identifier: MIT
// top-n-sigma: drops logits more than n standard deviations below the largest (Tang et al. 2024, "Top-n-sigma: Not All
// Logits Are You Need"). Banned tokens do not count.
#include "sample/sampler.h"
#include "sample/weight.h"

#include <math.h>

bool frit_top_n_sigma_is_on(const frit_sampler_options *options)
{
    return frit_stage_number(options, top_n_sigma) > 0 && options->temp > 0;
}

// Sums by blocks of the list, as picks sum by blocks of the vocabulary. The list is the whole vocabulary unless a
// custom stage or another order of stages has changed it.
static double limit_of(const frit_candidates *candidates, float max, float n_sigma)
{
    const int64_t n = candidates->n, size = frit_block_size(candidates->n);
    frit_spread_sums sums = {0};
    for (int64_t begin = 0; begin < n; begin += size) {
        frit_spread spread = {0};
        for (int64_t i = begin; i < begin + size && i < n; i += FRIT_CHUNK) {
            float x[FRIT_CHUNK];
            for (int32_t j = 0; j < FRIT_CHUNK; j++) x[j] = i + j < n ? candidates->items[i + j].logit : -INFINITY;
            frit_spread_add(&spread, x, max);
        }
        const frit_spread_sums block = frit_spread_end_block(&spread);
        frit_spread_sums_add(&sums, &block);
    }
    return frit_spread_limit(&sums, n_sigma);
}

void frit_top_n_sigma_apply(frit_sampler *sampler, frit_candidates *candidates)
{
    const float max = frit_candidates_max(candidates);
    if (max == -INFINITY) return;
    const double limit = limit_of(candidates, max, frit_stage_number(&sampler->options, top_n_sigma));
    int32_t n = 0;
    for (int32_t i = 0; i < candidates->n; i++)
        if ((double)max - (double)candidates->items[i].logit <= limit) candidates->items[n++] = candidates->items[i];
    candidates->n = n;
}
