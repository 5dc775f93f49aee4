// SPDX-License-Identifier: MIT
// The prefix cache: which pages hold the beginnings of texts that sessions have run.
//
//     root (adapters, salt) -- entry: tokens 0 ... 31 -- entry: tokens 32 ... 63 -- entry: tokens 64 ... 70
//                                                    \-- entry: 32 other tokens
//
// An entry knows a page of each group, and stays when no session holds these pages any more: they are idle then, and
// give way when pages are needed. Entries of whole pages are found by a hash of parent and tokens, and compared. The
// last page of a text may be part full, and a text may differ within a page: then the session goes on in a copy of it
// (kv.c).
//
// A page that gives way may go to the host's memory, if there is room (kv_host.c): the entry stays, and its page comes
// back when a session takes it.
//
// An entry without its page of full attention is dropped, with all that follow it. Pages of windows go one by one: a
// session can go on where those that its next row looks back at are all there. Where layers have a state, it can go on
// where an entry has a snapshot: one that a session has left at the beginning of a page, or that of a text's end.
#include "engine/kv/kv.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_ENTRIES = 1 << 16,   // of models without full attention, whose pages do not bound them
    MOST_SIBLINGS = 256       // that are compared for the part of a page
};

static frit_kv_entry *entry_at(const frit_kv *kv, int32_t i)
{
    return &kv->prefix.entries[i];
}

// ------------------------------------------------------------------------------- memory

// The group of full attention, or -1.
static int32_t full_group(const frit_kv *kv)
{
    for (int32_t g = 0; g < kv->n_groups; g++)
        if (kv->groups[g].window == 0 && !kv->groups[g].of_source) return g;
    return -1;
}

frit_status frit_kv_prefix_init(frit_kv *kv, const frit_kv_room *room)
{
    frit_kv_prefix *prefix = &kv->prefix;
    const int32_t full = full_group(kv);
    int64_t n = full >= 0 ? kv->groups[full].n_pages : (int64_t)room->n_sessions * frit_kv_pages_of(room->n_ctx);
    if (full < 0 && n > MOST_ENTRIES) n = MOST_ENTRIES;
    n += kv->host.n_slots;
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
            frit_kv_root_hold(root);
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

void frit_kv_root_hold(frit_kv_root *root)
{
    root->n_refs++;
}

void frit_kv_root_give(frit_kv *kv, frit_kv_root *root)
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
    const uint64_t stamp = parent >= 0 ? entry_at(kv, parent)->stamp : root->stamp;
    return (int32_t)(hash_of(stamp, tokens) & (uint64_t)(kv->prefix.n_buckets - 1));
}

static bool has_tokens(const frit_kv_entry *entry, const frit_token *tokens, int32_t n)
{
    return memcmp(entry->tokens, tokens, (size_t)n * sizeof *tokens) == 0;
}

