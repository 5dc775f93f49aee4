// SPDX-License-Identifier: MIT
// engine/kv/kv.h: the key/value cache, cut into pages so that sessions can share a prefix and need no room of a fixed
// size.
//
// A page holds FRIT_PAGE_TOKENS positions of the layers of a group (kv_layout.h); each device has the part of it that
// its layers need. What a session has of the cache is its map: a table of pages for each group, a slot for states, and
// snapshots. Pages have reference counts: tables and snapshots share them, and a page that is shared is copied before
// it is written. Pages before a window are given back (frit_kv_unref_passed).
//
// Where layers keep a state (graph/batch.h), a map with pages also holds a slot: memory for the states of one session
// in all layers. A state is the sum of all that was read: it cannot be shortened, and a window cannot be moved back. So
// snapshots are kept of a few places, at the beginnings of pages: the states there, in further slots, and the pages of
// the windows. A session that forgets some of its tokens goes on from the last snapshot before them
// (engine/session/session.c).
//
// A page that no table has any more is free, or idle: the prefix cache (prefix_cache.c) knows which tokens it holds,
// and gives it to a session whose text begins with them. Idle pages are taken, the longest unused first, where no page
// is free.
//
// The cache belongs to the engine. The host need not see its memory: contents go through the devices' `read`, `write`
// and `copy` (kv_bytes.c). Not thread-safe, like everything of an engine.
//
//     frit_kv_map map = {0};
//     FRIT_TRY(frit_kv_map_reserve(kv, &map, n_ctx));         // no allocation after this
//     n = frit_kv_fitting(kv, &map, n_done, n);               // so many more positions find pages
//     FRIT_TRY(frit_kv_extend(kv, &map, n_done, n));          // take them
//     ...                                                     // run the step: n_done += n
//     frit_kv_unref_passed(kv, &map, n_done);                         // give back what lies before the windows
//     FRIT_TRY(frit_kv_truncate(kv, &map, n_keep, &n_done));  // forget the rest
#pragma once
#include "backend/backend.h"
#include "base/log.h"
#include "engine/kv/kv_layout.h"
#include "graph/rotation.h"

enum { FRIT_MAX_SNAPSHOTS = 8 };   // of one session

typedef struct frit_kv_table {   // of one group
    int32_t *pages;              // [capacity]: that of position p is pages[p / FRIT_PAGE_TOKENS - first]
    int32_t first;               // 0, but for snapshots
    int32_t begin, end;          // those held, by position
} frit_kv_table;

typedef struct frit_kv_snapshot {
    int32_t n_refs;                          // maps that have it
    int32_t owner;                           // entry of the prefix cache whose states it has; -1: none
    int32_t at;                              // after so many positions
    int32_t state;                           // of the states; 0: there are none
    bool is_for_drafts;                      // before tokens that are verified; the latest of its map
    frit_kv_table tables[FRIT_MAX_GROUPS];   // of windows
} frit_kv_snapshot;

typedef struct frit_kv_page_list {   // of entries of the prefix cache, for the pages of a map from its first on
    int32_t n;
    int32_t entry;    // the last one
    uint64_t stamp;   // of the last one; it was dropped if it has another one now
} frit_kv_page_list;

typedef struct frit_kv_map {
    frit_kv_table tables[FRIT_MAX_GROUPS];
    frit_kv_page_list page_list;
    int32_t state;                                     // of states, from 1 on; 0: none
    frit_kv_snapshot *snapshots[FRIT_MAX_SNAPSHOTS];   // oldest first, which is nearest to the beginning
    int32_t n_snapshots;
} frit_kv_map;

typedef struct frit_kv_part {   // the layers that lie on one device
    frit_device *device;
    frit_memory *memory;   // NULL: none do
    frit_cache cache;      // what the device's kernels see
    frit_kv_layout layout;
} frit_kv_part;

