// SPDX-License-Identifier: MIT
// The prefix cache: finding the longest cached beginning of a text, giving its pages to a map, and caching pages of
// maps.
#include "engine/kv/prefix_tree.h"

#include <string.h>

// ------------------------------------------------------------------------------- eviction

void frit_kv_drop_page(frit_kv *kv, int32_t g, int32_t page)
{
    const int32_t owner = kv->groups[g].owners[page];
    if (kv->groups[g].window == 0) {
        frit_kv_drop_entries(kv, owner, false);
        return;
    }
    frit_kv_entry_at(kv, owner)->pages[g] = -1;
    frit_kv_disown_page(&kv->groups[g], page);
}

void frit_kv_evict_page(frit_kv *kv, int32_t g, int32_t page)
{
    const int32_t owner = kv->groups[g].owners[page];
    frit_kv_entry *entry = frit_kv_entry_at(kv, owner);
    const bool has_room = entry->host_page >= 0 || kv->host.n_free > 0 ||
                          (kv->host.n_pages > 0 && frit_kv_evict_lru_leaf(kv, owner, true));
    if (!has_room || !frit_kv_host_save(kv, entry, g)) {
        if (kv->groups[g].window == 0)
            frit_kv_drop_entries(kv, owner, true);
        else
            frit_kv_drop_page(kv, g, page);
        return;
    }
    entry->pages[g] = -1;
    frit_kv_disown_page(&kv->groups[g], page);
}

// ------------------------------------------------------------------------------- finding

// A position in a text after n_full whole pages that the tree has. `n_in_row` counts, for each window group, how many
// of the last entries have the group's page.
typedef struct walk {
    const frit_kv *kv;
    const frit_kv_text *text;
    int32_t entry, n_full;
    int32_t n_in_row[FRIT_MAX_GROUPS];
} walk;

static bool has_group(const frit_kv *kv, int32_t i, int32_t g)
{
    return frit_kv_entry_at(kv, i)->pages[g] >= 0 || frit_kv_entry_at(kv, i)->in_host[g];
}

// True if the row after n positions finds all positions inside its windows, in pages that the walk passed and in those
// of entry `partial` (-1: none).
static bool has_windows(const walk *w, int32_t n, int32_t partial)
{
    for (int32_t g = 0; g < w->kv->n_groups; g++) {
        const int32_t window = w->kv->groups[g].window;
        if (window == 0) continue;
        if (w->n_in_row[g] < w->n_full - frit_kv_first_position(window, n) / FRIT_PAGE_TOKENS) return false;
        if (partial >= 0 && !has_group(w->kv, partial, g)) return false;
    }
    return true;
}

static bool has_states(const walk *w, int32_t entry)
{
    return w->kv->state_bytes == 0 || frit_kv_entry_at(w->kv, entry)->snapshot >= 0;
}

static void walk_into(walk *w, int32_t entry)
{
    w->entry = entry;
    w->n_full++;
    for (int32_t g = 0; g < w->kv->n_groups; g++) w->n_in_row[g] = has_group(w->kv, entry, g) ? w->n_in_row[g] + 1 : 0;
}

static int32_t count_common(const frit_kv_entry *entry, const frit_token *tokens, int32_t n)
{
    int32_t i = 0;
    if (n > entry->n_tokens) n = entry->n_tokens;
    while (i < n && entry->tokens[i] == tokens[i]) i++;
    return i;
}

