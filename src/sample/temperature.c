// SPDX-License-Identifier: MIT
// temp: divides logits by the temperature. The largest becomes 0 first, so that a tiny temperature cannot overflow.
#include "sample/sampler.h"

#include <math.h>

bool frit_temperature_is_on(const frit_sampler_options *options)
{
    return options->temp > 0 && options->temp != 1;
}

void frit_temperature_divide(frit_candidates *candidates, float temp)
{
    const float max = frit_candidates_max(candidates);
    if (max == -INFINITY) return;
    for (int32_t i = 0; i < candidates->n; i++) candidates->items[i].logit = (candidates->items[i].logit - max) / temp;
}

void frit_temperature_apply(frit_sampler *sampler, frit_candidates *candidates)
{
    frit_temperature_divide(candidates, sampler->options.temp);
}
