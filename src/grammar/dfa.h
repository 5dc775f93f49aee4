// SPDX-License-Identifier: MIT
// grammar/dfa.h: deterministic automata over symbols (nfa.h). State 0 is the start. There are no dead states, except in
// an automaton that matches nothing, which has one state and no edge.
//
// Automata of bytes alone are regular languages, which can be combined. The strings, numbers and keys that a JSON
// schema allows are computed in this way.
#pragma once
#include "grammar/nfa.h"

typedef struct frit_dfa_edge {
    int32_t low, high, to;
} frit_dfa_edge;

typedef struct frit_dfa {
    int32_t n_states, n_edges;
    int32_t *first;         // [n_states + 1]: edges of state s are [first[s], first[s + 1]), sorted
    frit_dfa_edge *edges;   // [n_edges]
    unsigned char *final;   // [n_states]
    frit_budget *budget;    // the budget to which `bytes` are charged; NULL: none
    size_t bytes;
} frit_dfa;

enum { FRIT_DFA_STATES = 1 << 18 };

// Makes the language of `part` deterministic. FRIT_E_LIMIT if it needs more than FRIT_DFA_STATES states, or more than
// the budget of `nfa`, which becomes the budget of the result.
frit_status frit_dfa_new(frit_dfa *out, const frit_nfa *nfa, frit_fragment part);
void frit_dfa_free(frit_dfa *dfa);
frit_status frit_dfa_copy(frit_dfa *out, const frit_dfa *dfa);   // without a budget
// True if both have equal states in equal order with equal edges, which is the case for minimal automata of one
// language.
bool frit_dfa_same(const frit_dfa *a, const frit_dfa *b);

typedef enum frit_dfa_op { FRIT_DFA_AND, FRIT_DFA_OR, FRIT_DFA_MINUS } frit_dfa_op;
// The intersection, union or difference of two languages, as a new automaton with the budget of a or b.
frit_status frit_dfa_combine(frit_dfa *out, const frit_dfa *a, frit_dfa_op op, const frit_dfa *b);
bool frit_dfa_is_empty(const frit_dfa *dfa);
bool frit_dfa_accepts(const frit_dfa *dfa, frit_str text);
// Merges equal states. Leaves large automata unchanged.
frit_status frit_dfa_minimize(frit_dfa *dfa);
// Copies the automaton into `nfa` as a fragment.
frit_fragment frit_nfa_dfa(frit_nfa *nfa, const frit_dfa *dfa);

static inline int32_t frit_dfa_next(const frit_dfa *dfa, int32_t state, int32_t symbol)
{
    for (int32_t i = dfa->first[state]; i < dfa->first[state + 1]; i++)
        if (symbol <= dfa->edges[i].high) return symbol >= dfa->edges[i].low ? dfa->edges[i].to : -1;
    return -1;
}