// Finds an entry whose page begins with the next tokens of the text. With recurrent states the whole entry must match,
// because its snapshot is of the end of its tokens.
static void find_partial_page(const walk *w, frit_kv_found *best)
{
    const frit_kv *kv = w->kv;
    const int32_t begin = w->n_full * FRIT_PAGE_TOKENS;
    int32_t i = *frit_kv_first_child(kv, w->text->root, w->entry);
    for (int k = 0; i >= 0 && k < FRIT_KV_MOST_SIBLINGS; k++, i = frit_kv_entry_at(kv, i)->after) {
        const frit_kv_entry *entry = frit_kv_entry_at(kv, i);
        int32_t n = count_common(entry, w->text->tokens + begin, w->text->n - begin);
        if (n == FRIT_PAGE_TOKENS || (kv->state_bytes > 0 && n < entry->n_tokens)) continue;
        if (n == 0 || begin + n <= best->n || !has_states(w, i) || !has_windows(w, begin + n, i)) continue;
        *best = (frit_kv_found){.n = begin + n, .n_full = w->n_full, .entry = w->entry, .partial = i};
    }
}

frit_kv_found frit_kv_find(const frit_kv *kv, const frit_kv_text *text)
{
    walk w = {.kv = kv, .text = text, .entry = -1};
    frit_kv_found best = {.entry = -1, .partial = -1};
    for (int32_t end = FRIT_PAGE_TOKENS;; end += FRIT_PAGE_TOKENS) {
        const int32_t next =
            end <= text->n ? frit_kv_find_page(kv, text->root, w.entry, text->tokens + end - FRIT_PAGE_TOKENS) : -1;
        if (next < 0 || kv->state_bytes > 0) find_partial_page(&w, &best);
        if (next < 0) return best;
        walk_into(&w, next);
        if (has_states(&w, next) && has_windows(&w, end, -1))
            best = (frit_kv_found){.n = end, .n_full = w.n_full, .entry = next, .partial = -1};
    }
}

int32_t frit_kv_found_shared(const frit_kv *kv, const frit_kv_found *found)
{
    const int32_t g = frit_kv_full_group(kv);
    int32_t n = 0;
    for (int32_t i = found->entry; g >= 0 && i >= 0; i = frit_kv_entry_at(kv, i)->parent)
        n += frit_kv_entry_at(kv, i)->pages[g] >= 0 && kv->groups[g].refs[frit_kv_entry_at(kv, i)->pages[g]] > 0;
    return n;
}

// ------------------------------------------------------------------------------- giving pages to a map

// References the found pages that are on the device and leaves -1 for the others. Returns the number of the others.
static int32_t ref_device_pages(frit_kv *kv, int32_t g, frit_kv_table *table, const frit_kv_found *found)
{
    frit_kv_group *group = &kv->groups[g];
    int32_t i = found->partial >= 0 ? found->partial : found->entry, n_missing = 0;
    table->begin = frit_kv_first_position(group->window, found->n) / FRIT_PAGE_TOKENS;
    table->end = frit_kv_pages_of(found->n);
    for (int32_t p = table->end - 1; p >= table->begin; p--, i = frit_kv_entry_at(kv, i)->parent) {
        table->pages[p] = frit_kv_entry_at(kv, i)->pages[g];
        n_missing += table->pages[p] < 0;
        if (table->pages[p] >= 0) frit_kv_ref_page(group, table->pages[p]);
    }
    return n_missing;
}

// Loads the found pages that are in host memory.
static frit_status load_host_pages(frit_kv *kv, int32_t g, frit_kv_table *table, const frit_kv_found *found)
{
    frit_kv_group *group = &kv->groups[g];
    int32_t i = found->partial >= 0 ? found->partial : found->entry;
    for (int32_t p = table->end - 1; p >= table->begin; p--, i = frit_kv_entry_at(kv, i)->parent) {
        frit_kv_entry *entry = frit_kv_entry_at(kv, i);
        if (table->pages[p] >= 0) continue;
        table->pages[p] = frit_kv_alloc_page(kv, g);
        FRIT_TRY(frit_kv_host_load(kv, entry, g, table->pages[p]));
        entry->pages[g] = table->pages[p];
        group->owners[entry->pages[g]] = i;
    }
    return FRIT_OK;
}

