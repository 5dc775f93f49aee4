// SPDX-License-Identifier: MIT
// engine/kv/kv.h: the key/value cache. It is cut into pages, so that sessions can share a prefix and need no room of a
// fixed size.
//
// A page holds FRIT_PAGE_TOKENS positions of the layers of a group (kv_layout.h). Each device has the part of the page
// that belongs to its layers. A session has a map: a table of pages for each group, a state, and snapshots. Tables and
// snapshots share pages by reference counts. A shared page is copied before it is written. Pages before a window are
// unreferenced (frit_kv_unref_passed).
//
// If layers are recurrent (graph/batch.h), a map with pages also has a state: memory for the recurrent states of one
// session in all layers. Neither a recurrent state nor a window can be rolled back, so snapshots are taken at the
// beginnings of pages. A snapshot has a state of its own and references the pages of the windows. A session that is
// truncated continues from the last snapshot before the cut (engine/session/session.c).
//
// A page that no table references is free, or idle if the prefix cache (prefix_cache.c) knows its tokens. A session
// whose text begins with those tokens gets the idle page. If no page is free, the page that is idle longest is evicted.
//
// The cache belongs to the engine and is not thread-safe. The host may not see its memory: contents go through the
// devices' `read`, `write` and `copy` (kv_bytes.c).
//
//     frit_kv_map map = {0};
//     FRIT_TRY(frit_kv_map_reserve(kv, &map, n_ctx));         // no allocation after this
//     n = frit_kv_fitting(kv, &map, n_done, n);               // number of positions that pages are available for
//     FRIT_TRY(frit_kv_extend(kv, &map, n_done, n));          // allocates the pages
//     ...                                                     // runs the step: n_done += n
//     frit_kv_unref_passed(kv, &map, n_done);                 // unreferences pages before the windows
//     FRIT_TRY(frit_kv_truncate(kv, &map, n_keep, &n_done));  // drops later positions
#pragma once
#include "backend/backend.h"
#include "base/log.h"
#include "engine/kv/kv_layout.h"
#include "graph/rotation.h"

enum { FRIT_MAX_SNAPSHOTS = 8 };   // per session

typedef struct frit_kv_table {   // of one group
    int32_t *pages;              // [capacity]: position p is in pages[p / FRIT_PAGE_TOKENS - first]
    int32_t first;               // 0, except in snapshots
    int32_t begin, end;          // the table has pages [begin, end), by position / FRIT_PAGE_TOKENS
} frit_kv_table;

typedef struct frit_kv_snapshot {
    int32_t n_refs;                          // number of maps that have the snapshot
    int32_t owner;                           // entry of the prefix cache that has the snapshot; -1: none
    int32_t at;                              // number of positions before the snapshot
    int32_t state;                           // number of its recurrent state; 0: none
    bool is_for_drafts;                      // taken before draft tokens are verified; always the latest of its map
    frit_kv_table tables[FRIT_MAX_GROUPS];   // of groups with a window
} frit_kv_snapshot;

typedef struct frit_kv_page_list {   // the entries of the prefix cache that a map's first pages belong to
    int32_t n;
    int32_t entry;    // the last entry
    uint64_t stamp;   // of the last entry; another stamp there now means that the entry was dropped
} frit_kv_page_list;

typedef struct frit_kv_map {
    frit_kv_table tables[FRIT_MAX_GROUPS];
    frit_kv_page_list page_list;
    int32_t state;                                     // number of its recurrent state, from 1 on; 0: none
    frit_kv_snapshot *snapshots[FRIT_MAX_SNAPSHOTS];   // by position, lowest first
    int32_t n_snapshots;
} frit_kv_map;

typedef struct frit_kv_storage {   // of the layers on one device
    frit_device *device;
    frit_memory *memory;   // NULL: no layer is on the device
    frit_cache cache;      // for the device's kernels
    frit_kv_layout layout;
} frit_kv_storage;

