// SPDX-License-Identifier: MIT
// engine/kv.h: the key/value cache, cut into pages so that sessions can share a prefix and need no room of a fixed
// size.
//
// A page holds FRIT_PAGE_TOKENS positions of the layers of a group (kv_layout.h); each device has the part of it that
// its layers need. A session has a table of pages for each group. Pages are counted: tables and snapshots share them,
// and a page that is shared is copied before it is written. Pages before a window are given back.
//
// Where layers keep a state (graph/batch.h), a map with pages also holds a slot of it. A state is the sum of all that
// was read: it cannot be shortened, and a window cannot be moved back. So snapshots are kept of a few places, at the
// beginnings of pages: the states there, in further slots, and the pages of the windows. A session that forgets some of
// its tokens goes on from the last snapshot before them (engine/session.c).
//
// The cache belongs to the engine. The host need not see its memory: contents go through the devices' `read`, `write`
// and `copy` (kv_bytes.c). Not thread-safe, like everything of an engine.
//
//     frit_kv_map map = {0};
//     FRIT_TRY(frit_kv_map_reserve(kv, &map, n_ctx));         // no allocation after this
//     n = frit_kv_fitting(kv, &map, n_done, n);               // so many more positions find pages
//     FRIT_TRY(frit_kv_extend(kv, &map, n_done, n));          // take them
//     ...                                                     // run the step: n_done += n
//     frit_kv_pass(kv, &map, n_done);                         // give back what lies before the windows
//     FRIT_TRY(frit_kv_truncate(kv, &map, n_keep, &n_done));  // forget the rest
#pragma once
#include "backend/backend.h"
#include "engine/kv_layout.h"

enum { FRIT_MAX_SNAPSHOTS = 8 };   // of one session

typedef struct frit_kv_table {   // of one group
    int32_t *pages;              // [capacity]: that of position p is pages[p / FRIT_PAGE_TOKENS - first]
    int32_t first;               // 0, but for snapshots
    int32_t begin, end;          // those held, by position
} frit_kv_table;

typedef struct frit_kv_snapshot {
    int32_t n_refs;                          // maps that have it; 0: free
    int32_t at;                              // after so many positions
    int32_t slot;                            // of the states; 0: there are none
    frit_kv_table tables[FRIT_MAX_GROUPS];   // of windows
} frit_kv_snapshot;

typedef struct frit_kv_map {
    frit_kv_table tables[FRIT_MAX_GROUPS];
    int32_t slot;                                      // of states, from 1 on; 0: none
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
    int32_t n_pages, n_free;
    int32_t *free_pages;   // stack of free page numbers
    int32_t *refs;         // [n_pages]: tables that have it
} frit_kv_group;

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
    int32_t *free_slots;    // stack
    int32_t n_slots, n_free_slots;
    frit_kv_snapshot *snapshots;   // [n_snapshots]
    int32_t n_snapshots;
    int32_t max_snapshots;   // of one map; 0: sessions can go back anywhere
} frit_kv;

// The shape's layers are on devices[0...n_devices); its list of them must outlive the cache.
frit_status frit_kv_init(frit_kv *kv, frit_device *const *devices, int n_devices, const frit_kv_shape *shape,
                         const frit_kv_room *room);
void frit_kv_deinit(frit_kv *kv);

frit_status frit_kv_map_reserve(const frit_kv *kv, frit_kv_map *map, int32_t n_positions);
void frit_kv_map_free(frit_kv_map *map);   // after its pages were released
// Whether there are pages now for all n positions of a text that has none yet, and a slot.
bool frit_kv_admits(const frit_kv *kv, const frit_kv_map *map, int32_t n);
// How many of n positions after n_done could have pages, and a slot, now.
int32_t frit_kv_fitting(const frit_kv *kv, const frit_kv_map *map, int32_t n_done, int32_t n);
// Takes pages for n positions after n_done. FRIT_E_LIMIT, and nothing is taken, if they do not fit.
frit_status frit_kv_extend(frit_kv *kv, frit_kv_map *map, int32_t n_done, int32_t n);
// For a source of n positions, which is encoded: its pages, and for the time of the step pages of the text's groups.
bool frit_kv_source_fits(const frit_kv *kv, const frit_kv_map *map, int32_t n);
frit_status frit_kv_extend_source(frit_kv *kv, frit_kv_map *map, int32_t n);
// Gives back pages that no row from n_done on looks at.
void frit_kv_pass(frit_kv *kv, frit_kv_map *map, int32_t n_done);
// Keeps at most n_keep of *n_done positions: as many as there are snapshots or pages for. If the device fails, none.
frit_status frit_kv_truncate(frit_kv *kv, frit_kv_map *map, int32_t n_keep, int32_t *n_done);
void frit_kv_release(frit_kv *kv, frit_kv_map *map);   // all but the source
void frit_kv_release_source(frit_kv *kv, frit_kv_map *map);
// A second map with the same positions; the source's too, if it is encoded. `to` is empty, and stays so if this fails:
// FRIT_E_LIMIT without a slot for states.
frit_status frit_kv_share(frit_kv *kv, frit_kv_map *to, const frit_kv_map *from, int32_t n_done, bool source);
// The map gets pages for its first n positions, as far as a row after them looks back; contents are the caller's.
// Groups without a window are left out if `windows_only`. FRIT_E_LIMIT if these are not free.
frit_status frit_kv_hold(frit_kv *kv, frit_kv_map *map, int32_t n, bool windows_only);
frit_status frit_kv_hold_source(frit_kv *kv, frit_kv_map *map, int32_t n);   // of a source's groups

// Such as "3 of 64 pages of 32 tokens are free".
void frit_kv_describe(const frit_kv *kv, char *text, size_t capacity);

// A snapshot of the place after `at` positions, a multiple of FRIT_PAGE_TOKENS for which there are pages. The step that
// runs them writes the states to its slot. NULL: none is left, or needed. The oldest makes room where the
// map has as many as it may.
const frit_kv_snapshot *frit_kv_add_snapshot(frit_kv *kv, frit_kv_map *map, int32_t at);
void frit_kv_drop_snapshots(frit_kv *kv, frit_kv_map *map, int32_t n_positions);   // of later places
bool frit_kv_drop_oldest(frit_kv *kv, frit_kv_map *map);                           // false: it has no snapshot

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
frit_status frit_kv_visit_states(const frit_kv *kv, int32_t slot, const frit_kv_visitor *visitor);
uint64_t frit_kv_position_bytes(const frit_kv *kv, int32_t group);
// Copies within each device: a page, and the states in a slot.
frit_status frit_kv_copy_page(const frit_kv *kv, int32_t group, int32_t from, int32_t to);
frit_status frit_kv_copy_states(const frit_kv *kv, int32_t from, int32_t to);
