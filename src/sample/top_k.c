// SPDX-License-Identifier: MIT
// top-k: keeps the k likeliest candidates.
#include "sample/sampler.h"

bool frit_top_k_is_on(const frit_sampler_options *options)
{
    return options->top_k > 0 && options->temp > 0;
}

void frit_top_k_apply(frit_sampler *sampler, frit_candidates *candidates)
{
    int32_t k = sampler->options.top_k;
    if (k >= candidates->n) return;
    frit_candidates_sort(candidates, k);
    candidates->n = k;
    candidates->sorted = true;
}
