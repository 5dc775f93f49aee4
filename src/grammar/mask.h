// SPDX-License-Identifier: MIT
// grammar/mask.h: which tokens may follow. One object for a grammar and a vocabulary; any number of matches use it.
//
// A token's bytes either stay inside of the rule that the text is in (and what it calls), or they end it and go on with
// what its caller expects. The first is the same wherever the rule is called from, so it is computed once for each pair
// of state and trie node and kept: a list or bitmap of tokens, and the nodes at which the rule may have ended
// ("exits"). A mask is put together from these: the tokens of the match's states; then, for each exit, those of the
// states that the rule returns to, from that node of the trie on.
//
//     a string in an object      all tokens without a quote, as a bitmap; exits: the nodes after a quote
//     the object, after a value  from the node  "  on:  ,  }  ,_"  and so on
#pragma once
#include "grammar/match.h"
#include "grammar/token_trie.h"

typedef struct frit_masks frit_masks;

// Borrows both. Computes what is slow for states that allow much, for at most warm_ns.
frit_status frit_masks_new(frit_masks **out, const frit_automaton *automaton, const frit_token_trie *trie,
                           uint64_t warm_ns);
void frit_masks_free(frit_masks *masks);

static inline int32_t frit_mask_words(int32_t n_vocab)
{
    return n_vocab / 32 + (n_vocab % 32 != 0);
}

// mask: [frit_mask_words(n_vocab)], bit t % 32 of word t / 32: t may be next. End tokens are allowed where the text may
// end. FRIT_E_LIMIT, FRIT_E_MEMORY.
frit_status frit_masks_get(frit_masks *masks, frit_match *match, uint32_t *mask);
