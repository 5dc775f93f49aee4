// SPDX-License-Identifier: MIT
// engine/kv_layout.h: what the layers of a model keep, and where it lies in the memory of their devices.
#pragma once
#include "graph/batch.h"
#include "graph/segment.h"

#include "base/status.h"

// The types that keys and values can be kept in, as the choices of an option.
#define FRIT_KV_TYPES "f32|f16|bf16|q8_0|q4_0|q4_1|iq4_nl|q5_0|q5_1"

typedef struct frit_kv_types {
    frit_dtype k, v;
} frit_kv_types;

typedef struct frit_kv_shape {
    const frit_cache_spec *specs;   // [n_layers]
    int32_t n_layers;
    frit_kv_types types;
    const int8_t *devices;   // [n_layers]: by number, as in frit_placement; NULL: all on device 0
} frit_kv_shape;

// FRIT_E_INVALID if the heads of a layer cannot be cut into a type's blocks. To be asked before the functions below.
frit_status frit_kv_check(const frit_kv_shape *shape);
int frit_kv_device_of(const frit_kv_shape *shape, int32_t layer);
// Of one page, all layers of all devices; UINT64_MAX if that is no number.
uint64_t frit_kv_page_bytes(const frit_kv_shape *shape);
// Of one session's states, all layers; UINT64_MAX if that is no number.
uint64_t frit_kv_state_bytes(const frit_kv_shape *shape);
// The same of the layers on one device.
uint64_t frit_kv_page_bytes_on(const frit_kv_shape *shape, int device);
uint64_t frit_kv_state_bytes_on(const frit_kv_shape *shape, int device);
// Of one position, all layers, without what fills pages up.
uint64_t frit_kv_token_bytes(const frit_kv_shape *shape);

typedef struct frit_kv_layout {   // of one device's memory
    uint64_t n_bytes;
    uint64_t page_bytes;   // from one page to the next; page 0 is at the beginning
} frit_kv_layout;

// Lays out the memory of a device with so many pages and slots of states; fills in the device's layers of all.
frit_status frit_kv_lay_out(const frit_kv_shape *shape, int device, int32_t n_pages, int32_t n_slots,
                            frit_cache_layer *layers, frit_kv_layout *out);
