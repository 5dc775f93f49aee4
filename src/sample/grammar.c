// SPDX-License-Identifier: MIT
// A grammar on a sampler: tokens that do not fit get a logit of -inf, before any stage of the chain.
#include "sample/sampler.h"

#include <math.h>

frit_status frit_sampler_set_grammar(frit_sampler *sampler, frit_grammar *grammar)
{
    FRIT_REQUIRE(sampler);
    frit_constraint *constraint = NULL;
    if (grammar && grammar->n_vocab != sampler->n_vocab)
        return frit_fail(FRIT_E_INVALID, "the grammar is for a vocabulary of %d tokens, the sampler's has %d",
                         grammar->n_vocab, sampler->n_vocab);
    if (grammar && sampler->forced_left.len > 0)
        return frit_fail(FRIT_E_UNSUPPORTED, "a grammar begins with the answer, token healing within the prompt: a "
                                             "sampler can have one of them");
    if (grammar) FRIT_TRY(frit_constraint_new(&constraint, grammar));
    frit_constraint_free(sampler->constraint);
    sampler->constraint = constraint;
    return FRIT_OK;
}

bool frit_sampler_is_over(const frit_sampler *sampler)
{
    FRIT_REQUIRE_OR(false, sampler);
    return sampler->constraint && frit_constraint_is_over(sampler->constraint);
}

frit_status frit_constraint_apply(const frit_sampler *sampler, frit_candidates *candidates)
{
    const uint32_t *mask;
    FRIT_TRY(frit_constraint_mask(sampler->constraint, &mask));
    for (int32_t i = 0; i < candidates->n; i++) {
        frit_candidate *c = &candidates->items[i];
        if (!(mask[c->token / 32] >> (c->token % 32) & 1)) c->logit = -INFINITY;
    }
    return FRIT_OK;
}