typedef struct frit_kv_group {
    int32_t window;   // 0: all positions
    bool of_source;
    int32_t n_pages, n_free, n_idle;
    int32_t *free_pages;       // stack of free page numbers
    int32_t *refs;             // [n_pages]: number of tables that reference the page
    int32_t *owners;           // [n_pages]: entry of the prefix cache that owns the page; -1: none
    int32_t *before, *after;   // [n_pages]: neighbours in the list of idle pages; -1: none
    int32_t lru, mru;          // ends of the list of idle pages, least and most recently used; -1: the list is empty
} frit_kv_group;

// The root of cached texts that depend on the same key (adapters, salt). Sessions with equal keys share pages.
typedef struct frit_kv_root {
    struct frit_kv_root *next;
    int32_t n_refs;   // sessions and entries that reference the root
    int32_t child;    // the first entry without a parent; -1: none
    uint64_t stamp;
    bool is_named;   // `name` is valid: a hash that is equal in all processes, so that pages can be kept on disk
    uint8_t name[32];
    size_t n_bytes;
    uint8_t key[];
} frit_kv_root;

typedef struct frit_kv_entry {   // an entry of the prefix cache: the tokens of one page, after the tokens of its parent
    frit_kv_root *root;
    int32_t parent;          // -1: the entry is a child of the root
    int32_t child;           // the first child; -1: none
    int32_t before, after;   // siblings; -1: none
    int32_t link;            // the next entry in the bucket, or the next free entry
    int32_t bucket;          // -1: the entry has fewer tokens than a page and is in no bucket
    uint64_t stamp;          // 0: the entry is free
    uint64_t used;           // value of the clock at the last use
    int32_t n_tokens;
    int32_t snapshot;                 // the snapshot after its tokens; -1: none
    int32_t pages[FRIT_MAX_GROUPS];   // -1: the entry has no page of the group on the devices
    int32_t host_page;                // page in host memory; -1: none
    bool in_host[FRIT_MAX_GROUPS];    // the page in host memory has this group
    bool on_disk;                     // the page is or was in a file
    int32_t tokens[FRIT_PAGE_TOKENS];
} frit_kv_entry;

typedef struct frit_kv_prefix {   // the prefix cache
    bool on;
    frit_kv_entry *entries;      // [n_entries]
    int32_t n_entries, n_used;   // entries from n_used on were never used
    int32_t first_free;          // -1: no free entry
    int32_t *buckets;            // [n_buckets]: entries of whole pages, by parent and tokens
    int32_t n_buckets;           // a power of two
    uint64_t clock;
    frit_kv_root *roots;
} frit_kv_prefix;

typedef struct frit_kv_host {   // evicted pages in host memory (kv_host.c); one page holds all groups of an entry
    frit_memory *memory;        // of the CPU; NULL: no pages in host memory
    uint64_t page_bytes, offsets[FRIT_MAX_GROUPS][FRIT_MAX_DEVICES];   // offset of a group's part within a page
    int32_t *free_pages;                                               // stack
    int32_t n_pages, n_free;
} frit_kv_host;

typedef struct frit_kv {
    frit_kv_storage storages[FRIT_MAX_DEVICES];   // [n_storages], by device number
    int n_storages;
    frit_kv_group groups[FRIT_MAX_GROUPS];
    int32_t n_groups;
    bool has_windows;
    frit_cache_layer *layers;   // [n_layers], on all devices
    const int8_t *devices;      // [n_layers], or NULL
    int32_t n_layers;
    uint64_t n_bytes;       // on all devices
    uint64_t state_bytes;   // per state; 0: no layer is recurrent
    int32_t *free_states;   // stack
    int32_t n_states, n_free_states;
    frit_kv_snapshot *snapshots;   // [n_snapshots]
    int32_t n_snapshots;
    int32_t max_snapshots;   // per map; 0: sessions can be truncated anywhere
    frit_kv_prefix prefix;
    frit_kv_host host;
    struct frit_kv_disk *disk;   // NULL: no folder (kv_disk.c)
} frit_kv;

// Layers are on devices[0 ... n_devices). `shape->devices` must outlive the cache.
frit_status frit_kv_init(frit_kv *kv, frit_device *const *devices, int n_devices, const frit_kv_shape *shape,
                         const frit_kv_room *room);
