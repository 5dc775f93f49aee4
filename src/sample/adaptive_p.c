// SPDX-License-Identifier: MIT
// adaptive-p: prefers tokens whose probability is near a target, and moves the target so that the mean probability of
// the drawn tokens is the configured target (llama.cpp, adaptive-p).
//
//     mean    <- decay mean + (1 - decay) p of the token drawn;  the target at first
//     wanted   = 2 target - mean, within 0 and 1
//     logit    = 5 - 10 d^2 / (1 + d),  d = |p - wanted| / 0.3
//
// `learned` is mean - target.
#include "sample/sampler.h"

#include <math.h>

bool frit_adaptive_p_is_on(const frit_sampler_options *options)
{
    return frit_stage_number(options, adaptive_target) > 0 && options->temp > 0;
}

void frit_adaptive_p_apply(frit_sampler *sampler, frit_candidates *candidates)
{
    const double target = (double)frit_stage_number(&sampler->options, adaptive_target);
    const double wanted = fmin(fmax(target - sampler->learned, 0), 1);
    const frit_softmax_sums softmax = frit_candidates_softmax(candidates);
    if (softmax.max == -INFINITY) return;
    for (int32_t i = 0; i < candidates->n; i++) {
        frit_candidate *c = &candidates->items[i];
        const double p = frit_softmax_probability(&softmax, c->logit), d = fabs(p - wanted) / 0.3;
        sampler->probabilities[c->token] = (float)p;
        if (c->logit > -INFINITY) c->logit = (float)(5 - 10 * d * d / (1 + d));
    }
    candidates->sorted = false;
}

void frit_adaptive_p_learn(frit_sampler *sampler, float probability)
{
    const double target = (double)frit_stage_number(&sampler->options, adaptive_target);
    const double decay = frit_or_default(frit_stage_number(&sampler->options, adaptive_decay), 0.9);
    sampler->learned = decay * sampler->learned + (1 - decay) * ((double)probability - target);
}
