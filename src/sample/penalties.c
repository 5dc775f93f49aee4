// SPDX-License-Identifier: MIT
// penalties: make tokens that occurred within the window less likely.
//
//     repetition   logit / r for positive logits, logit * r for others       (Keskar et al. 2019, CTRL)
//     frequency    logit - f * occurrences
//     presence     logit - p
#include "sample/sampler.h"

#include <float.h>

static bool repeats(const frit_sampler_options *options)
{
    return options->repeat_penalty != 0 && options->repeat_penalty != 1;
}

bool frit_penalties_is_on(const frit_sampler_options *options)
{
    return repeats(options) || options->frequency_penalty != 0 || options->presence_penalty != 0;
}

void frit_penalties_apply(frit_sampler *sampler, frit_candidates *candidates)
{
    const frit_sampler_options *options = &sampler->options;
    float factor = repeats(options) ? options->repeat_penalty : 1;
    for (int32_t i = 0; i < candidates->n; i++) {
        frit_candidate *c = &candidates->items[i];
        uint32_t count = sampler->counts[c->token];
        if (count == 0) continue;
        c->logit = c->logit > 0 ? c->logit / factor : c->logit * factor;
        c->logit -= (float)count * options->frequency_penalty + options->presence_penalty;
        if (c->logit > FLT_MAX) c->logit = FLT_MAX;   // a tiny factor; the chain has no +inf
    }
    candidates->sorted = false;
}
