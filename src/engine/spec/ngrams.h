// SPDX-License-Identifier: MIT
// engine/spec/ngrams.h: where a text said the same before: each pair of tokens with the places at which it ends, latest
// first. What followed the longest match of the text's end is a guess of what follows now. A head of tokens that are
// no part of the text may stand in front of it: what the caller expects to follow.
#pragma once
#include "base/status.h"

enum { FRIT_LONGEST_MATCH = 16 };   // tokens that are compared

typedef struct frit_ngrams {
    frit_token *tokens;      // [n_predicted + capacity]: the head, and the text as it was indexed
    int32_t *before;         // [n_predicted + capacity]: the place before with a pair of the same bucket; -1: none
    int32_t *last;           // [n_buckets]: the last place; -1: none
    size_t n, n_predicted;   // tokens indexed, the head's too; those of the head
    size_t capacity;         // of the text
    size_t drafted_n,
        drafted;          // when n was drafted_n, tokens of the prediction after index `drafted` were drafted; 0: none
    uint32_t n_buckets;   // a power of two
} frit_ngrams;

frit_status frit_ngrams_init(frit_ngrams *ngrams, size_t capacity);
void frit_ngrams_free(frit_ngrams *ngrams);
// Puts these tokens in front, in the place of those before. FRIT_E_MEMORY, and there is no head then.
frit_status frit_ngrams_set_prediction(frit_ngrams *ngrams, const frit_token *head, size_t n);
// Makes the index that of these tokens; what it has of their beginning stays. No more than `capacity`.
void frit_ngrams_follow(frit_ngrams *ngrams, const frit_token *tokens, size_t n);
// Guesses up to `most` tokens; returns how many. *n_match: so many tokens at the end of the text were found before.
int32_t frit_ngrams_draft(frit_ngrams *ngrams, frit_token *guess, int32_t most, int32_t *n_match);
