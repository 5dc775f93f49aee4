// SPDX-License-Identifier: MIT
// grammar/mask.h: masks of the tokens that may follow. One object for a grammar and a vocabulary; any number of matches
// use it.
//
// The bytes of a token either stay inside the current rule (and the rules that it calls), or they end the rule and
// continue in its caller. The first part does not depend on the caller, so it is computed once for each pair of a state
// and a trie node, and cached: a list or bitmap of tokens, and the nodes at which the rule may have ended ("exits"). A
// mask is the union of these: the tokens of the match's states and then, for each exit, the tokens of the states that
// the rule returns to, from the node of the exit on.
//
//     a string in an object      all tokens without a quote, as a bitmap; exits: the nodes after a quote
//     the object, after a value  from the node  "  on:  ,  }  ,_"  and so on
#pragma once
#include "grammar/match.h"
#include "grammar/token_trie.h"

typedef struct frit_masks frit_masks;

// Borrows automaton and trie. Computes rows that are slow, for states that allow many tokens, for at most warm_ns.
frit_status frit_masks_new(frit_masks **out, const frit_automaton *automaton, const frit_token_trie *trie,
                           uint64_t warm_ns);
void frit_masks_free(frit_masks *masks);

static inline int32_t frit_mask_words(int32_t n_vocab)
{
    return n_vocab / 32 + (n_vocab % 32 != 0);
}

// Sets mask, [frit_mask_words(n_vocab)]: bit t % 32 of word t / 32 is set if t may be next. End tokens are allowed if
// the text may end. FRIT_E_LIMIT, FRIT_E_MEMORY.
frit_status frit_masks_get(frit_masks *masks, frit_match *match, uint32_t *mask);
