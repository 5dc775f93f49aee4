// SPDX-License-Identifier: MIT
// grammar/constraint.h: a grammar with the vocabulary of a model, and the text of one sampler in it.
#pragma once
#include "grammar/mask.h"

struct frit_grammar {   // counted; any thread
    _Atomic int n_refs;
    frit_automaton *automaton;
    frit_masks *masks;
    const frit_str *pieces;   // [n_vocab]: the owner's; "": a token that is never allowed
    const frit_token_trie *trie;
    int32_t n_vocab;
    void *owner;   // what pieces and trie belong to
    void (*release)(void *owner);
};

typedef struct frit_constraint frit_constraint;

// Begins at the grammar's start. Keeps the grammar alive.
frit_status frit_constraint_new(frit_constraint **out, frit_grammar *grammar);
void frit_constraint_free(frit_constraint *constraint);
// The tokens that may be next, [frit_mask_words(n_vocab)]; valid until the next call.
frit_status frit_constraint_mask(frit_constraint *constraint, const uint32_t **mask);
// The token that must be next: -1 where several may be, or none.
frit_status frit_constraint_only(frit_constraint *constraint, frit_token *token);
// FRIT_E_INVALID for a token that does not fit; nothing changes then.
frit_status frit_constraint_accept(frit_constraint *constraint, frit_token token);
// Takes back the last token that was accepted; FRIT_CONSTRAINT_UNDO of them at most, one after another.
enum { FRIT_CONSTRAINT_UNDO = 64 };
frit_status frit_constraint_undo(frit_constraint *constraint);
// Tokens whose texts make up what must follow, as far as it is known, at most `most` of them; returns how many. Where
// the text goes on after them the last one may be cut too short.
int32_t frit_constraint_forced(frit_constraint *constraint, frit_token *tokens, int32_t most);
// The text is complete, and nothing can follow; or a token has ended it.
bool frit_constraint_is_over(const frit_constraint *constraint);
int32_t frit_constraint_n_vocab(const frit_constraint *constraint);
