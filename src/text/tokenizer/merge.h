// SPDX-License-Identifier: MIT
// text/tokenizer/merge.h: joins adjacent symbols, the cheapest pair first, until no pair may be joined. BPE by ranks
// and SentencePiece by scores differ only in the costs of pairs.
//
//     symbols   t ~ h ~ e ~ _ ~ c        a list through an array; a joined symbol has len 0
//     lanes     th th th th, he he        pairs of equal cost that may be joined, from left to right
//     heap      (th, 3) (he, 5) (_c, 9)   the first pair of each lane, and pairs without a lane; stale ones are skipped
//
// Pairs of equal cost are joined from left to right. n symbols take at most O(n log n); pairs in a lane, as in
// sequences of spaces, take constant time each.
#pragma once
#include "text/tokenizer/tokenizer.h"

typedef struct frit_symbol {
    int32_t prev, next;    // -1: none
    uint32_t start, len;   // in the text that is encoded
    frit_token id;         // -1: not a token by itself
} frit_symbol;

typedef struct frit_join {
    int32_t left, right;
    uint32_t len;   // of both symbols when the pair was found
    frit_token merged;
    int32_t next;   // in its lane, or in the list of free joins; -1: the last
} frit_join;

typedef struct frit_heap_item {
    double cost;
    int32_t left, join;
    int32_t lane;   // -1: no lane
} frit_heap_item;

typedef struct frit_lane {
    double cost;
    int32_t last;   // index of the last join of the lane, plus 1; 0: the lane is free
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

// Returns true if the two symbols may be joined, with the cost and the resulting token.
typedef bool (*frit_join_fn)(const void *ctx, const frit_symbol *left, const frit_symbol *right, double *cost,
                             frit_token *merged);

void frit_merger_clear(frit_merger *merger);
void frit_merger_push(frit_merger *merger, uint32_t start, uint32_t len, frit_token id);
// Joins all pairs. Symbols with len > 0 remain. Returns the status of frit_halt_check.
frit_status frit_merger_run(frit_merger *merger, frit_join_fn pair, const void *ctx);
void frit_merger_free(frit_merger *merger);
