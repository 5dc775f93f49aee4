// SPDX-License-Identifier: MIT
// Spelling: the next tokens must spell a given text, and may go on beyond it in the token that ends it. Comes before
// all stages of the chain, and is over when the text has been spelled.
#include "sample/sampler.h"

#include <math.h>
#include <stdlib.h>

frit_status frit_sampler_spell(frit_sampler *sampler, const frit_str *pieces, frit_str text)
{
    free(sampler->spell);
    sampler->spell = NULL;
    sampler->spell_left = (frit_str){"", 0};
    if (text.len == 0) return FRIT_OK;
    sampler->spell = malloc(text.len);
    if (!sampler->spell) return frit_fail_memory(text.len, "the text to spell");
    memcpy(sampler->spell, text.ptr, text.len);
    sampler->spell_left = (frit_str){sampler->spell, text.len};
    sampler->spell_pieces = pieces;
    return FRIT_OK;
}

bool frit_spell_fits(frit_str left, frit_str piece)
{
    size_t n = piece.len < left.len ? piece.len : left.len;
    return n > 0 && memcmp(piece.ptr, left.ptr, n) == 0;
}

void frit_spell_apply(const frit_sampler *sampler, frit_candidates *candidates)
{
    for (int32_t i = 0; i < candidates->n; i++) {
        frit_candidate *c = &candidates->items[i];
        if (!frit_spell_fits(sampler->spell_left, sampler->spell_pieces[c->token])) c->logit = -INFINITY;
    }
}

void frit_spell_accept(frit_sampler *sampler, frit_token token)
{
    frit_str piece = sampler->spell_pieces[token], *left = &sampler->spell_left;
    bool done = !frit_spell_fits(*left, piece) || piece.len >= left->len;   // another token ends it too
    *left = done ? (frit_str){"", 0} : (frit_str){left->ptr + piece.len, left->len - piece.len};
}
