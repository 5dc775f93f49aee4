// SPDX-License-Identifier: MIT
// backend/group_weights.h: private to group*.c: a rank's parts of the model's tensors. A part has one address as long
// as the group lives, so that its weights are stored once.
#pragma once
#include "backend/backend.h"
#include "graph/shard.h"

enum { FRIT_GROUP_BUCKETS = 1024 };

typedef struct frit_group_weights {
    frit_arena arena;
    int32_t rank;
    struct group_part *buckets[FRIT_GROUP_BUCKETS];
} frit_group_weights;

// frit_shard_tensor_fn; ctx is the frit_group_weights of a rank.
const frit_tensor *frit_group_part(void *ctx, const frit_node *weight);
// The uses of whole tensors as the rank has them. Free *out with frit_weight_uses_free.
frit_status frit_group_uses(frit_group_weights *weights, const frit_weight_uses *uses, frit_weight_uses *out);
void frit_group_weights_free(frit_group_weights *weights);
