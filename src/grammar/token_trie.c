// SPDX-License-Identifier: MIT
// Sorts tokens by text and builds the trie in one pass.
#include "grammar/token_lists.h"

#include <stdlib.h>

typedef struct entry {
    frit_str piece;
    int32_t token;
} entry;

enum { LONGEST_PIECE = 4096 };   // longer tokens are never allowed

static int compare(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    const size_t n = x->piece.len < y->piece.len ? x->piece.len : y->piece.len;
    const int order = memcmp(x->piece.ptr, y->piece.ptr, n);
    if (order != 0) return order;
    if (x->piece.len != y->piece.len) return x->piece.len < y->piece.len ? -1 : 1;
    return x->token < y->token ? -1 : x->token > y->token;
}

static size_t common(frit_str a, frit_str b)
{
    size_t n = 0;
    while (n < a.len && n < b.len && a.ptr[n] == b.ptr[n]) n++;
    return n;
}

static size_t count_nodes(const entry *entries, int32_t n)
{
    size_t nodes = 1;
    for (int32_t i = 0; i < n; i++)
        nodes += entries[i].piece.len - (i > 0 ? common(entries[i - 1].piece, entries[i].piece) : 0);
    return nodes;
}

// Reads a byte of UTF-8. `state` is 0 between characters, otherwise it encodes the number of missing bytes and the
// allowed range of the next byte. Returns the next state, or -1.
static int utf8_step(int state, unsigned char b)
{
    enum { AFTER_E0 = 4, AFTER_ED, AFTER_F0, AFTER_F4 };
    static const struct {
        unsigned char low, high;
        signed char next;
    } after[] = {{0, 0, 0},       {0x80, 0xbf, 0}, {0x80, 0xbf, 1}, {0x80, 0xbf, 2},
                 {0xa0, 0xbf, 1}, {0x80, 0x9f, 1}, {0x90, 0xbf, 2}, {0x80, 0x8f, 2}};
    if (state > 0) return b >= after[state].low && b <= after[state].high ? after[state].next : -1;
    if (b < 0x80) return 0;
    if (b >= 0xc2 && b <= 0xdf) return 1;
    if (b >= 0xe0 && b <= 0xef) return b == 0xe0 ? AFTER_E0 : b == 0xed ? AFTER_ED : 2;
    return b == 0xf0 ? AFTER_F0 : b == 0xf4 ? AFTER_F4 : b > 0xf0 && b < 0xf4 ? 3 : -1;
}

// Marks the nodes whose texts begin UTF-8 texts. `at` is scratch for the state after each node.
static void find_utf8(frit_token_trie *t, signed char *at)
{
    at[0] = 0;
    for (uint32_t i = 0; i < t->n_nodes; i++)   // children come after their parents
        for (uint32_t k = i + 1; k < t->nodes[i].end; k = t->nodes[k].end) {
            at[k] = at[i] < 0 ? -1 : (signed char)utf8_step(at[i], t->nodes[k].byte);
            t->nodes[k].is_utf8 = at[i] == 0;
        }
    for (uint32_t i = t->n_nodes - 1; i > 0; i--) {
        bool good = at[i] >= 0;
        for (uint32_t k = i + 1; k < t->nodes[i].end; k = t->nodes[k].end) good &= at[k] >= 0;
        at[i] = good ? at[i] : -1;
        t->nodes[i].is_utf8 &= good;
    }
}

