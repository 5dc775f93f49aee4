// SPDX-License-Identifier: MIT
// text/chat/trust.h: which control tokens of a normalized text are trusted.
//
// Normalizing moves bytes, so ranges of the original text do not apply to the normalized text. But tokens can be
// counted: the k-th special token of the original text is the k-th of the normalized text, unless a normalizer makes or
// breaks one. If the counts differ, in the whole text or in one untrusted range alone, no control token is trusted.
#pragma once
#include "text/tokenizer/tokenizer.h"

// *distrusted becomes the ranges of the normalized text in which no control token is recognised. `scope` refers to
// `text`.
frit_status frit_trust_normalized(const frit_tokenizer *tokenizer, frit_str text, const frit_special_scope *scope,
                                  frit_flow *flow, frit_spans *distrusted);
