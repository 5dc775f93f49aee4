// SPDX-License-Identifier: MIT
// graph/weight_use.h: the tensors of the model that plans read, and as which source of which op. Devices use it to
// choose the form of each tensor and to count bytes before they load any (backend.h).
#pragma once
#include "graph/plan.h"

typedef struct frit_weight_use {
    const frit_tensor *tensor;
    const frit_node *node;   // the node that reads it
    int source;              // index among the sources of the node
} frit_weight_use;

typedef struct frit_weight_uses {
    frit_weight_use *list;
    size_t n, capacity;
} frit_weight_uses;

// Adds the weights that a plan reads, in order. The items point into its graph.
frit_status frit_weight_uses_add(frit_weight_uses *uses, const frit_plan *plan);
void frit_weight_uses_free(frit_weight_uses *uses);
