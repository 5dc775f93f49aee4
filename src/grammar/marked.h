// SPDX-License-Identifier: MIT
// grammar/marked.h: texts that end at a mark, as languages. Texts are UTF-8 without zero characters.
#pragma once
#include "grammar/dfa.h"

// Texts that end with the first occurrence of any mark. `marks` may not be empty.
frit_status frit_text_until(frit_budget *budget, frit_dfa *out, const frit_str *marks, int n_marks);
// Texts that end with the first occurrence of any mark i and its symbol symbols[i] (nfa.h); FRIT_NO_SYMBOL for a mark
// that must not occur. No mark may contain another.
enum { FRIT_NO_SYMBOL = -2 };
frit_status frit_text_until_each(frit_budget *budget, frit_dfa *out, const frit_str *marks, const int32_t *symbols,
                                 int n_marks);
// Texts in which none of the marks occurs.
frit_status frit_text_without(frit_budget *budget, frit_dfa *out, const frit_str *marks, int n_marks);
// A text of `texts` (NULL: any text) and then `tail`, which ends with the first occurrence of `mark`.
frit_status frit_text_then(frit_budget *budget, frit_dfa *out, const frit_dfa *texts, frit_str tail, frit_str mark);
