// SPDX-License-Identifier: MIT
// temp: divides logits by the temperature. The largest is subtracted first, so that a tiny temperature cannot overflow.
//
// Dynamic temperature: from T - R to T + R, as the entropy H of the n candidates goes from 0 to log n (llama.cpp).
//
//     T - R + 2 R (H / log n)^exponent,  T - R being 0 at least
#include "sample/sampler.h"

#include <math.h>

bool frit_temperature_is_on(const frit_sampler_options *options)
{
    return options->temp > 0 && (options->temp != 1 || frit_temperature_is_dynamic(options));
}

bool frit_temperature_is_dynamic(const frit_sampler_options *options)
{
    return frit_stage_number(options, dynatemp_range) > 0;
}

void frit_temperature_divide(frit_candidates *candidates, float temp)
{
    const float max = frit_candidates_max(candidates);
    if (max == -INFINITY) return;
    for (int32_t i = 0; i < candidates->n; i++) candidates->items[i].logit = (candidates->items[i].logit - max) / temp;
}

static float dynamic(const frit_sampler_options *options, const frit_candidates *candidates)
{
    const double range = (double)frit_stage_number(options, dynatemp_range), temp = (double)options->temp;
    const double exponent = frit_or_default(frit_stage_number(options, dynatemp_exponent), 1);
    const double least = temp > range ? temp - range : 0;
    const frit_softmax_sums softmax = frit_candidates_softmax(candidates);
    const double share = frit_candidates_entropy(candidates, &softmax) / log((double)candidates->n);
    const double chosen = least + (temp + range - least) * pow(share > 0 ? share : 0, exponent);
    return chosen > 1e-30 ? (float)chosen : 1e-30f;
}

void frit_temperature_apply(frit_sampler *sampler, frit_candidates *candidates)
{
    const frit_sampler_options *options = &sampler->options;
    const bool is_dynamic = frit_temperature_is_dynamic(options) && !frit_mirostat_is_on(options);
    if (is_dynamic && candidates->n < 2) return;
    frit_temperature_divide(candidates, is_dynamic ? dynamic(options, candidates) : options->temp);
}