typedef struct frit_kv_group {
    int32_t window;   // 0: all positions
    bool of_source;
    int32_t n_pages, n_free, n_idle;
    int32_t *free_pages;       // stack of free page numbers
    int32_t *refs;             // [n_pages]: tables that have it
    int32_t *owners;           // [n_pages]: entry of the prefix cache that has it; -1: none
    int32_t *before, *after;   // [n_pages]: its neighbours in the list of idle pages; -1: none
    int32_t longest, latest;   // the ends of that list: longest idle, and latest; -1: it is empty
} frit_kv_group;

// What texts of the prefix cache depend on beside their tokens: sessions with the same key share pages.
typedef struct frit_kv_root {
    struct frit_kv_root *next;
    int32_t n_refs;   // sessions and entries that have it
    int32_t child;    // the first entry without a parent; -1: none
    uint64_t stamp;
    bool is_named;   // texts have the same name in every process, so that they can be kept on disk
    uint8_t name[32];
    size_t n_bytes;
    uint8_t key[];
} frit_kv_root;

typedef struct frit_kv_entry {   // of the prefix cache: the tokens of one page, after those of its parent
    frit_kv_root *root;
    int32_t parent;          // -1: the root
    int32_t child;           // the first; -1: none. Those without a parent are children of the root
    int32_t before, after;   // its siblings; -1: none
    int32_t link;            // the next one in its bucket, or that is free
    int32_t bucket;          // -1: of fewer tokens than a page, and in no bucket
    uint64_t stamp;          // 0: free
    uint64_t used;           // on the clock
    int32_t n_tokens;
    int32_t snapshot;                 // whose states are those after its tokens; -1: none
    int32_t pages[FRIT_MAX_GROUPS];   // -1: none, as of windows that have passed
    int32_t host_page;                // in the host's memory, of pages that a device had no room for; -1: none
    bool in_host[FRIT_MAX_GROUPS];    // whether it has the group's
    bool on_disk;                     // there is a file of it, or was
    int32_t tokens[FRIT_PAGE_TOKENS];
} frit_kv_entry;

typedef struct frit_kv_prefix {   // the prefix cache
    bool on;
    frit_kv_entry *entries;      // [n_entries]
    int32_t n_entries, n_used;   // those from n_used on were never used
    int32_t first_free;          // -1: none
    int32_t *buckets;            // [n_buckets]: entries of whole pages, by their parent and tokens
    int32_t n_buckets;           // a power of two
    uint64_t clock;
    frit_kv_root *roots;
} frit_kv_prefix;

typedef struct frit_kv_host {   // pages of the prefix cache in the host's memory (kv_host.c)
    frit_memory *memory;        // of the CPU; NULL: none are kept
    uint64_t page_bytes, offsets[FRIT_MAX_GROUPS][FRIT_MAX_DEVICES];   // of a group's part within a slot
    int32_t *free_pages;                                               // stack
    int32_t n_pages, n_free;
} frit_kv_host;

typedef struct frit_kv {
    frit_kv_part parts[FRIT_MAX_DEVICES];   // [n_parts], by number of the device
    int n_parts;
    frit_kv_group groups[FRIT_MAX_GROUPS];
    int32_t n_groups;
    bool has_windows;
    frit_cache_layer *layers;   // [n_layers], of all parts
    const int8_t *devices;      // [n_layers], or NULL
    int32_t n_layers;
    uint64_t n_bytes;       // of all parts
    uint64_t state_bytes;   // of one slot; 0: no layer has a state
    int32_t *free_states;   // stack
    int32_t n_states, n_free_states;
    frit_kv_snapshot *snapshots;   // [n_snapshots]
    int32_t n_snapshots;
    int32_t max_snapshots;   // of one map; 0: sessions can go back anywhere
    frit_kv_prefix prefix;
    frit_kv_host host;
    struct frit_kv_disk *disk;   // NULL: nothing is kept there (kv_disk.c)
} frit_kv;

// The shape's layers are on devices[0...n_devices); its list of them must outlive the cache.
frit_status frit_kv_init(frit_kv *kv, frit_device *const *devices, int n_devices, const frit_kv_shape *shape,
                         const frit_kv_room *room);