// Builds the nodes. path: the node of each depth on the way to the last node.
static void build(frit_token_trie *t, const entry *entries, uint32_t *path)
{
    size_t depth = 0;
    t->n_nodes = 1;
    path[0] = 0;
    for (int32_t i = 0; i < t->n_tokens; i++) {
        const frit_str piece = entries[i].piece;
        const size_t same = i > 0 ? common(entries[i - 1].piece, piece) : 0;
        for (; depth > same; depth--) t->nodes[path[depth]].end = t->n_nodes;
        for (; depth < piece.len; depth++) {
            const uint32_t at = path[depth + 1] = t->n_nodes++;
            t->nodes[at] = (frit_token_node){
                .first_token = (uint32_t)i, .depth = (uint16_t)(depth + 1), .byte = (unsigned char)piece.ptr[depth]};
        }
        if (piece.len > t->max_depth) t->max_depth = (uint16_t)piece.len;
        t->tokens[i] = entries[i].token;
    }
    for (; depth > 0; depth--) t->nodes[path[depth]].end = t->n_nodes;
    t->nodes[0].end = t->n_nodes;
    t->nodes[t->n_nodes] = (frit_token_node){.end = t->n_nodes, .first_token = (uint32_t)t->n_tokens};
    for (uint32_t i = t->n_nodes - 1; i > 0; i--) {   // children come after their parents
        t->nodes[i].classes |= (uint64_t)1 << frit_byte_class(t->nodes[i].byte);
        t->nodes[i].height = 1;
        for (uint32_t k = i + 1; k < t->nodes[i].end; k = t->nodes[k].end) {
            t->nodes[i].classes |= t->nodes[k].classes;
            if (t->nodes[i].height <= t->nodes[k].height) t->nodes[i].height = (uint16_t)(t->nodes[k].height + 1);
        }
    }
}

static frit_status fill(frit_token_trie *t, const frit_str *pieces, entry *entries)
{
    for (int32_t i = 0; i < t->n_vocab; i++)
        if (pieces[i].len > 0 && pieces[i].len <= LONGEST_PIECE) entries[t->n_tokens++] = (entry){pieces[i], i};
    if (t->n_tokens > 0) qsort(entries, (size_t)t->n_tokens, sizeof *entries, compare);
    const size_t n_nodes = count_nodes(entries, t->n_tokens);
    if (n_nodes > UINT32_MAX / 4) return frit_fail(FRIT_E_LIMIT, "the vocabulary has %zu bytes of text", n_nodes);
    t->nodes = calloc(n_nodes + 1, sizeof *t->nodes);
    t->tokens = malloc(((size_t)t->n_tokens + 1) * sizeof *t->tokens);
    uint32_t *path = malloc((LONGEST_PIECE + 2) * sizeof *path);
    signed char *states = malloc(n_nodes + 1);
    if (!t->nodes || !t->tokens || !path || !states) {
        free(path);
        free(states);
        return frit_fail_memory(n_nodes * sizeof *t->nodes, "the vocabulary as a trie");
    }
    build(t, entries, path);
    find_utf8(t, states);
    free(path);
    free(states);
    return FRIT_OK;
}

frit_status frit_token_trie_new(frit_token_trie **out, const frit_str *pieces, int32_t n_vocab, const frit_token *ends,
                                int32_t n_ends)
{
    *out = NULL;
    frit_token_trie *t = calloc(1, sizeof *t);
    entry *entries = malloc(((size_t)n_vocab + 1) * sizeof *entries);
    frit_token *own_ends = malloc(((size_t)n_ends + 1) * sizeof *own_ends);
    frit_status status = FRIT_OK;
    if (!t || !entries || !own_ends) {
        free(own_ends);
        status = frit_fail_memory((size_t)n_vocab * sizeof *entries, "the vocabulary as a trie");
    } else {
        if (n_ends > 0) memcpy(own_ends, ends, (size_t)n_ends * sizeof *ends);
        t->ends = own_ends;
        t->n_ends = n_ends;
        t->n_vocab = n_vocab;
        t->named = calloc((size_t)n_vocab / 32 + 1, sizeof *t->named);
        status = t->named ? frit_token_lists_new(&t->lists) : frit_fail_memory((size_t)n_vocab / 8, "a set of tokens");
        if (status == FRIT_OK) status = fill(t, pieces, entries);
        for (int32_t i = 0; status == FRIT_OK && i < t->n_tokens; i++) frit_token_trie_name(t, t->tokens[i]);
    }
    free(entries);
    if (status == FRIT_OK)
        *out = t;
    else
        frit_token_trie_free(t);
    return status;
}

void frit_token_trie_name(frit_token_trie *t, frit_token token)
{
    t->named[token / 32] |= 1u << (token % 32);
}

void frit_token_trie_free(frit_token_trie *t)
{
    if (!t) return;
    frit_token_lists_free(t->lists);
    free(t->nodes);
    free(t->tokens);
    free(t->ends);
    free(t->named);
    free(t);
}
