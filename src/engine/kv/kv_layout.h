// SPDX-License-Identifier: MIT
// engine/kv/kv_layout.h: what the layers of a model keep, and where it lies in the memory of their devices.
//
// Layers whose rows look back equally far form a group, which has pages of its own: all positions of full attention,
// those within each size of window, those of a source (the text that an encoder-decoder reads). Pages of
// groups have sizes of their own.
#pragma once
#include "graph/batch.h"
#include "graph/segment.h"

#include "base/status.h"

// The types that keys and values can be kept in, as the choices of an option.
#define FRIT_KV_TYPES "f32|f16|bf16|fp8|q8_0|q4_0|q4_1|iq4_nl|q5_0|q5_1"

// Pages before a window that stay, so that a session can forget its last tokens without further ado.
enum { FRIT_MAX_GROUPS = 4, FRIT_WINDOW_SLACK = 2 };

typedef struct frit_kv_types {
    frit_dtype k, v;
} frit_kv_types;

typedef struct frit_kv_shape {
    const frit_cache_spec *specs;   // [n_layers]
    int32_t n_layers;
    frit_kv_types types;
    const int8_t *devices;   // [n_layers]: by number, as in frit_placement; NULL: all on device 0
    bool full_windows;       // layers with a window keep all positions
} frit_kv_shape;

// What the cache must have room for.
typedef struct frit_kv_room {
    int32_t n_ctx;         // tokens of a session at most
    int32_t n_sessions;    // that can all be so long
    int32_t n_rows;        // of a step at most
    int32_t n_snapshots;   // of each session
    bool prefixes;         // what sessions computed stays for others (prefix_cache.c); takes no pages
    uint64_t host_bytes;   // of the host's memory for such pages that are evicted
} frit_kv_room;

typedef struct frit_kv_group_size {
    int32_t window;        // positions that rows look back at, the own one included; 0: all
    bool of_source;        // positions are those of a source
    uint64_t page_bytes;   // on all devices; UINT64_MAX: no number
} frit_kv_group_size;

typedef struct frit_kv_sizes {
    frit_kv_group_size groups[FRIT_MAX_GROUPS];
    int32_t n_groups;
    uint64_t state_bytes;   // of one session, all layers; UINT64_MAX: no number
} frit_kv_sizes;

static inline int32_t frit_kv_pages_of(int32_t n_positions)
{
    return n_positions / FRIT_PAGE_TOKENS + (n_positions % FRIT_PAGE_TOKENS != 0);
}

// The first position of the first page that a row at this position looks at.
static inline int32_t frit_kv_first_position(int32_t window, int32_t position)
{
    if (window <= 0 || position < window) return 0;
    return (position - window + 1) / FRIT_PAGE_TOKENS * FRIT_PAGE_TOKENS;
}

// FRIT_E_INVALID if the heads of a layer cannot be cut into a type's blocks. To be asked before the functions below.
frit_status frit_kv_check(const frit_kv_shape *shape);
bool frit_kv_can(const frit_kv_shape *shape);   // the same without a sentence
int frit_kv_device_of(const frit_kv_shape *shape, int32_t layer);
void frit_kv_measure(const frit_kv_shape *shape, frit_kv_sizes *sizes);
// Adds what lies on one device to sizes that begin as zeros.
void frit_kv_measure_on(const frit_kv_shape *shape, int device, frit_kv_sizes *sizes);
// Of one position, all layers, without what fills pages up.
uint64_t frit_kv_token_bytes(const frit_kv_shape *shape);
// Pages of a group that sessions of this room need; and bytes of all, UINT64_MAX if that is no number.
int64_t frit_kv_n_pages(const frit_kv_group_size *group, const frit_kv_room *room);
uint64_t frit_kv_bytes(const frit_kv_sizes *sizes, const frit_kv_room *room);
// Of the host's memory for pages that are evicted: as many slots, each with a page of every group, as room->host_bytes
// has room for. 0: not even one.
uint64_t frit_kv_host_page_bytes(const frit_kv_sizes *sizes);
int32_t frit_kv_n_host_pages(const frit_kv_sizes *sizes, const frit_kv_room *room);

typedef struct frit_kv_layout {   // of one device's memory
    uint64_t n_bytes;
    uint64_t offsets[FRIT_MAX_GROUPS];      // of page 0 of each group
    uint64_t page_bytes[FRIT_MAX_GROUPS];   // from one page to the next
} frit_kv_layout;

typedef struct frit_kv_counts {
    int32_t n_pages[FRIT_MAX_GROUPS];
    int32_t n_states;   // of states
} frit_kv_counts;

// Lays out the memory of a device; fills in the device's layers of all. values_by_dim: of its backend.
frit_status frit_kv_lay_out(const frit_kv_shape *shape, int device, bool values_by_dim, const frit_kv_counts *counts,
                            frit_cache_layer *layers, frit_kv_layout *out);