// The entry of a whole page, or -1.
int32_t frit_kv_find_page(const frit_kv *kv, const frit_kv_root *root, int32_t parent, const frit_token *tokens)
{
    int32_t i = kv->prefix.buckets[bucket_of(kv, root, parent, tokens)];
    for (; i >= 0; i = entry_at(kv, i)->link) {
        const frit_kv_entry *entry = entry_at(kv, i);
        if (entry->root == root && entry->parent == parent && has_tokens(entry, tokens, FRIT_PAGE_TOKENS)) break;
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

static int32_t *first_child(const frit_kv *kv, frit_kv_root *root, int32_t parent)
{
    return parent >= 0 ? &entry_at(kv, parent)->child : &root->child;
}

static void unlink_siblings(frit_kv *kv, const frit_kv_entry *entry)
{
    if (entry->before >= 0)
        entry_at(kv, entry->before)->after = entry->after;
    else
        *first_child(kv, entry->root, entry->parent) = entry->after;
    if (entry->after >= 0) entry_at(kv, entry->after)->before = entry->before;
}

static void unlink_bucket(frit_kv *kv, int32_t i)
{
    if (entry_at(kv, i)->bucket < 0) return;
    int32_t *at = &kv->prefix.buckets[entry_at(kv, i)->bucket];
    while (*at != i) at = &entry_at(kv, *at)->link;
    *at = entry_at(kv, i)->link;
}

// One without children.
static void drop_leaf(frit_kv *kv, int32_t i)
{
    frit_kv_entry *entry = entry_at(kv, i);
    unlink_siblings(kv, entry);
    unlink_bucket(kv, i);
    for (int32_t g = 0; g < kv->n_groups; g++) {
        if (entry->pages[g] >= 0) frit_kv_disown_page(&kv->groups[g], entry->pages[g]);
        if (entry->in_host[g]) frit_kv_host_drop(kv, entry, g);
    }
    if (entry->snapshot >= 0) kv->snapshots[entry->snapshot].owner = -1;
    frit_kv_root_give(kv, entry->root);
    *entry = (frit_kv_entry){.link = kv->prefix.first_free};
    kv->prefix.first_free = i;
}

// With all that follow it; these may be kept on disk if that `saves`.
static void drop(frit_kv *kv, int32_t top, bool saves)
{
    for (int32_t at = top;;) {
        while (entry_at(kv, at)->child >= 0) at = entry_at(kv, at)->child;
        const int32_t parent = entry_at(kv, at)->parent;
        if (saves) frit_kv_disk_save(kv, at);
        drop_leaf(kv, at);
        if (at == top) return;
        at = parent;
    }
}

void frit_kv_forget_page(frit_kv *kv, int32_t g, int32_t page)
{
    const int32_t owner = kv->groups[g].owners[page];
    if (kv->groups[g].window == 0) {
        drop(kv, owner, false);
        return;
    }
    entry_at(kv, owner)->pages[g] = -1;
    frit_kv_disown_page(&kv->groups[g], page);
}

// The one without children that was used least lately; of those in the host's memory, if that is what lacks room.
static bool drop_oldest(frit_kv *kv, int32_t but, bool in_host)
{
    int32_t oldest = -1;
    for (int32_t i = 0; i < kv->prefix.n_used; i++) {
        const frit_kv_entry *entry = entry_at(kv, i);
        if (entry->stamp == 0 || entry->child >= 0 || i == but) continue;
        if (in_host && (entry->slot < 0 || entry->used == kv->prefix.clock)) continue;   // which is being taken
        if (oldest < 0 || entry->used < entry_at(kv, oldest)->used) oldest = i;
    }
    if (oldest >= 0) drop(kv, oldest, true);
    return oldest >= 0;
}

void frit_kv_reclaim_page(frit_kv *kv, int32_t g, int32_t page)
{
    const int32_t owner = kv->groups[g].owners[page];
    frit_kv_entry *entry = entry_at(kv, owner);
    const bool has_room =
        entry->slot >= 0 || kv->host.n_free > 0 || (kv->host.n_slots > 0 && drop_oldest(kv, owner, true));
    if (!has_room || !frit_kv_host_save(kv, entry, g)) {
        if (kv->groups[g].window == 0)
            drop(kv, owner, true);
        else
            frit_kv_forget_page(kv, g, page);
        return;
    }
    entry->pages[g] = -1;
    frit_kv_disown_page(&kv->groups[g], page);
}

static int32_t take_entry(frit_kv *kv, int32_t parent)
{
    frit_kv_prefix *prefix = &kv->prefix;
    if (prefix->first_free < 0 && prefix->n_used == prefix->n_entries && !drop_oldest(kv, parent, false)) return -1;
    const int32_t i = prefix->first_free;
    if (i < 0) return prefix->n_used++;
    prefix->first_free = entry_at(kv, i)->link;
    return i;
}

// ------------------------------------------------------------------------------- finding

// A place in a text that the tree has: after n_full whole pages, and how many entries up to there have the pages of
// each window.
typedef struct walk {
    const frit_kv *kv;
    const frit_kv_text *text;
    int32_t entry, n_full;
    int32_t runs[FRIT_MAX_GROUPS];
} walk;

static bool has_group(const frit_kv *kv, int32_t i, int32_t g)
{
    return entry_at(kv, i)->pages[g] >= 0 || entry_at(kv, i)->in_host[g];
}

// Whether the next row after n positions finds all that it looks back at: in the pages that the walk has passed, and in
// those of `part`.
static bool has_windows(const walk *w, int32_t n, int32_t part)
{
    for (int32_t g = 0; g < w->kv->n_groups; g++) {
        const int32_t window = w->kv->groups[g].window;
        if (window == 0) continue;
        if (w->runs[g] < w->n_full - frit_kv_first_position(window, n) / FRIT_PAGE_TOKENS) return false;
        if (part >= 0 && !has_group(w->kv, part, g)) return false;
    }
    return true;
}

static bool has_states(const walk *w, int32_t entry)
{
    return w->kv->state_bytes == 0 || entry_at(w->kv, entry)->snapshot >= 0;
}

static void step_into(walk *w, int32_t entry)
{
    w->entry = entry;
    w->n_full++;
    for (int32_t g = 0; g < w->kv->n_groups; g++) w->runs[g] = has_group(w->kv, entry, g) ? w->runs[g] + 1 : 0;
}

static int32_t n_common(const frit_kv_entry *entry, const frit_token *tokens, int32_t n)
{
    int32_t i = 0;
    if (n > entry->n_tokens) n = entry->n_tokens;
    while (i < n && entry->tokens[i] == tokens[i]) i++;
    return i;
}

// A page that begins as the text goes on. States are those after all of its tokens.
static void look_into_pages(const walk *w, frit_kv_found *best)
{
    const frit_kv *kv = w->kv;
    const int32_t begin = w->n_full * FRIT_PAGE_TOKENS;
    int32_t i = *first_child(kv, w->text->root, w->entry);
    for (int k = 0; i >= 0 && k < MOST_SIBLINGS; k++, i = entry_at(kv, i)->after) {
        const frit_kv_entry *entry = entry_at(kv, i);
        int32_t n = n_common(entry, w->text->tokens + begin, w->text->n - begin);
        if (n == FRIT_PAGE_TOKENS || (kv->state_bytes > 0 && n < entry->n_tokens)) continue;
        if (n == 0 || begin + n <= best->n || !has_states(w, i) || !has_windows(w, begin + n, i)) continue;
        *best = (frit_kv_found){.n = begin + n, .n_full = w->n_full, .entry = w->entry, .part = i};
    }
}

frit_kv_found frit_kv_find(const frit_kv *kv, const frit_kv_text *text)
{
    walk w = {.kv = kv, .text = text, .entry = -1};
    frit_kv_found best = {.entry = -1, .part = -1};
    for (int32_t end = FRIT_PAGE_TOKENS;; end += FRIT_PAGE_TOKENS) {
        const int32_t next =
            end <= text->n ? frit_kv_find_page(kv, text->root, w.entry, text->tokens + end - FRIT_PAGE_TOKENS) : -1;
        if (next < 0 || kv->state_bytes > 0) look_into_pages(&w, &best);
        if (next < 0) return best;
        step_into(&w, next);
        if (has_states(&w, next) && has_windows(&w, end, -1))
            best = (frit_kv_found){.n = end, .n_full = w.n_full, .entry = next, .part = -1};
    }
}

int32_t frit_kv_found_held(const frit_kv *kv, const frit_kv_found *found)
{
    const int32_t g = full_group(kv);
    int32_t n = 0;
    for (int32_t i = found->entry; g >= 0 && i >= 0; i = entry_at(kv, i)->parent)
        n += entry_at(kv, i)->pages[g] >= 0 && kv->groups[g].refs[entry_at(kv, i)->pages[g]] > 0;
    return n;
}

// ------------------------------------------------------------------------------- taking

// The pages that are on the device; -1 for the others. Returns how many these are.
static int32_t take_table(frit_kv *kv, int32_t g, frit_kv_table *table, const frit_kv_found *found)
{
    frit_kv_group *group = &kv->groups[g];
    int32_t i = found->part >= 0 ? found->part : found->entry, n_missing = 0;
    table->begin = frit_kv_first_position(group->window, found->n) / FRIT_PAGE_TOKENS;
    table->end = frit_kv_pages_of(found->n);
    for (int32_t p = table->end - 1; p >= table->begin; p--, i = entry_at(kv, i)->parent) {
        table->pages[p] = entry_at(kv, i)->pages[g];
        n_missing += table->pages[p] < 0;
        if (table->pages[p] >= 0) frit_kv_hold_page(group, table->pages[p]);
    }
    return n_missing;
}

// Those that are in the host's memory.
static frit_status load_table(frit_kv *kv, int32_t g, frit_kv_table *table, const frit_kv_found *found)
{
    frit_kv_group *group = &kv->groups[g];
    int32_t i = found->part >= 0 ? found->part : found->entry;
    for (int32_t p = table->end - 1; p >= table->begin; p--, i = entry_at(kv, i)->parent) {
        frit_kv_entry *entry = entry_at(kv, i);
        if (table->pages[p] >= 0) continue;
        table->pages[p] = frit_kv_take_page(kv, g);
        FRIT_TRY(frit_kv_host_load(kv, entry, g, table->pages[p]));
        entry->pages[g] = table->pages[p];
        group->owners[entry->pages[g]] = i;
    }
    return FRIT_OK;
}

static void give_table(frit_kv_group *group, frit_kv_table *table)
{
    for (; table->end > table->begin; table->end--)
        if (table->pages[table->end - 1] >= 0) frit_kv_give_page(group, table->pages[table->end - 1]);
    table->begin = table->end = 0;
}

// First all that are there, so that none of them gives way to one that comes back.
static frit_status take_tables(frit_kv *kv, frit_kv_map *map, const frit_kv_found *found)
{
    frit_status status = FRIT_OK;
    for (int32_t g = 0; g < kv->n_groups; g++)
        if (!kv->groups[g].of_source && take_table(kv, g, &map->tables[g], found) > frit_kv_available(&kv->groups[g]))
            status = frit_fail(FRIT_E_LIMIT, "the cache has no room for pages in the host's memory");
    for (int32_t g = 0; g < kv->n_groups && status == FRIT_OK; g++)
        if (!kv->groups[g].of_source) status = load_table(kv, g, &map->tables[g], found);
    for (int32_t g = 0; g < kv->n_groups && status != FRIT_OK; g++)
        if (!kv->groups[g].of_source) give_table(&kv->groups[g], &map->tables[g]);
    return status;
}

static void set_chain(const frit_kv *kv, frit_kv_map *map, int32_t entry, int32_t n)
{
    map->chain = (frit_kv_chain){.n = n, .entry = entry, .stamp = n > 0 ? entry_at(kv, entry)->stamp : 0};
}

frit_status frit_kv_take_found(frit_kv *kv, frit_kv_map *map, const frit_kv_found *found)
{
    const int32_t last = found->part >= 0 ? found->part : found->entry;
    const bool has_states = kv->state_bytes > 0;
    kv->prefix.clock++;
    for (int32_t i = last; i >= 0; i = entry_at(kv, i)->parent) entry_at(kv, i)->used = kv->prefix.clock;
    if (has_states && kv->n_free_slots == 0) return frit_fail(FRIT_E_LIMIT, "the cache has no room for another state");
    const int32_t slot = has_states ? kv->free_slots[kv->n_free_slots - 1] : 0;
    if (has_states) FRIT_TRY(frit_kv_copy_states(kv, kv->snapshots[entry_at(kv, last)->snapshot].slot, slot));
    FRIT_TRY(take_tables(kv, map, found));
    map->slot = slot;
    kv->n_free_slots -= has_states;
    set_chain(kv, map, found->entry, found->n_full);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- keeping

static int32_t page_of(const frit_kv_map *map, int32_t g, int32_t p)
{
    const frit_kv_table *table = &map->tables[g];
    return p >= table->begin && p < table->end ? table->pages[p] : -1;
}

// What the entry lacks, of the map's pages. A page that both have of full attention need not be there twice.
static void merge_pages(frit_kv *kv, frit_kv_map *map, int32_t p, int32_t i)
{
    frit_kv_entry *entry = entry_at(kv, i);
    for (int32_t g = 0; g < kv->n_groups; g++) {
        frit_kv_group *group = &kv->groups[g];
        const int32_t page = group->of_source ? -1 : page_of(map, g, p);
        if (page < 0 || page == entry->pages[g]) continue;
        if (entry->pages[g] < 0 && group->owners[page] < 0) {
            entry->pages[g] = page;
            group->owners[page] = i;
            if (entry->in_host[g]) frit_kv_host_drop(kv, entry, g);
        } else if (entry->pages[g] >= 0 && group->window == 0 && entry->n_tokens == FRIT_PAGE_TOKENS) {
            frit_kv_hold_page(group, entry->pages[g]);
            frit_kv_give_page(group, page);
            map->tables[g].pages[p] = entry->pages[g];
        }
    }
}

// Whether the map's pages at p can be the entry's: of full attention there is one, and no other entry has it.
static bool has_page(const frit_kv *kv, const frit_kv_map *map, int32_t p)
{
    const int32_t g = full_group(kv), page = g >= 0 ? page_of(map, g, p) : 0;
    return g < 0 || (page >= 0 && kv->groups[g].owners[page] < 0);
}

// The next n tokens after a parent, without pages; -1: there is no room.
static int32_t add_tokens(frit_kv *kv, frit_kv_root *root, int32_t parent, const frit_token *tokens, int32_t n)
{
    frit_kv_root_hold(root);
    const int32_t i = take_entry(kv, parent);
    if (i < 0) {
        frit_kv_root_give(kv, root);
        return -1;
    }
    int32_t *child = first_child(kv, root, parent);
    frit_kv_entry *entry = entry_at(kv, i);
    *entry = (frit_kv_entry){.root = root,
                             .parent = parent,
                             .child = -1,
                             .before = -1,
                             .after = *child,
                             .bucket = -1,
                             .slot = -1,
                             .snapshot = -1,
                             .stamp = ++kv->prefix.clock,
                             .used = kv->prefix.clock,
                             .n_tokens = n < FRIT_PAGE_TOKENS ? n : FRIT_PAGE_TOKENS};
    memcpy(entry->tokens, tokens, (size_t)entry->n_tokens * sizeof *tokens);
    for (int32_t g = 0; g < FRIT_MAX_GROUPS; g++) entry->pages[g] = -1;
    if (*child >= 0) entry_at(kv, *child)->before = i;
    *child = i;
    if (entry->n_tokens < FRIT_PAGE_TOKENS) return i;
    entry->bucket = bucket_of(kv, root, parent, entry->tokens);
    entry->link = kv->prefix.buckets[entry->bucket];
    kv->prefix.buckets[entry->bucket] = i;
    frit_kv_disk_name(kv, i);
    return i;
}

static int32_t add_entry(frit_kv *kv, const frit_kv_map *map, const frit_kv_text *text, int32_t parent, int32_t p)
{
    const int32_t begin = p * FRIT_PAGE_TOKENS;
    if (!has_page(kv, map, p)) return -1;
    return add_tokens(kv, text->root, parent, text->tokens + begin, text->n - begin);
}

int32_t frit_kv_add_page(frit_kv *kv, frit_kv_root *root, int32_t parent, const frit_token *tokens,
                         const int32_t pages[FRIT_MAX_GROUPS])
{
    const int32_t full = full_group(kv);
    const int32_t i = full < 0 || pages[full] >= 0 ? add_tokens(kv, root, parent, tokens, FRIT_PAGE_TOKENS) : -1;
    for (int32_t g = 0; g < kv->n_groups && i >= 0; g++) {
        entry_at(kv, i)->pages[g] = pages[g];
        if (pages[g] >= 0) kv->groups[g].owners[pages[g]] = i;
    }
    return i;
}

static void attach(frit_kv *kv, int32_t i, frit_kv_snapshot *snapshot)
{
    entry_at(kv, i)->snapshot = (int32_t)(snapshot - kv->snapshots);
    snapshot->owner = i;
}

// The states that a session has left at the end of the entry's page.
static void attach_left(frit_kv *kv, const frit_kv_map *map, int32_t i, int32_t at)
{
    for (int32_t k = 0; k < map->n_snapshots && entry_at(kv, i)->snapshot < 0; k++) {
        frit_kv_snapshot *snapshot = map->snapshots[k];
        if (snapshot->at == at && snapshot->slot > 0 && snapshot->owner < 0) attach(kv, i, snapshot);
    }
}

// Those of the map as it is. It ends, so that its own snapshots can give way.
static void attach_last(frit_kv *kv, frit_kv_map *map, int32_t i)
{
    if (kv->state_bytes == 0 || map->slot == 0 || entry_at(kv, i)->snapshot >= 0) return;
    frit_kv_snapshot *snapshot = frit_kv_free_snapshot(kv);
    while (!snapshot && frit_kv_drop_oldest(kv, map)) snapshot = frit_kv_free_snapshot(kv);
    if (snapshot && frit_kv_copy_states(kv, map->slot, snapshot->slot) == FRIT_OK) attach(kv, i, snapshot);
}

// Parts of pages that another one begins with are of no more use, but for their states.
static void drop_shorter(frit_kv *kv, int32_t i)
{
    const frit_kv_entry *entry = entry_at(kv, i);
    int32_t other = *first_child(kv, entry->root, entry->parent);
    for (int k = 0; other >= 0 && k < MOST_SIBLINGS; k++) {
        const frit_kv_entry *shorter = entry_at(kv, other);
        const int32_t after = shorter->after;
        if (shorter->n_tokens < entry->n_tokens && shorter->snapshot < 0 &&
            has_tokens(entry, shorter->tokens, shorter->n_tokens))
            drop_leaf(kv, other);
        other = after;
    }
}

// The part of a page that the text ends with. One that is there already may be longer.
static int32_t keep_part(frit_kv *kv, frit_kv_map *map, const frit_kv_text *text, int32_t parent, int32_t p)
{
    const int32_t begin = p * FRIT_PAGE_TOKENS, n = text->n - begin;
    int32_t i = *first_child(kv, text->root, parent);
    for (int k = 0; i >= 0 && k < MOST_SIBLINGS; k++, i = entry_at(kv, i)->after) {
        const frit_kv_entry *entry = entry_at(kv, i);
        const bool suits = kv->state_bytes > 0 ? entry->n_tokens == n : entry->n_tokens >= n;
        if (suits && has_tokens(entry, text->tokens + begin, n)) return i;
    }
    i = add_entry(kv, map, text, parent, p);
    if (i < 0) return -1;
    merge_pages(kv, map, p, i);
    drop_shorter(kv, i);
    return i;
}

void frit_kv_keep(frit_kv *kv, frit_kv_map *map, const frit_kv_text *text, bool ends)
{
    frit_kv_trim_chain(kv, map, text->n);
    int32_t at = map->chain.n > 0 ? map->chain.entry : -1;
    for (int32_t p = map->chain.n; (p + 1) * FRIT_PAGE_TOKENS <= text->n; p++) {
        const frit_token *tokens = text->tokens + p * FRIT_PAGE_TOKENS;
        int32_t i = frit_kv_find_page(kv, text->root, at, tokens);
        const bool is_new = i < 0;
        if (is_new) i = add_entry(kv, map, text, at, p);
        if (i < 0) return;
        merge_pages(kv, map, p, i);
        if (is_new) drop_shorter(kv, i);
        attach_left(kv, map, i, (p + 1) * FRIT_PAGE_TOKENS);
        at = i;
        set_chain(kv, map, i, p + 1);
    }
    if (!ends || text->n == 0) return;
    const int32_t n_full = text->n / FRIT_PAGE_TOKENS;
    if (text->n % FRIT_PAGE_TOKENS != 0) at = keep_part(kv, map, text, at, n_full);
    if (at < 0) return;
    attach_last(kv, map, at);
    entry_at(kv, at)->used = ++kv->prefix.clock;
}

void frit_kv_trim_chain(frit_kv *kv, frit_kv_map *map, int32_t n_positions)
{
    frit_kv_chain *chain = &map->chain;
    if (chain->n > 0 && entry_at(kv, chain->entry)->stamp != chain->stamp) chain->n = 0;
    while (chain->n > n_positions / FRIT_PAGE_TOKENS)
        set_chain(kv, map, entry_at(kv, chain->entry)->parent, chain->n - 1);
}

void frit_kv_forget_text(frit_kv *kv, frit_kv_map *map)
{
    frit_kv_trim_chain(kv, map, INT32_MAX);
    frit_kv_trim_chain(kv, map, FRIT_PAGE_TOKENS);
    if (map->chain.n > 0) drop(kv, map->chain.entry, false);
    map->chain.n = 0;
}

frit_kv_snapshot *frit_kv_free_snapshot(frit_kv *kv)
{
    frit_kv_snapshot *oldest = NULL;
    for (int32_t i = 0; i < kv->n_snapshots; i++) {
        frit_kv_snapshot *snapshot = &kv->snapshots[i];
        if (snapshot->n_refs > 0) continue;
        if (snapshot->owner < 0) return snapshot;
        if (!oldest || entry_at(kv, snapshot->owner)->used < entry_at(kv, oldest->owner)->used) oldest = snapshot;
    }
    if (!oldest) return NULL;
    entry_at(kv, oldest->owner)->snapshot = -1;
    oldest->owner = -1;
    return oldest;
}
