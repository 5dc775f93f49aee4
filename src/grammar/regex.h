// SPDX-License-Identifier: MIT
// grammar/regex.h: regular expressions in the syntax of ECMA-262, which JSON schemas use, as languages of UTF-8 texts.
//
// Expressions are compiled to automata, so there is no backtracking. Features that no automaton can express are
// refused: back references, lookaround, word boundaries. Flags and possessive quantifiers are refused too; lazy
// quantifiers mean the same as greedy ones.
#pragma once
#include "grammar/dfa.h"

// Makes the language of a pattern. With `search` a text matches if the pattern occurs in it, as for `pattern` of JSON
// schemas; otherwise the whole text must match. FRIT_E_INVALID with the position, FRIT_E_LIMIT, FRIT_E_MEMORY.
frit_status frit_regex_language(frit_budget *budget, frit_dfa *out, frit_str pattern, bool search);