static void unref_table(frit_kv_group *group, frit_kv_table *table)
{
    for (; table->end > table->begin; table->end--)
        if (table->pages[table->end - 1] >= 0) frit_kv_unref_page(group, table->pages[table->end - 1]);
    table->begin = table->end = 0;
}

// References all pages on the device first, so that none of them is evicted to make room for a page that is loaded.
static frit_status ref_found_tables(frit_kv *kv, frit_kv_map *map, const frit_kv_found *found)
{
    frit_status status = FRIT_OK;
    for (int32_t g = 0; g < kv->n_groups; g++)
        if (!kv->groups[g].of_source &&
            ref_device_pages(kv, g, &map->tables[g], found) > frit_kv_available(&kv->groups[g]))
            status = frit_fail(FRIT_E_LIMIT, "the cache has no free pages for pages that are in host memory");
    for (int32_t g = 0; g < kv->n_groups && status == FRIT_OK; g++)
        if (!kv->groups[g].of_source) status = load_host_pages(kv, g, &map->tables[g], found);
    for (int32_t g = 0; g < kv->n_groups && status != FRIT_OK; g++)
        if (!kv->groups[g].of_source) unref_table(&kv->groups[g], &map->tables[g]);
    return status;
}

static void set_page_list(const frit_kv *kv, frit_kv_map *map, int32_t entry, int32_t n)
{
    map->page_list =
        (frit_kv_page_list){.n = n, .entry = entry, .stamp = n > 0 ? frit_kv_entry_at(kv, entry)->stamp : 0};
}