void frit_kv_deinit(frit_kv *kv);

frit_status frit_kv_map_reserve(const frit_kv *kv, frit_kv_map *map, int32_t n_positions);
void frit_kv_map_free(frit_kv_map *map);   // after its pages were released
// True if an empty map could get a state and pages for n positions now. `n_shared_pages` of the pages are already
// referenced by other maps.
bool frit_kv_has_room(const frit_kv *kv, const frit_kv_map *map, int32_t n, int32_t n_shared_pages);
// Returns how many of n positions after n_done pages, and a state, are available for.
int32_t frit_kv_fitting(const frit_kv *kv, const frit_kv_map *map, int32_t n_done, int32_t n);
// Allocates pages for n positions after n_done. FRIT_E_LIMIT if they do not fit; the map is then unchanged.
frit_status frit_kv_extend(frit_kv *kv, frit_kv_map *map, int32_t n_done, int32_t n);
// Allocates pages for a source of n positions that is encoded. For the time of the step the text's groups get pages
// too.
bool frit_kv_source_fits(const frit_kv *kv, const frit_kv_map *map, int32_t n);
frit_status frit_kv_extend_source(frit_kv *kv, frit_kv_map *map, int32_t n);
// Unreferences pages before the windows: pages that no row from n_done on reads.
void frit_kv_unref_passed(frit_kv *kv, frit_kv_map *map, int32_t n_done);
// Keeps at most n_keep of *n_done positions: fewer if the map must continue from a snapshot, and 0 if the device fails.
frit_status frit_kv_truncate(frit_kv *kv, frit_kv_map *map, int32_t n_keep, int32_t *n_done);
void frit_kv_release(frit_kv *kv, frit_kv_map *map);   // all pages but the source's
void frit_kv_release_source(frit_kv *kv, frit_kv_map *map);
// Makes `to`, an empty map, share the first n_done positions, and with `source` the encoded source. FRIT_E_LIMIT if no
// state is free; `to` is then unchanged.
frit_status frit_kv_share(frit_kv *kv, frit_kv_map *to, const frit_kv_map *from, int32_t n_done, bool source);
// Allocates the pages that a row after n positions reads. The caller fills them. With `windows_only`, groups without a
// window are left out. FRIT_E_LIMIT if too few pages are free.
frit_status frit_kv_alloc(frit_kv *kv, frit_kv_map *map, int32_t n, bool windows_only);
frit_status frit_kv_alloc_source(frit_kv *kv, frit_kv_map *map, int32_t n);   // of the source's groups

// Writes a sentence like "3 of 64 pages of 32 tokens are free".
void frit_kv_describe(const frit_kv *kv, char *text, size_t capacity);

// Takes a snapshot after `at` positions. The map must have their pages. `at` is a multiple of FRIT_PAGE_TOKENS, except
// for drafts. The step that computes position `at` writes the recurrent states to the snapshot. Drops an earlier
// snapshot for drafts, then the oldest if the map is at its limit. NULL if none is free, or if the model needs no
// snapshots.
const frit_kv_snapshot *frit_kv_add_snapshot(frit_kv *kv, frit_kv_map *map, int32_t at, bool is_for_drafts);
void frit_kv_drop_draft_snapshot(frit_kv *kv, frit_kv_map *map);   // all drafts were accepted
// True if sessions can be truncated to the position before drafts.
bool frit_kv_can_draft(const frit_kv *kv);
void frit_kv_drop_snapshots(frit_kv *kv, frit_kv_map *map, int32_t n_positions);   // snapshots after more positions
bool frit_kv_drop_oldest(frit_kv *kv, frit_kv_map *map);   // drops the oldest snapshot; false: the map has none

// ------------------------------------------------------------------------------- pages (kv_pages.c)

// Number of pages that can be allocated: free and idle ones.
static inline int32_t frit_kv_available(const frit_kv_group *group)
{
    return group->n_free + group->n_idle;
}
int32_t frit_kv_alloc_page(frit_kv *kv, int32_t group);   // a page must be available; it has one reference
void frit_kv_ref_page(frit_kv_group *group, int32_t page);
void frit_kv_unref_page(frit_kv_group *group, int32_t page);    // without references the page becomes idle or free
void frit_kv_disown_page(frit_kv_group *group, int32_t page);   // the prefix cache gives the page up

