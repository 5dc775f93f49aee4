// SPDX-License-Identifier: MIT
// engine/kv.h: the key/value cache, cut into pages so that sessions can share a prefix and need no room of a fixed
// size.
//
// A page holds FRIT_PAGE_TOKENS positions of every layer; each device has the part of it that its layers need. A
// session maps positions to pages; pages are counted, so that two sessions can map the same page later. The cache
// belongs to the engine. Not thread-safe, like everything of an engine.
//
// The host need not see the memory: contents go through the devices' `read`, `write` and `copy` (kv_bytes.c).
//
// Where layers keep a state (graph/batch.h), a map with pages also holds a slot of it. A state is the sum of all that
// was read: it cannot be shortened. So copies of it are kept as it was at a few places, in further slots, and a session
// that forgets some of its tokens goes on from the last copy before them (engine/session.c).
//
//     frit_kv_map map = {0};
//     FRIT_TRY(frit_kv_map_reserve(&map, n_ctx));     // no allocation after this
//     FRIT_TRY(frit_kv_extend(kv, &map, n));          // pages for positions 0...n-1
//     ...                                             // run the step
//     frit_kv_shrink(kv, &map, n_keep);               // forget the rest
#pragma once
#include "backend/backend.h"
#include "engine/kv_layout.h"

enum { FRIT_MAX_COPIES = 8 };   // of the states of one session

typedef struct frit_kv_copy {   // the states after so many positions
    int32_t slot, at;
} frit_kv_copy;

typedef struct frit_kv_map {
    int32_t *pages;
    int32_t n_pages, capacity;
    int32_t slot;                           // of states, from 1 on; 0: none
    frit_kv_copy copies[FRIT_MAX_COPIES];   // oldest first, which is nearest to the beginning
    int32_t n_copies;
} frit_kv_map;

typedef struct frit_kv_room {
    int32_t n_pages;    // of all layers
    int32_t n_slots;    // states of sessions
    int32_t n_copies;   // of the states of each of them; at most FRIT_MAX_COPIES
} frit_kv_room;

typedef struct frit_kv_part {   // the layers that lie on one device
    frit_device *device;
    frit_memory *memory;   // NULL: none do
    frit_cache cache;      // what the device's kernels see
    uint64_t page_bytes;
} frit_kv_part;

typedef struct frit_kv {
    frit_kv_part parts[FRIT_MAX_DEVICES];   // [n_parts], by number of the device
    int n_parts;
    frit_cache_layer *layers;   // [n_layers], of all parts
    const int8_t *devices;      // [n_layers], or NULL
    int32_t n_layers, n_pages;
    int32_t n_groups;      // of page tables: 2 where sessions have a source, else 1
    uint64_t n_bytes;      // of all parts
    int32_t *free_pages;   // stack of free page numbers
    int32_t n_free;
    uint16_t *refs;         // [n_pages]
    uint64_t state_bytes;   // of one slot; 0: no layer has a state
    int32_t *free_slots;    // stack
    int32_t n_slots, n_free_slots;
    int32_t *free_copies;   // stack of the slots after those
    int32_t n_copies, n_free_copies;
    int32_t max_copies;   // of one map
} frit_kv;

static inline int32_t frit_kv_pages_of(int32_t n_positions)
{
    return n_positions / FRIT_PAGE_TOKENS + (n_positions % FRIT_PAGE_TOKENS != 0);
}

// The shape's layers are on devices[0...n_devices); its list of them must outlive the cache.
frit_status frit_kv_init(frit_kv *kv, frit_device *const *devices, int n_devices, const frit_kv_shape *shape,
                         frit_kv_room room);
void frit_kv_deinit(frit_kv *kv);
// FRIT_E_LIMIT when not enough pages are free, or no slot; the map is unchanged then.
frit_status frit_kv_extend(frit_kv *kv, frit_kv_map *map, int32_t n_positions);
void frit_kv_shrink(frit_kv *kv, frit_kv_map *map, int32_t n_positions);
// A slot for the states after `at` positions, which the step that runs them writes there: 0 without one. The oldest
// copy makes room where the map has as many as it may.
int32_t frit_kv_add_copy(frit_kv *kv, frit_kv_map *map, int32_t at);
// Forgets copies of later places than this.
void frit_kv_drop_copies(frit_kv *kv, frit_kv_map *map, int32_t n_positions);
// The states become those of the last copy; *at: how many positions they are after, 0 if there is no copy.
frit_status frit_kv_go_back(frit_kv *kv, frit_kv_map *map, int32_t *at);
frit_status frit_kv_map_reserve(frit_kv_map *map, int32_t n_positions);
void frit_kv_map_free(frit_kv *kv, frit_kv_map *map);

// ------------------------------------------------------------------------------- contents (kv_bytes.c)

typedef struct frit_kv_layers {
    int32_t begin, end;
} frit_kv_layers;

// Visits, on the host, what a map knows of its first positions in some layers, every kind of cache; the order and the
// bytes do not depend on pages. Then the same for the states in a slot.
typedef struct frit_kv_visitor {
    frit_status (*visit)(void *ctx, uint8_t *bytes, size_t n_bytes);
    void *ctx;
    bool fills;   // it sets the bytes, which then go to the cache
} frit_kv_visitor;

frit_status frit_kv_visit(const frit_kv *kv, const frit_kv_map *map, frit_kv_layers layers, int32_t n_positions,
                          const frit_kv_visitor *visitor);
uint64_t frit_kv_visit_bytes(const frit_kv *kv, frit_kv_layers layers);   // of one position
frit_status frit_kv_visit_states(const frit_kv *kv, int32_t slot, const frit_kv_visitor *visitor);
// Copies within each device: what `from` knows of its first positions to `to`, another map of the cache that has as
// many; then the same for the states in a slot.
frit_status frit_kv_copy_positions(const frit_kv *kv, const frit_kv_map *from, const frit_kv_map *to,
                                   int32_t n_positions);
frit_status frit_kv_copy_states(const frit_kv *kv, int32_t from, int32_t to);
