// SPDX-License-Identifier: MIT
// engine/kv.h: the key/value cache, cut into pages so that sessions can share a prefix and need no room of a fixed
// size.
//
// A page holds FRIT_PAGE_TOKENS positions of every layer. A session maps positions to pages; pages are counted, so that
// two sessions can map the same page later. The cache belongs to the engine. Not thread-safe, like everything of an
// engine.
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

typedef struct frit_kv {
    frit_cache cache;   // what kernels see
    int32_t n_groups;   // of page tables: 2 where sessions have a source, else 1
    frit_cache_layer *layers;
    frit_device *device;
    frit_memory *memory;
    uint64_t n_bytes;
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

// The types that keys and values can be kept in, as the choices of an option.
#define FRIT_KV_TYPES "f32|f16|bf16|q8_0|q4_0|q4_1|iq4_nl|q5_0|q5_1"

typedef struct frit_kv_types {
    frit_dtype k, v;
} frit_kv_types;

static inline int32_t frit_kv_pages_of(int32_t n_positions)
{
    return n_positions / FRIT_PAGE_TOKENS + (n_positions % FRIT_PAGE_TOKENS != 0);
}

frit_status frit_kv_init(frit_kv *kv, frit_device *device, const frit_cache_spec *specs, int32_t n_layers,
                         frit_kv_types types, frit_kv_room room);
void frit_kv_deinit(frit_kv *kv);
// Of one page, all layers; UINT64_MAX if that is no number.
uint64_t frit_kv_page_bytes(const frit_cache_spec *specs, int32_t n_layers, frit_kv_types types);
// Of one session's states, all layers; UINT64_MAX if that is no number.
uint64_t frit_kv_state_bytes(const frit_cache_spec *specs, int32_t n_layers);
// Of one position, all layers, without what fills pages up.
uint64_t frit_kv_token_bytes(const frit_cache_spec *specs, int32_t n_layers, frit_kv_types types);
// FRIT_E_INVALID if the heads of a layer cannot be cut into a type's blocks. To be asked before the functions above.
frit_status frit_kv_check(const frit_cache_spec *specs, int32_t n_layers, frit_kv_types types);
// FRIT_E_LIMIT when not enough pages are free, or no slot; the map is unchanged then.
frit_status frit_kv_extend(frit_kv *kv, frit_kv_map *map, int32_t n_positions);
void frit_kv_shrink(frit_kv *kv, frit_kv_map *map, int32_t n_positions);
// A slot for the states after `at` positions, which the step that runs them writes there: 0 without one. The oldest
// copy makes room where the map has as many as it may.
int32_t frit_kv_add_copy(frit_kv *kv, frit_kv_map *map, int32_t at);
// Forgets copies of later places than this.
void frit_kv_drop_copies(frit_kv *kv, frit_kv_map *map, int32_t n_positions);
// The states become those of the last copy. How many positions they are after: 0 if there is no copy.
int32_t frit_kv_go_back(frit_kv *kv, frit_kv_map *map);

// Visits the memory that holds what a map knows of its first positions in some layers, every kind of cache; the order
// and the bytes do not depend on pages. Then the same for the states in a slot.
typedef struct frit_kv_layers {
    int32_t begin, end;
} frit_kv_layers;
typedef frit_status (*frit_kv_visit_fn)(void *ctx, uint8_t *bytes, size_t n_bytes);
frit_status frit_kv_visit(const frit_kv *kv, const frit_kv_map *map, frit_kv_layers layers, int32_t n_positions,
                          frit_kv_visit_fn visit, void *ctx);
uint64_t frit_kv_visit_bytes(const frit_kv *kv, frit_kv_layers layers);   // of one position
frit_status frit_kv_visit_states(const frit_kv *kv, int32_t slot, frit_kv_visit_fn visit, void *ctx);
// Copies what `from` knows of its first positions to `to`, another map of the cache that has as many; then the same
// for the states in a slot.
void frit_kv_copy_positions(const frit_kv *kv, const frit_kv_map *from, const frit_kv_map *to, frit_kv_layers layers,
                            int32_t n_positions);
void frit_kv_copy_states(const frit_kv *kv, int32_t from, int32_t to);
frit_status frit_kv_map_reserve(frit_kv_map *map, int32_t n_positions);
void frit_kv_map_free(frit_kv *kv, frit_kv_map *map);
