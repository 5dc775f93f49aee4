// SPDX-License-Identifier: MIT
// grammar/regex.h: regular expressions in the syntax of ECMA-262, which JSON schemas use, as languages of UTF-8 texts.
//
// They are compiled, never searched by going back. What no automaton can say is refused: back references, lookaround,
// word boundaries. Flags and possessive quantifiers are refused too; lazy quantifiers mean the same as others here.
#pragma once
#include "grammar/dfa.h"

// search: the texts that have a match anywhere, as `pattern` of JSON schemas means it; otherwise those that match as a
// whole. FRIT_E_INVALID with the position, FRIT_E_LIMIT, FRIT_E_MEMORY.
frit_status frit_regex_language(frit_budget *budget, frit_dfa *out, frit_str pattern, bool search);
