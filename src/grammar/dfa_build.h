// SPDX-License-Identifier: MIT
// grammar/dfa_build.h: making automata (dfa.h): state by state, with memory that is charged to a budget. The functions
// that determinize (dfa_subsets.c), combine (dfa.c) and minimize (dfa_minimize.c) share it.
#pragma once
#include "grammar/dfa.h"

typedef struct frit_dfa_builder {
    frit_dfa dfa;
    int32_t room_states, room_edges;
    bool failed;   // for lack of memory
} frit_dfa_builder;

// Begins the next state; edges that are added next leave it.
void frit_dfa_begin_state(frit_dfa_builder *b, bool final);
void frit_dfa_add_edge(frit_dfa_builder *b, int32_t low, int32_t high, int32_t to);
// Copies the states for which map is not -1, with the edges between them. map gives the new numbers, which are
// ascending.
frit_status frit_dfa_renumber(frit_dfa *dfa, const int32_t *map);
frit_status frit_dfa_trim(frit_dfa *dfa);   // removes states from which no final state can be reached

frit_status frit_dfa_fail_memory(const frit_budget *budget);
frit_status frit_dfa_fail_size(void);
// Allocates room for n numbers and charges it.
void *frit_dfa_items_new(frit_budget *budget, size_t n, size_t size);
void frit_dfa_items_free(frit_budget *budget, void *items, size_t n, size_t size);

// Resizes an array from `before` to `after` bytes. `bytes` is the sum of the charged bytes. NULL: no memory.
static inline void *frit_dfa_grow(size_t *bytes, frit_budget *budget, void *items, size_t before, size_t after)
{
    void *more = frit_budget_resize(budget, items, before, after);
    if (more) *bytes += after - before;
    return more;
}

static inline uint64_t frit_dfa_mix(uint64_t h, uint64_t value)   // of a hash and a value
{
    h = (h ^ value) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

// Sets of numbers, each stored once (int_sets.c).
typedef struct frit_int_sets {
    int32_t *items;   // items of all sets
    size_t n, room;   // items
    size_t *start;    // [n_sets + 1]
    int32_t *buckets;
    int32_t n_sets, room_sets, n_buckets;
    bool failed;
    frit_budget *budget;
    size_t bytes;   // charged to the budget
} frit_int_sets;

// Returns the number of the set with these items; makes it if it is new. -1: no memory.
int32_t frit_int_sets_intern(frit_int_sets *s, const int32_t *items, size_t n);
void frit_int_sets_free(frit_int_sets *s);
