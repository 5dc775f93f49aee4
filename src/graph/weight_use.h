// SPDX-License-Identifier: MIT
// graph/weight_use.h: which tensors of the model plans read, and as what. By this a device says in which form it loads
// each and how many bytes that takes, before it loads any (backend.h).
#pragma once
#include "graph/plan.h"

typedef struct frit_weight_use {
    const frit_tensor *tensor;
    const frit_node *node;   // that reads it
    int source;              // as which of its sources
} frit_weight_use;

typedef struct frit_weight_uses {
    frit_weight_use *list;
    size_t n, capacity;
} frit_weight_uses;

// Adds those of a plan, in the order in which it reads them. They point into its graph.
frit_status frit_weight_uses_add(frit_weight_uses *uses, const frit_plan *plan);
void frit_weight_uses_free(frit_weight_uses *uses);
