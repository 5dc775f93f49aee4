// SPDX-License-Identifier: MIT
// grammar/token_lists.h: tokens by the classes of their texts, so that masks of strings are made without a walk over
// the trie. A trie stores the lists for all grammars. They are made on first use, by any thread.
#pragma once
#include "grammar/dfa.h"
#include "grammar/token_trie.h"

// Tokens whose texts consist of characters of some classes and beyond ASCII, by length in characters. A node of the
// trie is plain if the bytes on the way to it and all bytes below it are of this kind.
typedef struct frit_plain_tokens {
    uint64_t classes;
    uint32_t *tokens;   // sorted by length
    uint32_t *first;    // [max_depth + 2]: index of the first token of a length
    uint32_t *all;      // all tokens of the list, as a mask
    uint32_t *visits;   // nodes that are not plain and not below a plain node; ends with UINT32_MAX
    uint16_t max_length;
} frit_plain_tokens;

// The mask of tokens of at most n characters.
void frit_plain_tokens_mask(const frit_plain_tokens *plain, size_t n_words, uint16_t most, uint32_t *mask);

// Items sorted by a number of characters: those of n characters are items[first[n]] .. items[first[n + 1]].
typedef struct frit_counted_list {
    uint32_t *items;
    uint32_t *first;   // [max_length + 2]
} frit_counted_list;

// Tokens that may follow within a JSON string, by the number of characters that they begin.
typedef struct frit_string_tokens {
    frit_dfa character;
    frit_counted_list inside;    // tokens that stay inside
    frit_counted_list closing;   // tokens that end with the quote
    frit_counted_list exits;     // nodes of the trie after the quote that have nodes below them
    uint32_t *all;               // `inside` as a mask
    uint16_t max_length;
} frit_string_tokens;

typedef struct frit_token_lists frit_token_lists;
frit_status frit_token_lists_new(frit_token_lists **out);
void frit_token_lists_free(frit_token_lists *lists);

// *out lives as long as the trie; NULL: there are too many lists already.
frit_status frit_plain_tokens_get(const frit_token_trie *trie, uint64_t classes, const frit_plain_tokens **out);
frit_status frit_string_tokens_get(const frit_token_trie *trie, const frit_dfa *character,
                                   const frit_string_tokens **out);
// Sets the mask of tokens in a string in which low to high more characters may follow.
void frit_string_tokens_mask(const frit_string_tokens *strings, size_t n_words, uint16_t low, uint16_t high,
                             uint32_t *mask);
