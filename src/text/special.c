// SPDX-License-Identifier: MIT
// The trie of special tokens, and the search in it.
#include "text/special.h"

// The child of `parent` (0: the root) with this byte, made if it is absent.
static int32_t grow(frit_special *special, int32_t parent, unsigned char byte)
{
    int32_t *link = parent == 0 ? &special->first[byte] : &special->nodes[parent].child;
    while (*link != 0 && special->nodes[*link].byte != byte) link = &special->nodes[*link].next;
    if (*link == 0) {
        *link = special->n_nodes++;
        special->nodes[*link] = (frit_special_node){.id = -1, .byte = byte};
    }
    return *link;
}

frit_status frit_special_init(frit_special *special, const frit_vocab *vocab, frit_arena *arena)
{
    *special = (frit_special){.vocab = vocab, .n_nodes = 1};
    size_t n_bytes = 1;
    for (int32_t i = 0; i < vocab->n_specials; i++) n_bytes += vocab->entries[vocab->specials[i]].piece.len;
    if (n_bytes > INT32_MAX)
        return frit_fail(FRIT_E_FORMAT, "the special tokens have %zu bytes together, at most %d are possible", n_bytes,
                         INT32_MAX);
    special->nodes = frit_arena_new(arena, frit_special_node, n_bytes);
    if (!special->nodes) return frit_fail_memory(n_bytes * sizeof *special->nodes, "the index of special tokens");
    for (int32_t i = 0; i < vocab->n_specials; i++) {
        frit_str piece = vocab->entries[vocab->specials[i]].piece;
        int32_t node = 0;
        for (size_t k = 0; k < piece.len; k++) node = grow(special, node, (unsigned char)piece.ptr[k]);
        if (node != 0 && special->nodes[node].id < 0) special->nodes[node].id = vocab->specials[i];
    }
    return FRIT_OK;
}

static bool wanted(const frit_special *special, frit_token id, bool parse_control)
{
    return id >= 0 && (parse_control || special->vocab->entries[id].kind == FRIT_TOKEN_USER);
}

// The longest wanted token that begins at text[from].
static frit_token longest_at(const frit_special *special, frit_str text, size_t from, bool parse_control, size_t *end)
{
    frit_token best = -1;
    int32_t node = special->first[(unsigned char)text.ptr[from]];
    for (size_t i = from + 1; node != 0; i++) {
        if (wanted(special, special->nodes[node].id, parse_control)) {
            best = special->nodes[node].id;
            *end = i;
        }
        if (i == text.len) break;
        unsigned char byte = (unsigned char)text.ptr[i];
        node = special->nodes[node].child;
        while (node != 0 && special->nodes[node].byte != byte) node = special->nodes[node].next;
    }
    return best;
}

bool frit_special_find(const frit_special *special, frit_str text, size_t from, bool parse_control,
                       frit_special_match *match)
{
    for (size_t i = from; i < text.len; i++) {
        if (special->first[(unsigned char)text.ptr[i]] == 0) continue;
        size_t end = 0;
        frit_token id = longest_at(special, text, i, parse_control, &end);
        if (id < 0) continue;
        *match = (frit_special_match){i, end, id};
        return true;
    }
    return false;
}
