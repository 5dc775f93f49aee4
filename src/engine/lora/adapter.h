// SPDX-License-Identifier: MIT
// engine/lora/adapter.h: LoRA adapters and control vectors, opened for a model and shared by sessions.
//
// An engine has its adapters in a table by index. Plans do not depend on adapters: devices have the table, and each
// sequence has a scale for each adapter (graph/adapt.h).
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
    bool steers;   // a control vector
    frit_adapter_info info;
};

// The capacity for adapters that a plan has. Plans are made for these classes, not for adapters.
typedef struct frit_adapter_class {
    int8_t ranks;   // index of the total rank (frit_adapter_class_ranks); 0: no low-rank adapters
    bool steers;    // has control vectors
} frit_adapter_class;
enum { FRIT_N_RANKS = 5 };
static inline int32_t frit_adapter_class_ranks(int i)   // 0, 32, 256, 2048, 16384
{
    return i == 0 ? 0 : 4 << 3 * i;
}

// The adapters of an engine's sessions. A sequence has a scale for each index.
typedef struct frit_engine_adapters {
    frit_adapter **items;   // [n]; NULL: unused
    int32_t n;
    // [n_matrices + n_layers]: bit i is set if device i reads the tensors of this matrix, or layer. NULL: not known
    // yet.
    uint16_t *devices;
} frit_engine_adapters;

// adapter_norms.c: with magnitudes (DoRA), computes how much each row of the result grows, [n_out] in the model's
// order. `order` leads from there to the adapter's order. `w` is the model's matrix.
frit_status frit_adapter_gains(const frit_adapter_pair *pair, const frit_tensor *w, const frit_row_order *order,
                               float *gain);

void frit_adapter_ref(frit_adapter *adapter);
// Bytes of the tensors that device d reads. With `devices` NULL, bytes of all tensors, which the adapter takes of host
// memory.
uint64_t frit_adapter_bytes(const frit_adapter *adapter, const uint16_t *devices, int d);
void frit_engine_adapters_deinit(frit_engine_adapters *table);
