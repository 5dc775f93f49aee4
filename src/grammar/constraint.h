// SPDX-License-Identifier: MIT
// grammar/constraint.h: a grammar with the vocabulary of a model, and the position of one sampler in it.
#pragma once
#include "grammar/mask.h"

struct frit_grammar {   // reference-counted; any thread may use it
    _Atomic int n_refs;
    frit_automaton *automaton;
    frit_masks *masks;
    const frit_str *pieces;   // [n_vocab], owned by `owner`; "": a token that is never allowed
    const frit_token_trie *trie;
    int32_t n_vocab;
    void *owner;   // the owner of pieces and trie
    void (*release)(void *owner);
};

typedef struct frit_constraint frit_constraint;

// Makes a constraint at the grammar's start. It keeps the grammar alive.
frit_status frit_constraint_new(frit_constraint **out, frit_grammar *grammar);
void frit_constraint_free(frit_constraint *constraint);
// The tokens that may be next, [frit_mask_words(n_vocab)]; valid until the next call.
frit_status frit_constraint_mask(frit_constraint *constraint, const uint32_t **mask);
// Sets the only token that may be next; -1 if several may be, or none.
frit_status frit_constraint_only(frit_constraint *constraint, frit_token *token);
// FRIT_E_INVALID for a token that does not fit; the constraint then stays unchanged.
frit_status frit_constraint_accept(frit_constraint *constraint, frit_token token);
// Takes back the last accepted token. At most FRIT_CONSTRAINT_UNDO tokens can be taken back one after another.
enum { FRIT_CONSTRAINT_UNDO = 64 };
frit_status frit_constraint_undo(frit_constraint *constraint);
// Writes tokens whose texts are the text that must follow, at most `most`, and returns their number. If the text
// continues after them, the last token may be shorter than the best one.
int32_t frit_constraint_forced(frit_constraint *constraint, frit_token *tokens, int32_t most);
// True if the text is complete and nothing can follow, or a token has ended it.
bool frit_constraint_is_over(const frit_constraint *constraint);
int32_t frit_constraint_n_vocab(const frit_constraint *constraint);
