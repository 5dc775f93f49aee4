// SPDX-License-Identifier: MIT
// grammar/nfa.h: nondeterministic automata over symbols, built by parts (Thompson's construction).
//
// A symbol is a byte (0-255), a call of a rule (FRIT_CALL + rule), or a token by its id (FRIT_TOKEN + id). A part has
// one start state and one end state, and owns the states and edges that were added since it was begun, so that the last
// part can be copied for repetitions.
//
//     frit_fragment a = frit_nfa_text(nfa, frit_str_of("ab"));
//     frit_fragment b = frit_nfa_repeat(nfa, frit_nfa_bytes(nfa, '0', '9'), 1, FRIT_NO_LIMIT);
//     frit_fragment whole = frit_nfa_seq(nfa, a, b);       // "ab" [0-9]+
//
// A failure (no memory, too many states) is stored; later calls do nothing. frit_nfa_check returns it.
#pragma once
#include "grammar/budget.h"

enum { FRIT_CALL = 256, FRIT_TOKEN = 1 << 24, FRIT_TOKEN_END = 1 << 25, FRIT_EPSILON = -1, FRIT_NO_LIMIT = -1 };

static inline bool frit_is_call(int32_t symbol)
{
    return symbol >= FRIT_CALL && symbol < FRIT_TOKEN;
}

typedef struct frit_nfa_edge {
    int32_t from, to;
    int32_t low, high;   // symbols, both included; FRIT_EPSILON: no symbol is read
} frit_nfa_edge;

typedef struct frit_nfa {
    frit_nfa_edge *edges;
    int32_t n_edges, room;
    int32_t n_states;
    int32_t max_states;   // 0: FRIT_NFA_STATES
    frit_status failed;
    frit_budget *budget;
} frit_nfa;

enum { FRIT_NFA_STATES = 1 << 20 };

typedef struct frit_fragment {
    int32_t in, out;
    int32_t first_state, first_edge;   // the part owns everything from these indices to its end
} frit_fragment;

typedef struct frit_range {   // of code points, both included
    uint32_t low, high;
} frit_range;

void frit_nfa_free(frit_nfa *nfa);
frit_status frit_nfa_check(const frit_nfa *nfa);
void frit_nfa_add(frit_nfa *nfa, int32_t from, int32_t low, int32_t high, int32_t to);
int32_t frit_nfa_state(frit_nfa *nfa);

frit_fragment frit_nfa_empty(frit_nfa *nfa);   // matches ""
frit_fragment frit_nfa_none(frit_nfa *nfa);    // matches nothing; start of a list of alternatives
frit_fragment frit_nfa_bytes(frit_nfa *nfa, unsigned char low, unsigned char high);
// Matches one byte of the ranges in `pairs`, such as "09AFaf".
frit_fragment frit_nfa_byte_of(frit_nfa *nfa, const char *pairs);
frit_fragment frit_nfa_text(frit_nfa *nfa, frit_str text);
// Matches one character of the ranges, as UTF-8. Surrogates are left out.
frit_fragment frit_nfa_chars(frit_nfa *nfa, const frit_range *ranges, size_t n);
frit_fragment frit_nfa_call(frit_nfa *nfa, int32_t rule);
// Matches one token, whatever its text: `token`, or with `negated` any other token.
frit_fragment frit_nfa_token(frit_nfa *nfa, int32_t token, bool negated);
frit_fragment frit_nfa_seq(frit_nfa *nfa, frit_fragment a, frit_fragment b);   // b was built after a
// Adds an alternative to a part that frit_nfa_none began.
frit_fragment frit_nfa_or(frit_nfa *nfa, frit_fragment alternatives, frit_fragment part);
// Repeats `part`, which must be the last part that was built. max: FRIT_NO_LIMIT for no limit.
frit_fragment frit_nfa_repeat(frit_nfa *nfa, frit_fragment part, int32_t min, int32_t max);

// Sorts ranges and joins adjacent ones. Returns the number of ranges left.
size_t frit_ranges_sort(frit_range *ranges, size_t n);
// Writes the code points outside n sorted ranges; `out` has room for n + 1.
size_t frit_ranges_invert(const frit_range *ranges, size_t n, frit_range *out);
