// SPDX-License-Identifier: MIT
// text/tokenizer/trie.h: pieces as a trie of bytes, for models that look up the pieces that begin at a position of the
// text.
//
// Children of a node are adjacent and sorted, and are found by binary search; the root's children have a table of their
// own.
#pragma once
#include "base/arena.h"
#include "base/buf.h"

typedef struct frit_trie_node {
    uint32_t child;   // the first child
    uint16_t n_children;
    unsigned char byte;
    int32_t id;   // of the piece that ends here, or -1
} frit_trie_node;

typedef struct frit_trie {
    frit_trie_node *nodes;
    size_t n_nodes;
    uint32_t first[256];   // child of the root, by byte; 0: none
} frit_trie;

typedef struct frit_trie_item {
    frit_str piece;
    int32_t id;
} frit_trie_item;

// Builds a trie. Sorts `items`, leaves out empty pieces, and uses the first id of equal pieces.
frit_status frit_trie_init(frit_trie *trie, frit_trie_item *items, size_t n, frit_arena *arena);

static inline uint32_t frit_trie_child(const frit_trie *trie, uint32_t node, unsigned char byte)
{
    if (node == 0) return trie->first[byte];
    const frit_trie_node *children = trie->nodes + trie->nodes[node].child;
    uint32_t low = 0, high = trie->nodes[node].n_children;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (children[middle].byte < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low < trie->nodes[node].n_children && children[low].byte == byte ? trie->nodes[node].child + low : 0;
}

// Finds the longest piece at the start of `text`. Returns its length, or 0.
size_t frit_trie_longest(const frit_trie *trie, frit_str text, int32_t *id);
