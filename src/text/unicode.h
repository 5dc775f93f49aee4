// SPDX-License-Identifier: MIT
// text/unicode.h: Unicode functions for normalizers and pre-tokenizers, based on utf8proc.
#pragma once
#include "base/buf.h"

typedef enum frit_form { FRIT_FORM_NFC, FRIT_FORM_NFD, FRIT_FORM_NFKC, FRIT_FORM_NFKD } frit_form;

// How bytes that are not UTF-8 become U+FFFD: one for each byte, or one for each longest part of a character (as in
// Python and Rust).
typedef enum frit_repair { FRIT_REPAIR_NONE, FRIT_REPAIR_BYTES, FRIT_REPAIR_PARTS } frit_repair;

// `text` must be valid UTF-8 for all functions below except repair and next. Each takes time in proportion to the text.
frit_status frit_unicode_normalize(frit_str text, frit_form form, frit_buf *out);
void frit_unicode_lower(frit_str text, frit_buf *out);
void frit_unicode_repair(frit_str text, frit_repair how, frit_buf *out);
void frit_unicode_put(uint32_t c, frit_buf *out);

bool frit_unicode_is_space(uint32_t c);         // White_Space
bool frit_unicode_is_mark(uint32_t c);          // M
bool frit_unicode_is_nonspacing(uint32_t c);    // Mn
bool frit_unicode_is_punctuation(uint32_t c);   // P, and ASCII's symbols
bool frit_unicode_is_control(uint32_t c);       // Cc, Cf, Co, Cs
bool frit_unicode_is_unassigned(uint32_t c);    // Cn
bool frit_unicode_is_word(uint32_t c);          // \w
bool frit_unicode_is_ideograph(uint32_t c);     // in the blocks that BERT treats as ideographs
uint32_t frit_unicode_lower_of(uint32_t c);
// The length in bytes of the user-perceived character at the start.
size_t frit_unicode_grapheme(frit_str text);
// Reads the character at `at` and returns the position after it. A byte that is not UTF-8 counts as U+FFFD.
size_t frit_unicode_next(frit_str text, size_t at, uint32_t *c);
