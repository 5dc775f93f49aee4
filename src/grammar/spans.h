// SPDX-License-Identifier: MIT
// grammar/spans.h: properties of states that make masks cheap: states with equal rows, and how many bytes of some
// classes can be read from a state without a choice.
//
//     a string of at most 40 characters   s40 --a letter--> s39 --a letter--> ... s0 --'"'--> end
//     run of s40                          40 bytes of any class that every state on the way reads. All tokens below a
//                                         trie's node that are not longer, and consist of these classes, stay inside
// alike                               the last 20 states of another string of at most 20 characters
#pragma once
#include "grammar/grammar.h"

typedef struct frit_run {
    uint64_t classes;   // classes of bytes (token_trie.h); each byte of a class leads to the same next state
    uint16_t ascii;     // number of bytes of these classes that can be read; UINT16_MAX: any number
    uint16_t utf8;      // number of bytes of these classes and of any characters beyond ASCII that can be read
    bool is_sharp;      // after this number, no byte of these classes can be read, so a text of them fits exactly if it
                        // is not longer
} frit_run;

// Computes properties of states, [n_states] each. alike[s] is a state with the same texts. in_root marks states of the
// root rule, after which nothing follows (mask.c).
frit_status frit_states_alike(const frit_automaton *automaton, const bool *in_root, int32_t *alike);
frit_status frit_states_runs(const frit_automaton *automaton, const bool *in_root, frit_run *runs);
