// SPDX-License-Identifier: MIT
// engine/adapter.h: LoRA adapters and control vectors, opened for a model and shared by sessions.
//
// An engine has its adapters in slots; plans with adapters add all of them, and the scales of a sequence say how much.
#pragma once
#include "engine/model.h"
#include "format/adapter.h"

typedef struct frit_adapter_part {
    const char *name;          // of the model's tensor
    const frit_tensor *base;   // the tensor
    frit_low_rank low;
} frit_adapter_part;

struct frit_adapter {
    _Atomic int n_refs;
    frit_model *model;
    frit_adapter_file file;
    frit_arena arena;
    frit_adapter_part *parts;
    size_t n_parts;
    const float **directions;   // [n_layer] of a control vector, NULL where it does nothing; else NULL
    frit_adapter_info info;
};

// The adapters that sessions of an engine have, each in a slot: a sequence's scales are in their order. Plans with adapters
// are made for all of them and made again when another one comes.
typedef struct frit_adapter_slots {
    frit_adapter **items;   // [n]; NULL: free
    int32_t n;
    frit_arena arena;      // of what is bound
    frit_adapters bound;   // what plans add
} frit_adapter_slots;

void frit_adapter_retain(frit_adapter *adapter);
// Lists what the adapters add, tensor by tensor, in `arena`; the index is the caller's to free. Adapters may be NULL.
frit_status frit_adapters_bind(frit_adapters *out, frit_adapter *const *adapters, int32_t n, int32_t n_layer,
                               frit_arena *arena);
void frit_adapter_slots_deinit(frit_adapter_slots *slots);
