// SPDX-License-Identifier: MIT
// text/vocab/special.h: finds special tokens in text: the leftmost one, and of several at one position the longest.
//
// The pieces form a trie of bytes; a table of first bytes skips ordinary text at one look-up per byte.
#pragma once
#include "base/spans.h"
#include "text/vocab/vocab.h"

typedef struct frit_special {
    const frit_vocab *vocab;
    frit_trie trie;   // of all specials
    frit_trie user;   // of the specials that are recognised in every text
    size_t n, n_user;
} frit_special;

typedef struct frit_special_match {
    size_t start, end;   // of the piece, without the white space that it absorbs
    frit_token id;
} frit_special_match;

// Collects the specials that are searched in the original text, or in normalized text. The pieces of the latter are
// normalized.
frit_status frit_special_init(frit_special *special, const frit_vocab *vocab, bool normalized, frit_arena *arena);
// Collects the specials of normalized text as they are spelled in the original text.
frit_status frit_special_init_raw(frit_special *special, const frit_vocab *vocab, frit_arena *arena);

// Where control tokens are recognised; user-defined tokens are recognised everywhere.
typedef struct frit_special_scope {
    bool parse_control;
    const frit_spans *untrusted;   // a control token may not overlap these ranges; NULL: no ranges
    size_t offset;                 // position of the searched text in the text that the ranges refer to
} frit_special_scope;

// Finds the first special token at or after `from`.
bool frit_special_find(const frit_special *special, frit_str text, size_t from, const frit_special_scope *scope,
                       frit_special_match *match);
