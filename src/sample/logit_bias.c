// SPDX-License-Identifier: MIT
// logit-bias: adds a bias to the logits of single tokens; -inf bans a token.
#include "sample/sampler.h"

bool frit_logit_bias_is_on(const frit_sampler_options *options)
{
    return options->logit_bias.n > 0;
}

void frit_logit_bias_apply(frit_sampler *sampler, frit_candidates *candidates)
{
    for (int32_t i = 0; i < sampler->n_biases; i++) {
        const frit_candidate *bias = &sampler->biases[i];
        // Token t is item t of an unchanged list; after other stages it must be searched.
        int32_t at = bias->token;
        if (candidates->n != sampler->n_vocab || candidates->items[at].token != bias->token)
            for (at = 0; at < candidates->n && candidates->items[at].token != bias->token; at++) {
            }
        if (at < candidates->n) candidates->items[at].logit += bias->logit;
    }
    candidates->sorted = false;
}