void frit_kv_deinit(frit_kv *kv);

frit_status frit_kv_map_reserve(const frit_kv *kv, frit_kv_map *map, int32_t n_positions);
void frit_kv_map_free(frit_kv_map *map);   // after its pages were released
// Whether there are pages now for all n positions of a text that has none yet, and a slot. So many of them others hold,
// and share them.
bool frit_kv_has_room(const frit_kv *kv, const frit_kv_map *map, int32_t n, int32_t n_shared_pages);
// How many of n positions after n_done could have pages, and a slot, now.
int32_t frit_kv_fitting(const frit_kv *kv, const frit_kv_map *map, int32_t n_done, int32_t n);
// Takes pages for n positions after n_done. FRIT_E_LIMIT, and nothing is taken, if they do not fit.
frit_status frit_kv_extend(frit_kv *kv, frit_kv_map *map, int32_t n_done, int32_t n);
// For a source of n positions, which is encoded: its pages, and for the time of the step pages of the text's groups.
bool frit_kv_source_fits(const frit_kv *kv, const frit_kv_map *map, int32_t n);
frit_status frit_kv_extend_source(frit_kv *kv, frit_kv_map *map, int32_t n);
// Gives back the map's references to pages that no row from n_done on looks at: those before a window.
void frit_kv_unref_passed(frit_kv *kv, frit_kv_map *map, int32_t n_done);
// Keeps at most n_keep of *n_done positions: as many as there are snapshots or pages for. If the device fails, none.
frit_status frit_kv_truncate(frit_kv *kv, frit_kv_map *map, int32_t n_keep, int32_t *n_done);
void frit_kv_release(frit_kv *kv, frit_kv_map *map);   // all but the source
void frit_kv_release_source(frit_kv *kv, frit_kv_map *map);
// A second map with the same positions; the source's too, if it is encoded. `to` is empty, and stays so if this fails:
// FRIT_E_LIMIT without a slot for states.
frit_status frit_kv_share(frit_kv *kv, frit_kv_map *to, const frit_kv_map *from, int32_t n_done, bool source);
// The map gets pages for its first n positions, as far as a row after them looks back; contents are the caller's.
// Groups without a window are left out if `windows_only`. FRIT_E_LIMIT if these are not free.
frit_status frit_kv_alloc(frit_kv *kv, frit_kv_map *map, int32_t n, bool windows_only);
frit_status frit_kv_alloc_source(frit_kv *kv, frit_kv_map *map, int32_t n);   // of a source's groups

// Such as "3 of 64 pages of 32 tokens are free".
void frit_kv_describe(const frit_kv *kv, char *text, size_t capacity);

// A snapshot of the place after `at` positions for which there are pages; a multiple of FRIT_PAGE_TOKENS, but where it
// is `is_for_drafts`. The step that runs them writes the states to its slot. NULL: none is left, or needed. That of
// earlier drafts makes room, then the oldest where the map has as many as it may.
const frit_kv_snapshot *frit_kv_add_snapshot(frit_kv *kv, frit_kv_map *map, int32_t at, bool is_for_drafts);
void frit_kv_drop_draft_snapshot(frit_kv *kv, frit_kv_map *map);   // all were right
// Whether sessions can go back to what is before tokens that are verified.
bool frit_kv_can_draft(const frit_kv *kv);
void frit_kv_drop_snapshots(frit_kv *kv, frit_kv_map *map, int32_t n_positions);   // of later places
bool frit_kv_drop_oldest(frit_kv *kv, frit_kv_map *map);                           // false: it has no snapshot

// ------------------------------------------------------------------------------- pages (kv_pages.c)

// Pages that can be taken: free ones, and idle ones.
static inline int32_t frit_kv_available(const frit_kv_group *group)
{
    return group->n_free + group->n_idle;
}
int32_t frit_kv_alloc_page(frit_kv *kv, int32_t group);         // there must be one available; it has one table then
void frit_kv_ref_page(frit_kv_group *group, int32_t page);      // one more table has it
void frit_kv_unref_page(frit_kv_group *group, int32_t page);    // one less
void frit_kv_disown_page(frit_kv_group *group, int32_t page);   // the prefix cache does not have it any more

