// SPDX-License-Identifier: MIT
// The parts of tensors that a rank has, by tensor and cut.
#include "backend/group_weights.h"

#include "base/grow.h"

#include <string.h>

typedef struct group_part {
    struct group_part *next;
    const frit_tensor *whole;
    frit_shard_cut cut;
    frit_tensor part;
} group_part;

static bool is_same_cut(const frit_shard_cut *a, const frit_shard_cut *b)
{
    return a->axis == b->axis && a->n_ranks == b->n_ranks && a->n_parts == b->n_parts && a->leaf == b->leaf &&
           a->begin == b->begin && a->size == b->size;
}

const frit_tensor *frit_group_part(void *ctx, const frit_node *weight)
{
    frit_group_weights *weights = ctx;
    if (weight->cut.n_parts == 0) return weight->tensor;
    group_part **bucket = &weights->buckets[(uintptr_t)weight->tensor / sizeof(frit_tensor) % FRIT_GROUP_BUCKETS];
    for (group_part *p = *bucket; p; p = p->next)
        if (p->whole == weight->tensor && is_same_cut(&p->cut, &weight->cut)) return &p->part;
    group_part *p = frit_arena_new(&weights->arena, group_part, 1);
    if (!p) {
        frit_fail_memory(sizeof *p, "a part of a tensor");
        return NULL;
    }
    *p = (group_part){.next = *bucket, .whole = weight->tensor, .cut = weight->cut};
    if (frit_shard_tensor(&weights->arena, weight->tensor, &weight->cut, weights->rank, &p->part) != FRIT_OK)
        return NULL;
    *bucket = p;
    return &p->part;
}

frit_status frit_group_uses(frit_group_weights *weights, const frit_weight_uses *uses, frit_weight_uses *out)
{
    *out = (frit_weight_uses){0};
    FRIT_TRY(FRIT_GROW(out->list, out->capacity, uses->n + 1, "the list of weights"));
    for (; out->n < uses->n; out->n++) {
        const frit_weight_use *use = &uses->list[out->n];
        const frit_tensor *part = frit_group_part(weights, frit_node_storage(use->node->src[use->source]));
        if (!part) {
            frit_weight_uses_free(out);
            return FRIT_E_MEMORY;
        }
        out->list[out->n] = (frit_weight_use){part, use->node, use->source};
    }
    return FRIT_OK;
}

void frit_group_weights_free(frit_group_weights *weights)
{
    frit_arena_free(&weights->arena);
    memset(weights->buckets, 0, sizeof weights->buckets);
}
