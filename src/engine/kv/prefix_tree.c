// SPDX-License-Identifier: MIT
// The tree of the prefix cache: roots, and entries of one page of tokens each.
#include "engine/kv/prefix_tree.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ENTRIES = 1 << 16 };   // for models without full attention: their number of pages sets no bound

// ------------------------------------------------------------------------------- memory

int32_t frit_kv_full_group(const frit_kv *kv)
{
    for (int32_t g = 0; g < kv->n_groups; g++)
        if (kv->groups[g].window == 0 && !kv->groups[g].of_source) return g;
    return -1;
}

frit_status frit_kv_prefix_init(frit_kv *kv, const frit_kv_room *room)
{
    frit_kv_prefix *prefix = &kv->prefix;
    const int32_t full = frit_kv_full_group(kv);
    int64_t n = full >= 0 ? kv->groups[full].n_pages : (int64_t)room->n_sessions * frit_kv_pages_of(room->n_ctx);
    if (full < 0 && n > MOST_ENTRIES) n = MOST_ENTRIES;
    n += kv->host.n_pages;
    if (n > INT32_MAX) return frit_fail_memory(SIZE_MAX, "the prefix cache");
    prefix->n_entries = (int32_t)n;
    prefix->n_buckets = 1;
    while (prefix->n_buckets < prefix->n_entries && prefix->n_buckets < 1 << 30) prefix->n_buckets *= 2;
    prefix->entries = calloc((size_t)prefix->n_entries + 1, sizeof *prefix->entries);
    prefix->buckets = calloc((size_t)prefix->n_buckets, sizeof *prefix->buckets);
    if (!prefix->entries || !prefix->buckets)
        return frit_fail_memory((size_t)n * sizeof *prefix->entries, "the prefix cache");
    for (int32_t i = 0; i < prefix->n_buckets; i++) prefix->buckets[i] = -1;
    prefix->first_free = -1;
    prefix->on = true;
    return FRIT_OK;
}

void frit_kv_prefix_deinit(frit_kv *kv)
{
    frit_kv_prefix *prefix = &kv->prefix;
    for (frit_kv_root *root = prefix->roots, *next; root; root = next) {
        next = root->next;
        free(root);
    }
    free(prefix->entries);
    free(prefix->buckets);
    *prefix = (frit_kv_prefix){0};
}

// ------------------------------------------------------------------------------- roots

frit_status frit_kv_root_get(frit_kv *kv, const void *key, size_t n_bytes, frit_kv_root **out)
{
    for (frit_kv_root *root = kv->prefix.roots; root; root = root->next)
        if (root->n_bytes == n_bytes && memcmp(root->key, key, n_bytes) == 0) {
            frit_kv_root_ref(root);
            *out = root;
            return FRIT_OK;
        }
    frit_kv_root *root = malloc(sizeof *root + n_bytes);
    if (!root) return frit_fail_memory(sizeof *root + n_bytes, "the prefix cache");
    *root = (frit_kv_root){
        .next = kv->prefix.roots, .n_refs = 1, .child = -1, .stamp = ++kv->prefix.clock, .n_bytes = n_bytes};
    memcpy(root->key, key, n_bytes);
    kv->prefix.roots = root;
    *out = root;
    return FRIT_OK;
}

void frit_kv_root_ref(frit_kv_root *root)
{
    root->n_refs++;
}

void frit_kv_root_unref(frit_kv *kv, frit_kv_root *root)
{
    if (!root || --root->n_refs > 0) return;
    frit_kv_root **at = &kv->prefix.roots;
    while (*at != root) at = &(*at)->next;
    *at = root->next;
    free(root);
}

// ------------------------------------------------------------------------------- entries

static uint64_t hash_of(uint64_t parent, const frit_token *tokens)
{
    uint64_t h = parent * UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < FRIT_PAGE_TOKENS; i++) {
        h = (h ^ (uint32_t)tokens[i]) * UINT64_C(0xff51afd7ed558ccd);
        h ^= h >> 32;
    }
    return h;
}

static int32_t bucket_of(const frit_kv *kv, const frit_kv_root *root, int32_t parent, const frit_token *tokens)
{
    const uint64_t stamp = parent >= 0 ? frit_kv_entry_at(kv, parent)->stamp : root->stamp;
    return (int32_t)(hash_of(stamp, tokens) & (uint64_t)(kv->prefix.n_buckets - 1));
}

bool frit_kv_entry_has_tokens(const frit_kv_entry *entry, const frit_token *tokens, int32_t n)
{
    return memcmp(entry->tokens, tokens, (size_t)n * sizeof *tokens) == 0;
}

int32_t frit_kv_find_page(const frit_kv *kv, const frit_kv_root *root, int32_t parent, const frit_token *tokens)
{
    int32_t i = kv->prefix.buckets[bucket_of(kv, root, parent, tokens)];
    for (; i >= 0; i = frit_kv_entry_at(kv, i)->link) {
        const frit_kv_entry *entry = frit_kv_entry_at(kv, i);
        if (entry->root == root && entry->parent == parent && frit_kv_entry_has_tokens(entry, tokens, FRIT_PAGE_TOKENS))
            break;
    }
    return i;
}

