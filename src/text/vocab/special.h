// SPDX-License-Identifier: MIT
// text/vocab/special.h: finds special tokens in text: the leftmost, and there the longest.
//
// The pieces form a trie of bytes; a table of first bytes skips ordinary text at one look-up per byte.
#pragma once
#include "base/spans.h"
#include "text/vocab/vocab.h"

typedef struct frit_special {
    const frit_vocab *vocab;
    frit_trie trie;   // of all specials
    frit_trie user;   // of those that are recognised in every text
    size_t n, n_user;
} frit_special;

typedef struct frit_special_match {
    size_t start, end;   // of the piece, without the white space that it absorbs
    frit_token id;
} frit_special_match;

// The specials that are searched in the original text, or in normalized text. Those are normalized themselves.
frit_status frit_special_init(frit_special *special, const frit_vocab *vocab, bool normalized, frit_arena *arena);
// The specials of normalized text as they are spelled in the original text, not normalized.
frit_status frit_special_init_raw(frit_special *special, const frit_vocab *vocab, frit_arena *arena);

// Where control tokens are recognised; user-defined ones are recognised everywhere.
typedef struct frit_special_scope {
    bool parse_control;
    const frit_spans *untrusted;   // no control token has a byte of these; NULL: no range
    size_t offset;                 // of the searched text in the text of the ranges
} frit_special_scope;

// The first special token at or after `from`.
bool frit_special_find(const frit_special *special, frit_str text, size_t from, const frit_special_scope *scope,
                       frit_special_match *match);
