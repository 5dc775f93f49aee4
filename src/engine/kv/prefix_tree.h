// SPDX-License-Identifier: MIT
// engine/kv/prefix_tree.h: the tree of the prefix cache, for prefix_tree.c and prefix_cache.c.
//
//     root (adapters, salt) -- entry: tokens 0 ... 31 -- entry: tokens 32 ... 63 -- entry: tokens 64 ... 70
//                                                    \-- entry: 32 other tokens
//
// An entry owns one page of each group. Pages that no session references are idle, and are evicted when pages are
// needed. Entries of whole pages are found by a hash of parent and tokens, and then compared. The last page of a text
// may be partial, and a text may differ within a page: the session then continues in a copy of the page (kv.c).
//
// An evicted page may move to host memory (kv_host.c). The entry stays, and the page is loaded again when a session
// needs it.
//
// An entry that loses its page of full attention is dropped with its descendants. Pages of windows are evicted one by
// one: a session can continue at a position if all pages inside its windows are present. With recurrent states a
// session can continue only after an entry that has a snapshot.
#pragma once
#include "engine/kv/kv.h"

enum { FRIT_KV_MOST_SIBLINGS = 256 };   // compared when a partial page is looked for

static inline frit_kv_entry *frit_kv_entry_at(const frit_kv *kv, int32_t i)
{
    return &kv->prefix.entries[i];
}

int32_t frit_kv_full_group(const frit_kv *kv);   // the group of full attention; -1: none
// The first child of an entry, or of the root if `parent` is -1.
int32_t *frit_kv_first_child(const frit_kv *kv, frit_kv_root *root, int32_t parent);
bool frit_kv_entry_has_tokens(const frit_kv_entry *entry, const frit_token *tokens, int32_t n);   // as its first n
// Adds an entry for the next n tokens after `parent`, a page at most, without pages. Returns -1 if there is no room.
int32_t frit_kv_add_entry(frit_kv *kv, frit_kv_root *root, int32_t parent, const frit_token *tokens, int32_t n);
void frit_kv_drop_leaf(frit_kv *kv, int32_t i);   // an entry without children
// Drops an entry and its descendants. With `saves` their pages are written to disk first, if there is a folder for
// them.
void frit_kv_drop_entries(frit_kv *kv, int32_t top, bool saves);
// Evicts the least recently used leaf other than entry `except`. With `in_host`, only leaves whose pages are in host
// memory and that are not in use by the current lookup. Returns false if no leaf can be evicted.
bool frit_kv_evict_lru_leaf(frit_kv *kv, int32_t except, bool in_host);