// ------------------------------------------------------------------------------- shifts (kv_shift.c)

// Positions [n_keep, n_keep + n_drop) go, those after them move down by n_drop. Both are multiples of FRIT_PAGE_TOKENS.
typedef struct frit_kv_shift {
    int32_t n_keep, n_drop;
    const frit_key_rotation *rotations;   // [n_layers]
} frit_kv_shift;

// Whether rows after the shift of n_done positions find all that they look back at: a window may have passed what is
// kept.
bool frit_kv_can_shift(const frit_kv *kv, const frit_kv_map *map, const frit_kv_shift *shift, int32_t n_done);
// Gives back the pages of the positions that go, and rotates the keys of those that move, in pages that only this map
// has; *n_done is what is left. FRIT_E_LIMIT where pages must be copied and too few are free, and FRIT_E_MEMORY: the
// map is as it was. If the device fails, it is empty, and *n_done 0.
frit_status frit_kv_shift_map(frit_kv *kv, frit_kv_map *map, const frit_kv_shift *shift, int32_t *n_done);

// ------------------------------------------------------------------------------- the prefix cache (prefix_cache.c)

frit_status frit_kv_prefix_init(frit_kv *kv, const frit_kv_room *room);
void frit_kv_prefix_deinit(frit_kv *kv);
// The root with this key; made if it is new. Counted: to be given back.
frit_status frit_kv_root_get(frit_kv *kv, const void *key, size_t n_bytes, frit_kv_root **out);
void frit_kv_root_ref(frit_kv_root *root);
void frit_kv_root_unref(frit_kv *kv, frit_kv_root *root);   // NULL is allowed

typedef struct frit_kv_text {   // what a map holds, or shall hold
    frit_kv_root *root;
    const frit_token *tokens;
    int32_t n;
} frit_kv_text;

typedef struct frit_kv_found {
    int32_t n;        // positions; 0: nothing was found
    int32_t n_full;   // whole pages
    int32_t entry;    // that of the last whole page; -1: none
    int32_t part;     // entry that has the n % FRIT_PAGE_TOKENS positions after them; -1: none
} frit_kv_found;

// The longest beginning of a text from which a session can go on.
frit_kv_found frit_kv_find(const frit_kv *kv, const frit_kv_text *text);
int32_t frit_kv_find_page(const frit_kv *kv, const frit_kv_root *root, int32_t parent, const frit_token *tokens);
// How many whole pages of a text have entries, and the entry of the last one; -1: none has.
int32_t frit_kv_find_pages(const frit_kv *kv, const frit_kv_text *text, int32_t *entry);
// An entry with these pages, -1 of groups that it lacks, each with one owner; -1: there is no room.
int32_t frit_kv_add_page(frit_kv *kv, frit_kv_root *root, int32_t parent, const frit_token *tokens,
                         const int32_t pages[FRIT_MAX_GROUPS]);
// Of these, pages that other maps hold.
int32_t frit_kv_found_shared(const frit_kv *kv, const frit_kv_found *found);
// Gives them to an empty map. FRIT_E_LIMIT without a slot for states; nothing is taken if it fails.
frit_status frit_kv_ref_found(frit_kv *kv, frit_kv_map *map, const frit_kv_found *found);
// Notes the whole pages of what the map holds, and where it `ends` the last one and the states too.
void frit_kv_cache_text(frit_kv *kv, frit_kv_map *map, const frit_kv_text *text, bool ends);
void frit_kv_trim_page_list(frit_kv *kv, frit_kv_map *map, int32_t n_positions);   // to those
// The map's texts are not to be found any more: what it computed is not to be trusted.
void frit_kv_forget_text(frit_kv *kv, frit_kv_map *map);
void frit_kv_forget_page(frit_kv *kv, int32_t group, int32_t page);    // its contents will change
void frit_kv_reclaim_page(frit_kv *kv, int32_t group, int32_t page);   // the same of an idle one: it may go to the host
frit_kv_snapshot *frit_kv_free_snapshot(frit_kv *kv);   // with no map; one of the prefix cache where none is free

