// SPDX-License-Identifier: MIT
// Copies of a graph for the ranks of a group, each with its parts of the weights.
#include "graph/node.h"
#include "graph/shard.h"

#include "format/rows.h"

#include <stdio.h>

static int64_t part_of(const frit_shard_cut *cut, int32_t rank)
{
    return (int64_t)(cut->n_ranks > 1 ? rank : 0) * cut->n_parts / cut->n_ranks + cut->leaf;
}

// Parts have names of their own, by which messages and folders of packed weights tell them apart.
static frit_status name_part(frit_arena *arena, const frit_tensor *whole, int64_t begin, int64_t n, frit_tensor *out)
{
    char text[256];
    const int length = snprintf(text, sizeof text, "%s [%lld, %lld)", whole->name ? whole->name : "", (long long)begin,
                                (long long)(begin + n));
    out->name = frit_arena_text(arena, text, length < (int)sizeof text ? (size_t)length : sizeof text - 1);
    return out->name ? FRIT_OK : frit_fail_memory(sizeof text, "the name of a part of a tensor");
}

frit_status frit_shard_tensor(frit_arena *arena, const frit_tensor *whole, const frit_shard_cut *cut, int32_t rank,
                              frit_tensor *out)
{
    *out = *whole;
    if (cut->n_parts == 0) return FRIT_OK;
    const int64_t n = cut->size / cut->n_parts, begin = cut->begin + part_of(cut, rank) * n;
    FRIT_TRY(name_part(arena, whole, begin, n, out));
    if (cut->axis == 0) {
        const char *name = out->name;
        *out = frit_tensor_cut(whole, begin, n);
        out->name = name;
        return FRIT_OK;
    }
    return frit_tensor_range(arena, out, cut->axis, begin, n);
}

frit_status frit_shard_copy(frit_graph *out, frit_arena *arena, const frit_graph *graph, frit_shard_tensor_fn tensor_of,
                            void *ctx)
{
    frit_graph_init(out, arena, graph->max_rows, graph->max_outs);
    for (int i = 0; i < graph->n_nodes; i++) {
        frit_node *copy = frit_node_copy(out, graph->nodes[i]);
        if (!copy) return frit_graph_check(out);
        if (copy->op != FRIT_OP_WEIGHT) continue;
        copy->tensor = tensor_of(ctx, graph->nodes[i]);
        copy->cut = (frit_shard_cut){0};
        if (!copy->tensor) return FRIT_E_MEMORY;
    }
    for (int i = 0; i < out->n_nodes; i++)
        for (int k = 0; k < out->nodes[i]->n_src; k++) out->nodes[i]->src[k] = out->nodes[out->nodes[i]->src[k]->id];
    if (graph->output) out->output = out->nodes[graph->output->id];
    out->results = frit_arena_new(arena, frit_node *, (size_t)graph->n_results + 1);
    if (!out->results) return frit_fail_memory((size_t)graph->n_results * sizeof(frit_node *), "results");
    for (int i = 0; i < graph->n_results; i++) out->results[i] = out->nodes[graph->results[i]->id];
    out->n_results = graph->n_results;
    return FRIT_OK;
}
