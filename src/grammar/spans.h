// SPDX-License-Identifier: MIT
// grammar/spans.h: what makes masks cheap: which states are alike, and how far texts of one kind lead on without a
// choice.
//
//     a string of at most 40 characters   s40 --a letter--> s39 --a letter--> ... s0 --'"'--> end
//     run of s40                          40 bytes of any class that every state on the way takes: all tokens of a
//                                         trie's node that are no longer, and of these classes, stay inside
//     alike                               the last 20 states of another string of at most 20 characters
#pragma once
#include "grammar/grammar.h"

typedef struct frit_run {
    uint64_t classes;   // of bytes (token_trie.h) whose every byte leads to one next state
    uint16_t ascii;     // so many bytes of these classes lead on; UINT16_MAX: any number
    uint16_t utf8;      // the same of bytes of these classes and of any characters beyond ASCII
    bool is_sharp;      // and after that nothing of these leads on: a text of them fits if it is no longer
} frit_run;

// [n_states] each. alike[s]: a state with the same texts. in_root: states at whose end nothing follows (mask.c).
frit_status frit_states_alike(const frit_automaton *automaton, const bool *in_root, int32_t *alike);
frit_status frit_states_runs(const frit_automaton *automaton, const bool *in_root, frit_run *runs);
