// SPDX-License-Identifier: MIT
// min-p: drops tokens with less than min_p times the largest probability: logit_i >= logit_max + log(min_p) stays.
#include "sample/sampler.h"

#include <math.h>

bool frit_min_p_is_on(const frit_sampler_options *options)
{
    return options->min_p > 0 && options->temp > 0;
}

void frit_min_p_keep(frit_candidates *candidates, float min_p)
{
    const float least = frit_candidates_max(candidates) + logf(min_p);
    int32_t n = 0;
    for (int32_t i = 0; i < candidates->n; i++)
        if (candidates->items[i].logit >= least) candidates->items[n++] = candidates->items[i];
    candidates->n = n;
}

void frit_min_p_apply(frit_sampler *sampler, frit_candidates *candidates)
{
    frit_min_p_keep(candidates, sampler->options.min_p);
}
