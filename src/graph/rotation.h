// SPDX-License-Identifier: MIT
// graph/rotation.h: how cached keys depend on positions, which decides if keys can be moved to other positions.
//
// Keys can be moved if they are the result of one ROPE of a value that does not depend on positions, or have no ROPE. A
// key at position p then becomes the key at p - d by rotating the same pairs by -d. Ops after the ROPE may prevent it:
// a norm with weights, a second ROPE, an op that mixes the elements of a pair. Learned positions and states prevent it
// too.
#pragma once
#include "graph/graph.h"

typedef struct frit_key_rotation {           // one layer of the cache
    bool is_rotated;                         // false: keys are the same at every position
    frit_rope rope;                          // offset: first element in a key; keys already have the magnitude
    const frit_tensor *inv_freq, *factors;   // [dim / 2]; factors may be NULL
} frit_key_rotation;

// Sets rotations[n_layers], including layers without keys, for texts of at most n_ctx positions. FRIT_E_UNSUPPORTED
// with the reason if keys cannot be moved: "layer 3 keeps a state of all tokens".
frit_status frit_graph_find_rotations(const frit_graph *graph, int32_t n_ctx, frit_key_rotation *rotations,
                                      int32_t n_layers);
