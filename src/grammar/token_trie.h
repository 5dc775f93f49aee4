// SPDX-License-Identifier: MIT
// grammar/token_trie.h: the texts of a vocabulary's tokens as a trie of bytes, in preorder: the nodes below node i are
// i + 1 .. end(i), and their tokens are adjacent too. A walk skips nodes that do not fit without visiting the nodes
// below them.
#pragma once
#include "base/buf.h"

typedef struct frit_token_node {
    uint32_t end;           // the first node after those below this one
    uint32_t first_token;   // the tokens of node i are [first_token(i), first_token(i + 1))
    uint64_t classes;       // classes of the bytes of this node and the nodes below it (frit_byte_class)
    uint16_t depth;
    uint16_t height;   // length of the longest text that begins with this node's byte
    unsigned char byte;
    bool is_utf8;   // whole characters end before this node, and all texts from here on are UTF-8, possibly cut
} frit_token_node;

typedef struct frit_token_trie {
    frit_token_node *nodes;   // [n_nodes + 1]; node 0 is the root
    int32_t *tokens;          // sorted by text
    frit_token *ends;         // tokens that end an answer
    uint32_t *named;          // a bit for each token that a grammar may name: tokens with a text, and tokens of
                              // frit_token_trie_name
    uint32_t n_nodes;
    int32_t n_tokens, n_vocab, n_ends;
    uint16_t max_depth;
    struct frit_token_lists *lists;   // made on first use (token_lists.h)
} frit_token_trie;

// Builds a trie. pieces: [n_vocab]; "" for tokens without text, which are never allowed. ends: tokens that are allowed
// where a text may end.
frit_status frit_token_trie_new(frit_token_trie **out, const frit_str *pieces, int32_t n_vocab, const frit_token *ends,
                                int32_t n_ends);
// Allows grammars to name a token without text.
void frit_token_trie_name(frit_token_trie *trie, frit_token token);
void frit_token_trie_free(frit_token_trie *trie);

// The classes of bytes, so that sets of classes fit in 64 bits: lower case, upper case, digits, bytes beyond ASCII,
// other control characters; each other character is a class of its own.
#define FRIT_BEYOND_ASCII ((uint64_t)1 << 3)

static inline int frit_byte_class(unsigned char b)
{
    if (b >= 'a' && b <= 'z') return 0;
    if (b >= 'A' && b <= 'Z') return 1;
    if (b >= '0' && b <= '9') return 2;
    if (b >= 0x80) return 3;
    if (b == '\t' || b == '\n' || b == '\r') return b - 4;   // 5, 6, 9
    if (b < ' ' || b == 0x7f) return 4;
    return b < '0' ? 10 + (b - ' ') : b < 'A' ? 26 + (b - ':') : b < 'a' ? 33 + (b - '[') : 39 + (b - '{');
}
