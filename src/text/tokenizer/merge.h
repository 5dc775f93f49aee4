// SPDX-License-Identifier: MIT
// text/tokenizer/merge.h: joins neighbouring symbols, the cheapest pair first, until no pair may be joined. BPE by
// ranks and SentencePiece by scores differ only in what a pair costs.
//
//     symbols   t ~ h ~ e ~ _ ~ c        a chain through an array; a joined symbol has len 0
//     lanes     th th th th, he he        pairs that may be joined: of one cost, from left to right
//     heap      (th, 3) (he, 5) (_c, 9)   the first pair of each lane, and pairs without one; stale ones are skipped
//
// Equal costs go from left to right. n symbols take O(n log n) at most; pairs in a lane take constant time each, as in
// runs of spaces.
#pragma once
#include "text/tokenizer/tokenizer.h"

typedef struct frit_symbol {
    int32_t prev, next;    // -1: none
    uint32_t start, len;   // in the text that is encoded
    frit_token id;         // -1: not a token by itself
} frit_symbol;

typedef struct frit_join {
    int32_t left, right;
    uint32_t len;   // of both together when the pair was found
    frit_token merged;
    int32_t next;   // in its lane, or in the list of free ones; -1: the last
} frit_join;

typedef struct frit_heap_item {
    double cost;
    int32_t left, join;
    int32_t lane;   // -1: without one
} frit_heap_item;

typedef struct frit_lane {
    double cost;
    int32_t last;   // its join, plus 1; 0: the lane is free
} frit_lane;

enum { FRIT_N_LANES = 4096 };

typedef struct frit_merger {
    frit_symbol *symbols;
    int32_t n;
    size_t symbol_capacity;
    frit_join *joins;
    size_t n_joins, join_capacity;
    int32_t free_join;   // -1: none
    frit_heap_item *heap;
    size_t n_heap, heap_capacity;
    frit_lane *lanes;   // FRIT_N_LANES, found by a hash of the cost
    frit_halt *halt;    // NULL: never
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
