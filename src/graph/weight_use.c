// SPDX-License-Identifier: MIT
// The list of weights that plans read.
#include "graph/weight_use.h"

#include "base/grow.h"

#include <stdlib.h>

static frit_status add(frit_weight_uses *uses, const frit_node *node, int source)
{
    const frit_node *leaf = frit_node_storage(node->src[source]);
    if (leaf->op != FRIT_OP_WEIGHT) return FRIT_OK;
    FRIT_TRY(FRIT_GROW(uses->list, uses->capacity, uses->n + 1, "the list of weights"));
    uses->list[uses->n++] = (frit_weight_use){leaf->tensor, node, source};
    return FRIT_OK;
}

frit_status frit_weight_uses_add(frit_weight_uses *uses, const frit_plan *plan)
{
    for (int k = 0; k < plan->phases.n_fusions; k++) {
        const frit_fusion *fusion = &plan->phases.fusions[k];
        for (int i = 0; i < fusion->n_nodes; i++)
            for (int s = 0; s < fusion->nodes[i]->n_src; s++) FRIT_TRY(add(uses, fusion->nodes[i], s));
    }
    return FRIT_OK;
}

void frit_weight_uses_free(frit_weight_uses *uses)
{
    free(uses->list);
    *uses = (frit_weight_uses){0};
}
