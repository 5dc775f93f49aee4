// SPDX-License-Identifier: MIT
// The custom stage, a function of the program. Its results are checked like logits from outside.
#include "sample/sampler.h"

#include <math.h>

bool frit_custom_is_on(const frit_sampler_options *options)
{
    return options->stage != NULL;
}

static frit_status check(const frit_candidate *items, size_t n, size_t n_before, int32_t n_vocab)
{
    if (n == 0 || n > n_before)
        return frit_fail(FRIT_E_INVALID, "the sampler's custom stage leaves %zu of %zu candidates; expected 1 to %zu",
                         n, n_before, n_before);
    for (size_t i = 0; i < n; i++) {
        if (items[i].token < 0 || items[i].token >= n_vocab)
            return frit_fail(FRIT_E_INVALID, "the sampler's custom stage gives token %d; expected 0 to %d",
                             items[i].token, n_vocab - 1);
        if (!(items[i].logit < INFINITY))
            return frit_fail(FRIT_E_INVALID,
                             "the sampler's custom stage gives token %d the logit %g; expected a "
                             "finite number or -infinity",
                             items[i].token, (double)items[i].logit);
    }
    return FRIT_OK;
}

void frit_custom_apply(frit_sampler *sampler, frit_candidates *candidates)
{
    const frit_sampler_options *options = &sampler->options;
    const size_t n_before = (size_t)candidates->n;
    const size_t n = options->stage(options->stage_ctx, candidates->items, n_before);
    candidates->sorted = false;
    sampler->status = check(candidates->items, n, n_before, sampler->n_vocab);
    if (sampler->status == FRIT_OK) candidates->n = (int32_t)n;
}
