// SPDX-License-Identifier: MIT
// grammar/token_lists.h: tokens by what their texts are, so that masks of strings are made without a walk over the
// trie. A trie keeps them for all grammars; they are made when first asked for, by any thread.
#pragma once
#include "grammar/dfa.h"
#include "grammar/token_trie.h"

// Tokens whose texts are characters of some classes and beyond ASCII, by their length in characters. A node of the trie
// is plain if its way is of such bytes, and all texts from it on.
typedef struct frit_plain_tokens {
    uint64_t classes;
    uint32_t *tokens;   // by length
    uint32_t *first;    // [max_depth + 2]: of a length
    uint32_t *all;      // the tokens as a mask
    uint32_t *visits;   // the nodes that no plain one is above of, nor plain themselves; ends with UINT32_MAX
    uint16_t max_length;
} frit_plain_tokens;

// The mask of those of at most so many characters.
void frit_plain_tokens_mask(const frit_plain_tokens *plain, size_t n_words, uint16_t most, uint32_t *mask);

// Something sorted by a number of characters: those of n are items[first[n]] .. items[first[n + 1]].
typedef struct frit_counted_list {
    uint32_t *items;
    uint32_t *first;   // [max_length + 2]
} frit_counted_list;

// What may follow within a JSON string, by the number of characters that are begun.
typedef struct frit_string_tokens {
    frit_dfa character;
    frit_counted_list inside;    // tokens that stay inside
    frit_counted_list closing;   // tokens that end with the quote
    frit_counted_list exits;     // nodes of the trie after the quote that have others below
    uint32_t *all;               // of `inside`, as a mask
    uint16_t max_length;
} frit_string_tokens;

typedef struct frit_token_lists frit_token_lists;
frit_status frit_token_lists_new(frit_token_lists **out);
void frit_token_lists_free(frit_token_lists *lists);

// *out lives as long as the trie; NULL: there are too many kinds of them already.
frit_status frit_plain_tokens_get(const frit_token_trie *trie, uint64_t classes, const frit_plain_tokens **out);
frit_status frit_string_tokens_get(const frit_token_trie *trie, const frit_dfa *character,
                                   const frit_string_tokens **out);
// Tokens of a string in which low to high more characters may come.
void frit_string_tokens_mask(const frit_string_tokens *strings, size_t n_words, uint16_t low, uint16_t high,
                             uint32_t *mask);
