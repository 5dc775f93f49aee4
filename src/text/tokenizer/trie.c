// SPDX-License-Identifier: MIT
// Builds a trie from sorted pieces, level by level. A node is a range of pieces that share their first bytes.
//
//     pieces   a  ab  abc  b         queue of ranges   [a..abc] [b]  ->  [ab..abc]  ->  [abc]
#include "text/tokenizer/trie.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const frit_trie_item *x = a, *y = b;
    size_t n = x->piece.len < y->piece.len ? x->piece.len : y->piece.len;
    int order = n > 0 ? memcmp(x->piece.ptr, y->piece.ptr, n) : 0;
    if (order != 0) return order;
    if (x->piece.len != y->piece.len) return x->piece.len < y->piece.len ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

typedef struct range {   // a node's range of pieces, which share `depth` bytes
    uint32_t begin, end, depth;
} range;

// Adds the children of node `at`, whose range is items[r.begin, r.end).
static void add_children(frit_trie *trie, const frit_trie_item *items, range *ranges, uint32_t at)
{
    range r = ranges[at];
    uint32_t i = r.begin;
    while (i < r.end && items[i].piece.len == r.depth) i++;   // pieces that end here
    if (at > 0) trie->nodes[at].id = i > r.begin && r.depth > 0 ? items[r.begin].id : -1;
    trie->nodes[at].child = (uint32_t)trie->n_nodes;
    while (i < r.end) {
        unsigned char byte = (unsigned char)items[i].piece.ptr[r.depth];
        uint32_t begin = i;
        while (i < r.end && (unsigned char)items[i].piece.ptr[r.depth] == byte) i++;
        uint32_t child = (uint32_t)trie->n_nodes++;
        trie->nodes[child] = (frit_trie_node){.byte = byte, .id = -1};
        ranges[child] = (range){begin, i, r.depth + 1};
        trie->nodes[at].n_children++;
        if (at == 0) trie->first[byte] = child;
    }
}

frit_status frit_trie_init(frit_trie *trie, frit_trie_item *items, size_t n, frit_arena *arena)
{
    *trie = (frit_trie){.n_nodes = 1};
    qsort(items, n, sizeof *items, compare);
    size_t n_nodes = 1;   // each piece adds the bytes that it does not share with the piece before
    for (size_t i = 0; i < n; i++) {
        size_t shared = 0;
        const frit_str a = i > 0 ? items[i - 1].piece : (frit_str){"", 0}, b = items[i].piece;
        while (shared < a.len && shared < b.len && a.ptr[shared] == b.ptr[shared]) shared++;
        n_nodes += b.len - shared;
    }
    if (n_nodes > INT32_MAX || n > INT32_MAX)
        return frit_fail(FRIT_E_LIMIT, "the pieces have %zu bytes together, expected at most %d", n_nodes, INT32_MAX);
    trie->nodes = frit_arena_new(arena, frit_trie_node, n_nodes);
    range *ranges = malloc(n_nodes * sizeof *ranges);
    if (!trie->nodes || !ranges) {
        free(ranges);
        return frit_fail_memory(n_nodes * sizeof *trie->nodes, "the trie of pieces");
    }
    ranges[0] = (range){0, (uint32_t)n, 0};
    for (uint32_t at = 0; at < trie->n_nodes; at++) add_children(trie, items, ranges, at);
    free(ranges);
    return FRIT_OK;
}

size_t frit_trie_longest(const frit_trie *trie, frit_str text, int32_t *id)
{
    size_t best = 0;
    uint32_t node = 0;
    for (size_t i = 0; i < text.len; i++) {
        node = frit_trie_child(trie, node, (unsigned char)text.ptr[i]);
        if (node == 0) break;
        if (trie->nodes[node].id < 0) continue;
        best = i + 1;
        *id = trie->nodes[node].id;
    }
    return best;
}
