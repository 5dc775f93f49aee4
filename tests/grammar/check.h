// SPDX-License-Identifier: MIT
// grammar/check.h: matches a whole text byte by byte, for tests of grammars.
#pragma once
#include "support/support.h"

#include "grammar/match.h"

// Returns -1 if the text does not fit, 0 if it fits but may not end, 1 if it matches.
static inline int match_text(const frit_automaton *a, frit_str text)
{
    frit_match match;
    assert_ok(frit_match_init(&match, a, 0));
    size_t n_read = 0;
    assert_ok(frit_match_push(&match, text.ptr, text.len, &n_read));
    const int result = n_read < text.len ? -1 : frit_match_is_final(&match);
    frit_match_deinit(&match);
    return result;
}

static inline void assert_matches(const frit_automaton *a, const char *about, const char *text, int expected)
{
    const int got = match_text(a, frit_str_of(text));
    if (got != expected) fail_msg("%s: '%s' gives %d, expected %d", about, text, got, expected);
}
