// SPDX-License-Identifier: MIT
// penalties: make tokens that occurred within the window less likely.
//
//     repetition   logit / r for positive logits, logit * r for others       (Keskar et al. 2019, CTRL)
//     frequency    logit - f * occurrences
//     presence     logit - p
#include "sample/sampler.h"
#include "sample/weight.h"

static bool repeats(const frit_sampler_options *options)
{
    return options->repeat_penalty != 0 && options->repeat_penalty != 1;
}

bool frit_penalties_is_on(const frit_sampler_options *options)
{
    return repeats(options) || options->frequency_penalty != 0 || options->presence_penalty != 0;
}

float frit_penalties_factor(const frit_sampler_options *options)
{
    return repeats(options) ? options->repeat_penalty : 1;
}

void frit_penalties_apply(frit_sampler *sampler, frit_candidates *candidates)
{
    const frit_sampler_options *options = &sampler->options;
    const float factor = frit_penalties_factor(options);
    for (int32_t i = 0; i < candidates->n; i++) {
        frit_candidate *c = &candidates->items[i];
        uint32_t count = sampler->counts[c->token];
        if (count == 0) continue;
        c->logit = frit_penalized(c->logit, count, factor, options->frequency_penalty, options->presence_penalty);
    }
    candidates->sorted = false;
}
