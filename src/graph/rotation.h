// SPDX-License-Identifier: MIT
// graph/rotation.h: how cached keys depend on positions, so that a session's keys can be moved to other positions.
//
// The graph says it: what is written as a key is the result of one ROPE of what does not depend on positions, or has no
// ROPE at all. Then a key at position p becomes the key at p - d when the same pairs are rotated by -d. What follows a
// ROPE may stand in the way: a norm with weights, a second ROPE, an op that mixes the numbers of a pair. So do learned
// positions, and states.
#pragma once
#include "graph/graph.h"

typedef struct frit_key_rotation {           // of one layer of the cache
    bool is_rotated;                         // false: keys are the same at every position
    frit_rope rope;                          // offset: within a key; the magnitude is that of keys already
    const frit_tensor *inv_freq, *factors;   // [dim / 2]; factors may be NULL
} frit_key_rotation;

// Fills in rotations[n_layers], those of layers without keys too, for a text of n_ctx positions at most.
// FRIT_E_UNSUPPORTED with what stands in the way: "layer 3 keeps a state of all tokens".
frit_status frit_graph_find_rotations(const frit_graph *graph, int32_t n_ctx, frit_key_rotation *rotations,
                                      int32_t n_layers);
