// SPDX-License-Identifier: MIT
// Forced prefix: generated text must begin with a given text. Until the tokens have produced it, tokens that do not fit
// get a logit of -inf before any stage of the chain. The token that completes the prefix may be longer.
#include "sample/sampler.h"

#include <math.h>
#include <stdlib.h>

frit_status frit_sampler_force_prefix(frit_sampler *sampler, const frit_str *pieces, frit_str prefix)
{
    free(sampler->forced_prefix);
    sampler->forced_prefix = NULL;
    sampler->forced_left = (frit_str){"", 0};
    if (prefix.len == 0) return FRIT_OK;
    sampler->forced_prefix = malloc(prefix.len);
    if (!sampler->forced_prefix) return frit_fail_memory(prefix.len, "a forced prefix");
    memcpy(sampler->forced_prefix, prefix.ptr, prefix.len);
    sampler->forced_left = (frit_str){sampler->forced_prefix, prefix.len};
    sampler->forced_pieces = pieces;
    return FRIT_OK;
}

bool frit_forced_fits(frit_str left, frit_str piece)
{
    size_t n = piece.len < left.len ? piece.len : left.len;
    return n > 0 && memcmp(piece.ptr, left.ptr, n) == 0;
}

void frit_forced_apply(const frit_sampler *sampler, frit_candidates *candidates)
{
    for (int32_t i = 0; i < candidates->n; i++) {
        frit_candidate *c = &candidates->items[i];
        if (!frit_forced_fits(sampler->forced_left, sampler->forced_pieces[c->token])) c->logit = -INFINITY;
    }
}

void frit_forced_accept(frit_sampler *sampler, frit_token token)
{
    frit_str piece = sampler->forced_pieces[token], *left = &sampler->forced_left;
    bool done = !frit_forced_fits(*left, piece) || piece.len >= left->len;   // a token that does not fit ends it too
    *left = done ? (frit_str){"", 0} : (frit_str){left->ptr + piece.len, left->len - piece.len};
}
