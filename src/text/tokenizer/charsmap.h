// SPDX-License-Identifier: MIT
// text/tokenizer/charsmap.h: SentencePiece's precompiled normalization map: a double-array trie from bytes to
// replacements.
//
//     u32 size of the trie in bytes | trie: u32 units | replacements, each ended by a zero
#pragma once
#include "base/buf.h"

typedef struct frit_charsmap {
    const char *units;   // packed, possibly unaligned
    size_t n_units;
    frit_str replacements;
} frit_charsmap;

// Reads a map, whose bytes are borrowed. Empty bytes make an empty map.
frit_status frit_charsmap_init(frit_charsmap *map, frit_str bytes);
// Finds the longest (or shortest) key at the start of `text`. Returns its length, or 0 if no key matches.
size_t frit_charsmap_find(const frit_charsmap *map, frit_str text, bool shortest, frit_str *replacement);
