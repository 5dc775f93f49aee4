// SPDX-License-Identifier: MIT
// text/chat/trust.h: which control tokens of a normalized text are trusted.
//
// Normalizing moves bytes, so ranges of the text before say nothing about the text after. But tokens can be counted:
// the k-th special of the text before is the k-th of the text after, unless a normalizer makes or breaks one. Where the
// counts differ, in the whole or in one of the untrusted ranges alone, no control token is trusted.
#pragma once
#include "text/tokenizer/tokenizer.h"

// *distrusted: ranges of the normalized text in which no control token is recognised. `scope` is about `text`.
frit_status frit_trust_normalized(const frit_tokenizer *tokenizer, frit_str text, const frit_special_scope *scope,
                                  frit_flow *flow, frit_spans *distrusted);
