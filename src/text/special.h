// SPDX-License-Identifier: MIT
// text/special.h: finds special tokens in text: at each place the longest one, the leftmost place first.
//
// The pieces form a trie of bytes; a table of first bytes lets ordinary text pass at one look per byte.
#pragma once
#include "text/vocab.h"

typedef struct frit_special_node {
    int32_t child, next;   // first child, next sibling; 0: none (the root is nobody's child)
    frit_token id;         // token that ends here, or -1
    unsigned char byte;
} frit_special_node;

typedef struct frit_special {
    const frit_vocab *vocab;
    frit_special_node *nodes;
    int32_t n_nodes;
    int32_t first[256];   // child of the root, by byte; 0: none
} frit_special;

typedef struct frit_special_match {
    size_t start, end;   // of the piece, without the white space that it swallows
    frit_token id;
} frit_special_match;

frit_status frit_special_init(frit_special *special, const frit_vocab *vocab, frit_arena *arena);
// The first special token at or behind `from`. `parse_control`: recognise control tokens, not only user-defined ones.
bool frit_special_find(const frit_special *special, frit_str text, size_t from, bool parse_control,
                       frit_special_match *match);
