// SPDX-License-Identifier: MIT
// engine/kv/kv_layout.h: what layers store in the cache, and its layout in the memory of devices.
//
// Layers with the same attention window form a group. There is a group of full attention, one for each window size, and
// one for the source of an encoder-decoder. Each group has pages of its own size.
#pragma once
#include "graph/batch.h"
#include "graph/segment.h"

#include "base/status.h"

// Types of cached keys and values, as the choices of an option.
#define FRIT_KV_TYPES "f32|f16|bf16|fp8|q8_0|q4_0|q4_1|iq4_nl|q5_0|q5_1"

// FRIT_WINDOW_SLACK pages before a window stay, so that a session can drop its last tokens cheaply.
enum { FRIT_MAX_GROUPS = 4, FRIT_WINDOW_SLACK = 2 };

typedef struct frit_kv_types {
    frit_dtype k, v;
} frit_kv_types;

typedef struct frit_kv_shape {
    const frit_cache_spec *specs;   // [n_layers]
    int32_t n_layers;
    frit_kv_types types;
    const int8_t *devices;   // [n_layers]: device number, as in frit_placement; NULL: device 0
    bool full_windows;       // layers with a window store all positions
    const int8_t *parts;     // [n_layers]: frit_cache_spec.n_parts; NULL: no device is a group
    bool of_rank;            // sizes are those of a rank
} frit_kv_shape;

// Capacity of the cache.
typedef struct frit_kv_room {
    int32_t n_ctx;         // tokens of a session at most
    int32_t n_sessions;    // number of sessions of n_ctx tokens
    int32_t n_rows;        // rows of a step at most
    int32_t n_snapshots;   // per session
    bool prefixes;         // pages of sessions stay for others (prefix_cache.c); needs no further pages
    uint64_t host_bytes;   // host memory for evicted pages
} frit_kv_room;

typedef struct frit_kv_group_size {
    int32_t window;        // positions that a row attends to, its own included; 0: all
    bool of_source;        // positions are a source's
    uint64_t page_bytes;   // on all devices; UINT64_MAX: overflow
} frit_kv_group_size;

typedef struct frit_kv_sizes {
    frit_kv_group_size groups[FRIT_MAX_GROUPS];
    int32_t n_groups;
    uint64_t state_bytes;   // of one session, all layers; UINT64_MAX: overflow
} frit_kv_sizes;

static inline int32_t frit_kv_pages_of(int32_t n_positions)
{
    return n_positions / FRIT_PAGE_TOKENS + (n_positions % FRIT_PAGE_TOKENS != 0);
}

// Returns the first position of the first page that a row at `position` reads.
static inline int32_t frit_kv_first_position(int32_t window, int32_t position)
{
    if (window <= 0 || position < window) return 0;
    return (position - window + 1) / FRIT_PAGE_TOKENS * FRIT_PAGE_TOKENS;
}

// FRIT_E_INVALID if the heads of a layer do not consist of whole blocks of the type. Called before the functions below.
frit_status frit_kv_check(const frit_kv_shape *shape);
bool frit_kv_can(const frit_kv_shape *shape);   // like frit_kv_check, without an error
int frit_kv_device_of(const frit_kv_shape *shape, int32_t layer);
void frit_kv_measure(const frit_kv_shape *shape, frit_kv_sizes *sizes);
// Adds the sizes on one device to `sizes`, which begin as zeros.
void frit_kv_measure_on(const frit_kv_shape *shape, int device, frit_kv_sizes *sizes);
// Bytes of one position in all layers, without padding.
uint64_t frit_kv_token_bytes(const frit_kv_shape *shape);
// frit_kv_n_pages: pages of a group that the capacity needs. frit_kv_bytes: bytes of all groups; UINT64_MAX: overflow.
int64_t frit_kv_n_pages(const frit_kv_group_size *group, const frit_kv_room *room);
uint64_t frit_kv_bytes(const frit_kv_sizes *sizes, const frit_kv_room *room);
// Host memory for evicted pages: bytes of a host page, which holds a page of every group, and the number of them in
// room->host_bytes. 0 if not one fits.
uint64_t frit_kv_host_page_bytes(const frit_kv_sizes *sizes);
int32_t frit_kv_n_host_pages(const frit_kv_sizes *sizes, const frit_kv_room *room);

typedef struct frit_kv_layout {   // of one device's memory
    uint64_t n_bytes;
    uint64_t offsets[FRIT_MAX_GROUPS];      // of page 0 of each group
    uint64_t page_bytes[FRIT_MAX_GROUPS];   // distance between pages
} frit_kv_layout;

typedef struct frit_kv_counts {
    int32_t n_pages[FRIT_MAX_GROUPS];
    int32_t n_states;
} frit_kv_counts;

// Lays out the memory of a device and fills in the device's layers in `layers`. `values_by_dim` is of the device's
// backend.
frit_status frit_kv_lay_out(const frit_kv_shape *shape, int device, bool values_by_dim, const frit_kv_counts *counts,
                            frit_cache_layer *layers, frit_kv_layout *out);