int32_t frit_kv_find_pages(const frit_kv *kv, const frit_kv_text *text, int32_t *entry)
{
    int32_t n = 0, next;
    *entry = -1;
    for (; (n + 1) * FRIT_PAGE_TOKENS <= text->n; n++, *entry = next) {
        next = frit_kv_find_page(kv, text->root, *entry, text->tokens + (size_t)n * FRIT_PAGE_TOKENS);
        if (next < 0) break;
    }
    return n;
}

int32_t *frit_kv_first_child(const frit_kv *kv, frit_kv_root *root, int32_t parent)
{
    return parent >= 0 ? &frit_kv_entry_at(kv, parent)->child : &root->child;
}

static void unlink_siblings(frit_kv *kv, const frit_kv_entry *entry)
{
    if (entry->before >= 0)
        frit_kv_entry_at(kv, entry->before)->after = entry->after;
    else
        *frit_kv_first_child(kv, entry->root, entry->parent) = entry->after;
    if (entry->after >= 0) frit_kv_entry_at(kv, entry->after)->before = entry->before;
}

static void unlink_bucket(frit_kv *kv, int32_t i)
{
    if (frit_kv_entry_at(kv, i)->bucket < 0) return;
    int32_t *at = &kv->prefix.buckets[frit_kv_entry_at(kv, i)->bucket];
    while (*at != i) at = &frit_kv_entry_at(kv, *at)->link;
    *at = frit_kv_entry_at(kv, i)->link;
}

void frit_kv_drop_leaf(frit_kv *kv, int32_t i)
{
    frit_kv_entry *entry = frit_kv_entry_at(kv, i);
    unlink_siblings(kv, entry);
    unlink_bucket(kv, i);
    for (int32_t g = 0; g < kv->n_groups; g++) {
        if (entry->pages[g] >= 0) frit_kv_disown_page(&kv->groups[g], entry->pages[g]);
        if (entry->in_host[g]) frit_kv_host_drop(kv, entry, g);
    }
    if (entry->snapshot >= 0) kv->snapshots[entry->snapshot].owner = -1;
    frit_kv_root_unref(kv, entry->root);
    *entry = (frit_kv_entry){.link = kv->prefix.first_free};
    kv->prefix.first_free = i;
}

void frit_kv_drop_entries(frit_kv *kv, int32_t top, bool saves)
{
    for (int32_t at = top;;) {
        while (frit_kv_entry_at(kv, at)->child >= 0) at = frit_kv_entry_at(kv, at)->child;
        const int32_t parent = frit_kv_entry_at(kv, at)->parent;
        if (saves) frit_kv_disk_save(kv, at);
        frit_kv_drop_leaf(kv, at);
        if (at == top) return;
        at = parent;
    }
}

bool frit_kv_evict_lru_leaf(frit_kv *kv, int32_t except, bool in_host)
{
    int32_t oldest = -1;
    for (int32_t i = 0; i < kv->prefix.n_used; i++) {
        const frit_kv_entry *entry = frit_kv_entry_at(kv, i);
        if (entry->stamp == 0 || entry->child >= 0 || i == except) continue;
        if (in_host && (entry->host_page < 0 || entry->used == kv->prefix.clock)) continue;
        if (oldest < 0 || entry->used < frit_kv_entry_at(kv, oldest)->used) oldest = i;
    }
    if (oldest >= 0) frit_kv_drop_entries(kv, oldest, true);
    return oldest >= 0;
}

// Returns an unused entry. Evicts one if all are in use, but never `parent`. -1: no entry is free.
static int32_t alloc_entry(frit_kv *kv, int32_t parent)
{
    frit_kv_prefix *prefix = &kv->prefix;
    if (prefix->first_free < 0 && prefix->n_used == prefix->n_entries && !frit_kv_evict_lru_leaf(kv, parent, false))
        return -1;
    const int32_t i = prefix->first_free;
    if (i < 0) return prefix->n_used++;
    prefix->first_free = frit_kv_entry_at(kv, i)->link;
    return i;
}

int32_t frit_kv_add_entry(frit_kv *kv, frit_kv_root *root, int32_t parent, const frit_token *tokens, int32_t n)
{
    frit_kv_root_ref(root);
    const int32_t i = alloc_entry(kv, parent);
    if (i < 0) {
        frit_kv_root_unref(kv, root);
        return -1;
    }
    int32_t *child = frit_kv_first_child(kv, root, parent);
    frit_kv_entry *entry = frit_kv_entry_at(kv, i);
    *entry = (frit_kv_entry){.root = root,
                             .parent = parent,
                             .child = -1,
                             .before = -1,
                             .after = *child,
                             .bucket = -1,
                             .host_page = -1,
                             .snapshot = -1,
                             .stamp = ++kv->prefix.clock,
                             .used = kv->prefix.clock,
                             .n_tokens = n < FRIT_PAGE_TOKENS ? n : FRIT_PAGE_TOKENS};
    memcpy(entry->tokens, tokens, (size_t)entry->n_tokens * sizeof *tokens);
    for (int32_t g = 0; g < FRIT_MAX_GROUPS; g++) entry->pages[g] = -1;
    if (*child >= 0) frit_kv_entry_at(kv, *child)->before = i;
    *child = i;
    if (entry->n_tokens < FRIT_PAGE_TOKENS) return i;
    entry->bucket = bucket_of(kv, root, parent, entry->tokens);
    entry->link = kv->prefix.buckets[entry->bucket];
    kv->prefix.buckets[entry->bucket] = i;
    frit_kv_disk_name(kv, i);
    return i;
}