// ------------------------------------------------------------------------------- shifts (kv_shift.c)

// Drops positions [n_keep, n_keep + n_drop) and moves the later ones down by n_drop. Both are multiples of
// FRIT_PAGE_TOKENS.
typedef struct frit_kv_shift {
    int32_t n_keep, n_drop;
    const frit_key_rotation *rotations;   // [n_layers]
} frit_kv_shift;

// True if rows after the shift find all positions inside their windows: the windows may have passed some of the first
// n_keep positions.
bool frit_kv_can_shift(const frit_kv *kv, const frit_kv_map *map, const frit_kv_shift *shift, int32_t n_done);
// Unreferences the dropped pages and rotates the keys of moved pages. Moved pages that are shared are copied first.
// Sets *n_done to the positions that are left. FRIT_E_LIMIT if too few pages are free for copies, FRIT_E_MEMORY: the
// map is unchanged. If the device fails, the map is empty and *n_done is 0.
frit_status frit_kv_shift_map(frit_kv *kv, frit_kv_map *map, const frit_kv_shift *shift, int32_t *n_done);

// ------------------------------------------------------------------------------- the prefix cache (prefix_cache.c)

frit_status frit_kv_prefix_init(frit_kv *kv, const frit_kv_room *room);
void frit_kv_prefix_deinit(frit_kv *kv);
// Returns the root with this key and a reference to it; makes the root if it is new.
frit_status frit_kv_root_get(frit_kv *kv, const void *key, size_t n_bytes, frit_kv_root **out);
void frit_kv_root_ref(frit_kv_root *root);
void frit_kv_root_unref(frit_kv *kv, frit_kv_root *root);   // NULL is allowed

typedef struct frit_kv_text {   // the text of a map
    frit_kv_root *root;
    const frit_token *tokens;
    int32_t n;
} frit_kv_text;

typedef struct frit_kv_found {
    int32_t n;         // positions; 0: nothing was found
    int32_t n_full;    // number of whole pages
    int32_t entry;     // entry of the last whole page; -1: none
    int32_t partial;   // entry with the n % FRIT_PAGE_TOKENS positions after the whole pages; -1: none
} frit_kv_found;

// Finds the longest cached beginning of a text after which a session can continue.
frit_kv_found frit_kv_find(const frit_kv *kv, const frit_kv_text *text);
int32_t frit_kv_find_page(const frit_kv *kv, const frit_kv_root *root, int32_t parent, const frit_token *tokens);
// Returns the number of a text's first whole pages that have entries, and sets *entry to the last entry or -1.
int32_t frit_kv_find_pages(const frit_kv *kv, const frit_kv_text *text, int32_t *entry);
// Adds an entry that owns these pages (-1: no page of the group). Returns -1 if there is no room.
int32_t frit_kv_add_page(frit_kv *kv, frit_kv_root *root, int32_t parent, const frit_token *tokens,
                         const int32_t pages[FRIT_MAX_GROUPS]);
// Returns how many of the found pages other maps reference.
int32_t frit_kv_found_shared(const frit_kv *kv, const frit_kv_found *found);
// Gives the found pages to an empty map. FRIT_E_LIMIT if no state is free; the map is then unchanged.
frit_status frit_kv_ref_found(frit_kv *kv, frit_kv_map *map, const frit_kv_found *found);
// Caches the whole pages of a map. With `ends`, also the partial last page and the recurrent states.
void frit_kv_cache_text(frit_kv *kv, frit_kv_map *map, const frit_kv_text *text, bool ends);
void frit_kv_trim_page_list(frit_kv *kv, frit_kv_map *map, int32_t n_positions);   // to the first n_positions
// Removes the map's pages from the prefix cache, because their contents cannot be trusted.
void frit_kv_drop_text(frit_kv *kv, frit_kv_map *map);
void frit_kv_drop_page(frit_kv *kv, int32_t group, int32_t page);   // the prefix cache drops it: contents will change
// Evicts an idle page, to host memory if there is room.
void frit_kv_evict_page(frit_kv *kv, int32_t group, int32_t page);
// Returns a snapshot that no map uses. Takes one of the prefix cache if no other is free. NULL if all are in use.
frit_kv_snapshot *frit_kv_unused_snapshot(frit_kv *kv);

