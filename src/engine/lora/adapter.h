// SPDX-License-Identifier: MIT
// engine/lora/adapter.h: LoRA adapters and control vectors, opened for a model and shared by sessions.
//
// An engine has its adapters in slots. Plans know no adapter: devices have a table of them, and the scales of a
// sequence say how much of each its rows have (graph/adapt.h).
#pragma once
#include "convert/convert.h"
#include "engine/model/model.h"
#include "format/adapter.h"

struct frit_adapter {
    _Atomic int n_refs;
    frit_model *model;
    frit_adapter_file file;
    frit_arena arena;
    frit_adapter_table table;
    bool steers;   // is a control vector
    frit_adapter_info info;
};

// What a step's plans have room for: plans are made for the classes, not for the adapters.
typedef struct frit_adapter_class {
    int8_t ranks;   // index of the width of a row of h (frit_adapter_class_ranks); 0: no low-rank adapters
    bool steers;    // by control vectors
} frit_adapter_class;
enum { FRIT_N_RANKS = 5 };
static inline int32_t frit_adapter_class_ranks(int i)   // 0, 32, 256, 2048, 16384
{
    return i == 0 ? 0 : 4 << 3 * i;
}

// The adapters that sessions of an engine have, each in a slot: a sequence's scales are in their order. Devices have a
// table of them.
typedef struct frit_engine_adapters {
    frit_adapter **items;   // [n]; NULL: free
    int32_t n;
    uint8_t
        *devices;   // [n_matrices + n_layers]: bit i: device i reads those of this matrix, or layer; NULL: not known
} frit_engine_adapters;

// adapter_norms.c: how much more each row of the result is, with magnitudes (DoRA), of what it would be, [n_out] in the
// model's order of rows: `order` leads from there to the adapter's. `w` is the model's matrix.
frit_status frit_adapter_gains(const frit_adapter_pair *pair, const frit_tensor *w, const frit_row_order *order,
                               float *gain);

void frit_adapter_retain(frit_adapter *adapter);
// Bytes of those tensors that device d reads: what the adapter takes in memory of the device's own. `devices` is that
// of the slots; NULL: of all tensors, which is what it takes of the host's memory since it was opened.
uint64_t frit_adapter_bytes(const frit_adapter *adapter, const uint8_t *devices, int d);
void frit_engine_adapters_deinit(frit_engine_adapters *table);