frit_status frit_kv_ref_found(frit_kv *kv, frit_kv_map *map, const frit_kv_found *found)
{
    const int32_t last = found->partial >= 0 ? found->partial : found->entry;
    const bool has_states = kv->state_bytes > 0;
    kv->prefix.clock++;
    for (int32_t i = last; i >= 0; i = frit_kv_entry_at(kv, i)->parent)
        frit_kv_entry_at(kv, i)->used = kv->prefix.clock;
    if (has_states && kv->n_free_states == 0) return frit_fail(FRIT_E_LIMIT, "the cache has no room for another state");
    const int32_t state = has_states ? kv->free_states[kv->n_free_states - 1] : 0;
    if (has_states) FRIT_TRY(frit_kv_copy_states(kv, kv->snapshots[frit_kv_entry_at(kv, last)->snapshot].state, state));
    FRIT_TRY(ref_found_tables(kv, map, found));
    map->state = state;
    kv->n_free_states -= has_states;
    set_page_list(kv, map, found->entry, found->n_full);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- caching pages of a map

static int32_t page_of(const frit_kv_map *map, int32_t g, int32_t p)
{
    const frit_kv_table *table = &map->tables[g];
    return p >= table->begin && p < table->end ? table->pages[p] : -1;
}

// Gives the entry the pages of the map that it lacks. If both have a whole page of full attention, the map drops its
// copy and references the entry's page.
static void merge_pages(frit_kv *kv, frit_kv_map *map, int32_t p, int32_t i)
{
    frit_kv_entry *entry = frit_kv_entry_at(kv, i);
    for (int32_t g = 0; g < kv->n_groups; g++) {
        frit_kv_group *group = &kv->groups[g];
        const int32_t page = group->of_source ? -1 : page_of(map, g, p);
        if (page < 0 || page == entry->pages[g]) continue;
        if (entry->pages[g] < 0 && group->owners[page] < 0) {
            entry->pages[g] = page;
            group->owners[page] = i;
            if (entry->in_host[g]) frit_kv_host_drop(kv, entry, g);
        } else if (entry->pages[g] >= 0 && group->window == 0 && entry->n_tokens == FRIT_PAGE_TOKENS) {
            frit_kv_ref_page(group, entry->pages[g]);
            frit_kv_unref_page(group, page);
            map->tables[g].pages[p] = entry->pages[g];
        }
    }
}

// True if the map's page p can become an entry's: the map has its page of full attention, and no entry owns it.
static bool has_page(const frit_kv *kv, const frit_kv_map *map, int32_t p)
{
    const int32_t g = frit_kv_full_group(kv), page = g >= 0 ? page_of(map, g, p) : 0;
    return g < 0 || (page >= 0 && kv->groups[g].owners[page] < 0);
}

static int32_t add_map_entry(frit_kv *kv, const frit_kv_map *map, const frit_kv_text *text, int32_t parent, int32_t p)
{
    const int32_t begin = p * FRIT_PAGE_TOKENS;
    if (!has_page(kv, map, p)) return -1;
    return frit_kv_add_entry(kv, text->root, parent, text->tokens + begin, text->n - begin);
}

int32_t frit_kv_add_page(frit_kv *kv, frit_kv_root *root, int32_t parent, const frit_token *tokens,
                         const int32_t pages[FRIT_MAX_GROUPS])
{
    const int32_t full = frit_kv_full_group(kv);
    const int32_t i = full < 0 || pages[full] >= 0 ? frit_kv_add_entry(kv, root, parent, tokens, FRIT_PAGE_TOKENS) : -1;
    for (int32_t g = 0; g < kv->n_groups && i >= 0; g++) {
        frit_kv_entry_at(kv, i)->pages[g] = pages[g];
        if (pages[g] >= 0) kv->groups[g].owners[pages[g]] = i;
    }
    return i;
}

static void attach_snapshot(frit_kv *kv, int32_t i, frit_kv_snapshot *snapshot)
{
    frit_kv_entry_at(kv, i)->snapshot = (int32_t)(snapshot - kv->snapshots);
    snapshot->owner = i;
}

// Gives the entry the map's snapshot after `at` positions, if there is one.
static void attach_map_snapshot(frit_kv *kv, const frit_kv_map *map, int32_t i, int32_t at)
{
    for (int32_t k = 0; k < map->n_snapshots && frit_kv_entry_at(kv, i)->snapshot < 0; k++) {
        frit_kv_snapshot *snapshot = map->snapshots[k];
        if (snapshot->at == at && snapshot->state > 0 && snapshot->owner < 0) attach_snapshot(kv, i, snapshot);
    }
}

// Gives the entry a snapshot of the map's current states. Snapshots of the map are dropped for it if none is free.
static void attach_current_states(frit_kv *kv, frit_kv_map *map, int32_t i)
{
    if (kv->state_bytes == 0 || map->state == 0 || frit_kv_entry_at(kv, i)->snapshot >= 0) return;
    frit_kv_snapshot *snapshot = frit_kv_unused_snapshot(kv);
    while (!snapshot && frit_kv_drop_oldest(kv, map)) snapshot = frit_kv_unused_snapshot(kv);
    if (snapshot && frit_kv_copy_states(kv, map->state, snapshot->state) == FRIT_OK) attach_snapshot(kv, i, snapshot);
}

// Drops partial pages that the entry's page begins with, except those with states.
static void drop_shorter(frit_kv *kv, int32_t i)
{
    const frit_kv_entry *entry = frit_kv_entry_at(kv, i);
    int32_t other = *frit_kv_first_child(kv, entry->root, entry->parent);
    for (int k = 0; other >= 0 && k < FRIT_KV_MOST_SIBLINGS; k++) {
        const frit_kv_entry *shorter = frit_kv_entry_at(kv, other);
        const int32_t after = shorter->after;
        if (shorter->n_tokens < entry->n_tokens && shorter->snapshot < 0 &&
            frit_kv_entry_has_tokens(entry, shorter->tokens, shorter->n_tokens))
            frit_kv_drop_leaf(kv, other);
        other = after;
    }
}

// Caches the last, partial page of a text. Returns its entry, or a longer one that exists already; -1: no room.
static int32_t cache_partial_page(frit_kv *kv, frit_kv_map *map, const frit_kv_text *text, int32_t parent, int32_t p)
{
    const int32_t begin = p * FRIT_PAGE_TOKENS, n = text->n - begin;
    int32_t i = *frit_kv_first_child(kv, text->root, parent);
    for (int k = 0; i >= 0 && k < FRIT_KV_MOST_SIBLINGS; k++, i = frit_kv_entry_at(kv, i)->after) {
        const frit_kv_entry *entry = frit_kv_entry_at(kv, i);
        const bool suits = kv->state_bytes > 0 ? entry->n_tokens == n : entry->n_tokens >= n;
        if (suits && frit_kv_entry_has_tokens(entry, text->tokens + begin, n)) return i;
    }
    i = add_map_entry(kv, map, text, parent, p);
    if (i < 0) return -1;
    merge_pages(kv, map, p, i);
    drop_shorter(kv, i);
    return i;
}

void frit_kv_cache_text(frit_kv *kv, frit_kv_map *map, const frit_kv_text *text, bool ends)
{
    frit_kv_trim_page_list(kv, map, text->n);
    int32_t at = map->page_list.n > 0 ? map->page_list.entry : -1;
    for (int32_t p = map->page_list.n; (p + 1) * FRIT_PAGE_TOKENS <= text->n; p++) {
        const frit_token *tokens = text->tokens + p * FRIT_PAGE_TOKENS;
        int32_t i = frit_kv_find_page(kv, text->root, at, tokens);
        const bool is_new = i < 0;
        if (is_new) i = add_map_entry(kv, map, text, at, p);
        if (i < 0) return;
        merge_pages(kv, map, p, i);
        if (is_new) drop_shorter(kv, i);
        attach_map_snapshot(kv, map, i, (p + 1) * FRIT_PAGE_TOKENS);
        at = i;
        set_page_list(kv, map, i, p + 1);
    }
    if (!ends || text->n == 0) return;
    const int32_t n_full = text->n / FRIT_PAGE_TOKENS;
    if (text->n % FRIT_PAGE_TOKENS != 0) at = cache_partial_page(kv, map, text, at, n_full);
    if (at < 0) return;
    attach_current_states(kv, map, at);
    frit_kv_entry_at(kv, at)->used = ++kv->prefix.clock;
}

void frit_kv_trim_page_list(frit_kv *kv, frit_kv_map *map, int32_t n_positions)
{
    frit_kv_page_list *list = &map->page_list;
    if (list->n > 0 && frit_kv_entry_at(kv, list->entry)->stamp != list->stamp) list->n = 0;
    while (list->n > n_positions / FRIT_PAGE_TOKENS)
        set_page_list(kv, map, frit_kv_entry_at(kv, list->entry)->parent, list->n - 1);
}

void frit_kv_drop_text(frit_kv *kv, frit_kv_map *map)
{
    frit_kv_trim_page_list(kv, map, INT32_MAX);
    frit_kv_trim_page_list(kv, map, FRIT_PAGE_TOKENS);
    if (map->page_list.n > 0) frit_kv_drop_entries(kv, map->page_list.entry, false);
    map->page_list.n = 0;
}

frit_kv_snapshot *frit_kv_unused_snapshot(frit_kv *kv)
{
    frit_kv_snapshot *oldest = NULL;
    for (int32_t i = 0; i < kv->n_snapshots; i++) {
        frit_kv_snapshot *snapshot = &kv->snapshots[i];
        if (snapshot->n_refs > 0) continue;
        if (snapshot->owner < 0) return snapshot;
        if (!oldest || frit_kv_entry_at(kv, snapshot->owner)->used < frit_kv_entry_at(kv, oldest->owner)->used)
            oldest = snapshot;
    }
    if (!oldest) return NULL;
    frit_kv_entry_at(kv, oldest->owner)->snapshot = -1;
    oldest->owner = -1;
    return oldest;
}