// ------------------------------------------------------------------------------- the host's memory (kv_host.c)

// Allocates frit_kv_n_host_pages pages.
frit_status frit_kv_host_init(frit_kv *kv, frit_device *cpu, const frit_kv_sizes *sizes, const frit_kv_room *room);
void frit_kv_host_deinit(frit_kv *kv);
bool frit_kv_host_save(frit_kv *kv, frit_kv_entry *entry, int32_t group);   // false: no page is free
// Copies the group's part to a page of the device and drops it from host memory.
frit_status frit_kv_host_load(frit_kv *kv, frit_kv_entry *entry, int32_t group, int32_t page);
void frit_kv_host_drop(frit_kv *kv, frit_kv_entry *entry, int32_t group);

// Returns where a device's part of a group lies in a host page.
frit_address frit_kv_host_address(const frit_kv *kv, int device, int32_t group, int32_t host_page);

// ------------------------------------------------------------------------------- on disk (kv_disk.c)

typedef struct frit_kv_disk_options {
    const char *folder;     // made if it does not exist
    uint64_t max_bytes;     // of all files
    const void *identity;   // all that keys and values depend on, beside tokens and a root's key
    size_t n_identity;
    int32_t n_ctx;
    frit_log log;
} frit_kv_disk_options;

// Called after frit_kv_init. With recurrent states or without a prefix cache it warns and keeps nothing.
frit_status frit_kv_disk_init(frit_kv *kv, const frit_kv_disk_options *options);
void frit_kv_disk_deinit(frit_kv *kv);   // writes pages that are in memory first
void frit_kv_disk_name_root(const frit_kv *kv, frit_kv_root *root);
void frit_kv_disk_name(const frit_kv *kv, int32_t entry);   // a new entry of a whole page
void frit_kv_disk_save(frit_kv *kv, int32_t entry);         // before the entry leaves memory
// True if a session with this text must wait for pages that are being read. *n_known is the number of known pages at
// the last call; -1: no call yet.
bool frit_kv_disk_look(frit_kv *kv, const frit_kv_text *text, int32_t *n_known);
void frit_kv_disk_land(frit_kv *kv);   // adds pages that were read to the prefix cache
bool frit_kv_disk_wait(frit_kv *kv);   // waits for pages and adds them; false: no page is being read

// ------------------------------------------------------------------------------- contents (kv_bytes.c)

// Visits the contents that rows after the first n positions read, on the host, group by group. Order and bytes do not
// depend on page numbers. frit_kv_visit_states visits one recurrent state of all layers.
typedef enum frit_kv_which { FRIT_KV_TEXT, FRIT_KV_SOURCE, FRIT_KV_WINDOWS } frit_kv_which;
typedef struct frit_kv_visitor {
    frit_status (*visit)(void *ctx, uint8_t *bytes, size_t n_bytes);
    void *ctx;
    bool fills;   // the visitor sets the bytes, which are then written to the cache
} frit_kv_visitor;

frit_status frit_kv_visit(const frit_kv *kv, const frit_kv_table *tables, frit_kv_which which, int32_t n_positions,
                          const frit_kv_visitor *visitor);
frit_status frit_kv_visit_states(const frit_kv *kv, int32_t state, const frit_kv_visitor *visitor);
uint64_t frit_kv_position_bytes(const frit_kv *kv, int32_t group);
// Returns where a device's part of a page lies.
frit_address frit_kv_page_address(const frit_kv *kv, int device, int32_t group, int32_t page);
// Copy within each device: a page, and a recurrent state.
frit_status frit_kv_copy_page(const frit_kv *kv, int32_t group, int32_t from, int32_t to);
frit_status frit_kv_copy_states(const frit_kv *kv, int32_t from, int32_t to);
