// SPDX-License-Identifier: MIT
// engine/spec/ngrams.h: an index of a text by pairs of tokens. It lists where each pair ends, latest first. What
// followed the longest earlier match of the text's end is drafted. A prediction, tokens that the caller expects to
// follow, may stand before the text.
#pragma once
#include "base/status.h"

enum { FRIT_LONGEST_MATCH = 16 };   // tokens that are compared

typedef struct frit_ngrams {
    frit_token *tokens;   // [n_predicted + capacity]: the prediction, then the text
    int32_t *before;      // [n_predicted + capacity]: end of the previous pair of the same bucket; -1: none
    int32_t *last;        // [n_buckets]: end of the last pair; -1: none
    size_t n;             // indexed tokens, with the prediction
    size_t n_predicted;   // tokens of the prediction
    size_t capacity;      // of the text
    // A prediction is drafted once from each place: `drafted` is the place that was drafted last, when `n` was
    // `drafted_n`. 0: none was.
    size_t drafted_n, drafted;
    uint32_t n_buckets;   // a power of two
} frit_ngrams;

frit_status frit_ngrams_init(frit_ngrams *ngrams, size_t capacity);
void frit_ngrams_deinit(frit_ngrams *ngrams);
// Replaces the prediction, and empties the text. FRIT_E_MEMORY: there is no prediction then.
frit_status frit_ngrams_set_prediction(frit_ngrams *ngrams, const frit_token *tokens, size_t n);
// Replaces the text by n tokens, at most `capacity`. Keeps the index of their common beginning.
void frit_ngrams_follow(frit_ngrams *ngrams, const frit_token *tokens, size_t n);
// Drafts up to `most` tokens; returns how many. Sets *n_match to the length of the match.
int32_t frit_ngrams_draft(frit_ngrams *ngrams, frit_token *drafts, int32_t most, int32_t *n_match);
