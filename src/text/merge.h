// SPDX-License-Identifier: MIT
// text/merge.h: joins neighbouring symbols, the cheapest pair first, until no pair may be joined. BPE by ranks and
// SentencePiece by scores differ only in what a pair costs.
//
//     symbols   t ~ h ~ e ~ _ ~ c        a chain through an array; a joined symbol has len 0
//     heap      (th, 3) (he, 5) (_c, 9)   pairs that may be joined; entries go stale and are skipped
//
// Equal costs go from left to right. n symbols take O(n log n).
#pragma once
#include "text/tokenizer.h"

typedef struct frit_symbol {
    int32_t prev, next;    // -1: none
    uint32_t start, len;   // in the text that is encoded
    frit_token id;         // -1: not a token by itself
} frit_symbol;

typedef struct frit_join {
    double cost;
    int32_t left, right;
    uint32_t len;   // of both together when the pair was found
    frit_token merged;
} frit_join;

typedef struct frit_merger {
    frit_symbol *symbols;
    int32_t n;
    size_t symbol_capacity;
    frit_join *heap;
    size_t n_pairs, pair_capacity;
    frit_halt *halt;   // NULL: never
    bool failed;
} frit_merger;

// May the two be joined? Then their cost, and the token that they become.
typedef bool (*frit_join_fn)(const void *ctx, const frit_symbol *left, const frit_symbol *right, double *cost,
                             frit_token *merged);

void frit_merger_clear(frit_merger *merger);
void frit_merger_push(frit_merger *merger, uint32_t start, uint32_t len, frit_token id);
// Symbols with len > 0 remain. What the halt says.
frit_status frit_merger_run(frit_merger *merger, frit_join_fn pair, const void *ctx);
void frit_merger_free(frit_merger *merger);