// ------------------------------------------------------------------------------- the host's memory (kv_host.c)

// As many slots as frit_kv_n_host_pages says.
frit_status frit_kv_host_init(frit_kv *kv, frit_device *cpu, const frit_kv_sizes *sizes, const frit_kv_room *room);
void frit_kv_host_deinit(frit_kv *kv);
bool frit_kv_host_save(frit_kv *kv, frit_kv_entry *entry, int32_t group);   // false: there is no room
// Into a page of the device; the host has it no more.
frit_status frit_kv_host_load(frit_kv *kv, frit_kv_entry *entry, int32_t group, int32_t page);
void frit_kv_host_drop(frit_kv *kv, frit_kv_entry *entry, int32_t group);

// Where a page's part on a device lies in a slot.
frit_address frit_kv_host_address(const frit_kv *kv, int part, int32_t group, int32_t host_page);

// ------------------------------------------------------------------------------- on disk (kv_disk.c)

typedef struct frit_kv_disk_options {
    const char *folder;     // made if it is not there
    uint64_t max_bytes;     // of its files
    const void *identity;   // what keys and values depend on beside tokens and a root's key
    size_t n_identity;
    int32_t n_ctx;
    frit_log log;
} frit_kv_disk_options;

// Of a cache that was made. Warns, and keeps nothing, where texts have states or there is no prefix cache.
frit_status frit_kv_disk_init(frit_kv *kv, const frit_kv_disk_options *options);
void frit_kv_disk_deinit(frit_kv *kv);   // writes what is in memory
void frit_kv_disk_name_root(const frit_kv *kv, frit_kv_root *root);
void frit_kv_disk_name(const frit_kv *kv, int32_t entry);   // a new one of a whole page
void frit_kv_disk_save(frit_kv *kv, int32_t entry);         // which leaves memory
// Whether a session with this text has to wait for pages that are being read. *n_known: pages that were known when it
// asked last; -1: it has not asked.
bool frit_kv_disk_look(frit_kv *kv, const frit_kv_text *text, int32_t *n_known);
void frit_kv_disk_land(frit_kv *kv);   // takes what has been read
bool frit_kv_disk_wait(frit_kv *kv);   // waits for it, and takes it; false: nothing is being read

// ------------------------------------------------------------------------------- contents (kv_bytes.c)

// Visits, on the host, what rows after the first n positions look at, group by group: of text, of the source, or of
// layers with a window only. The order and the bytes do not depend on pages. Then the same for the states in a slot.
typedef enum frit_kv_which { FRIT_KV_TEXT, FRIT_KV_SOURCE, FRIT_KV_WINDOWS } frit_kv_which;
typedef struct frit_kv_visitor {
    frit_status (*visit)(void *ctx, uint8_t *bytes, size_t n_bytes);
    void *ctx;
    bool fills;   // it sets the bytes, which then go to the cache
} frit_kv_visitor;

frit_status frit_kv_visit(const frit_kv *kv, const frit_kv_table *tables, frit_kv_which which, int32_t n_positions,
                          const frit_kv_visitor *visitor);
frit_status frit_kv_visit_states(const frit_kv *kv, int32_t state, const frit_kv_visitor *visitor);
uint64_t frit_kv_position_bytes(const frit_kv *kv, int32_t group);
// Where a page's part on a device lies.
frit_address frit_kv_page_address(const frit_kv *kv, int part, int32_t group, int32_t page);
// Copies within each device: a page, and the states in a slot.
frit_status frit_kv_copy_page(const frit_kv *kv, int32_t group, int32_t from, int32_t to);
frit_status frit_kv_copy_states(const frit_kv *kv, int32_t from, int32_t to);
