// SPDX-License-Identifier: MIT
// Copies of graphs and of adapter tables.
#include "support/test_copies.h"

#include "graph/node.h"

#include <string.h>

static uint64_t room_of(const frit_tensor *tensor)
{
    enum { ALIGNMENT = 64 };
    return tensor ? (tensor->n_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : 0;
}

static const frit_tensor *copy_tensor(frit_arena *arena, const frit_tensor *tensor, uint8_t **bytes)
{
    if (!tensor) return NULL;
    frit_tensor *copy = frit_arena_new(arena, frit_tensor, 1);
    *copy = *tensor;
    copy->data = memcpy(*bytes, tensor->data, (size_t)tensor->n_bytes);
    *bytes += room_of(tensor);
    return copy;
}

uint64_t test_copy_bytes(const frit_adapter_table *from)
{
    uint64_t n_bytes = 0;
    for (int32_t i = 0; i < from->n_matrices; i++)
        n_bytes += room_of(from->matrices[i].a) + room_of(from->matrices[i].b) + room_of(from->matrices[i].gain) +
                   room_of(from->matrices[i].shift);
    for (int32_t i = 0; i < from->n_layers; i++) n_bytes += room_of(from->directions[i]);
    return n_bytes;
}

size_t test_copy_adapter(frit_adapter_table *table, const frit_adapter_table *from, frit_arena *arena, uint8_t *bytes)
{
    size_t n_matrices = 0;
    *table = *from;
    table->matrices = frit_arena_new(arena, frit_low_rank, (size_t)from->n_matrices + 1);
    table->directions = frit_arena_new(arena, const frit_tensor *, (size_t)from->n_layers + 1);
    for (int32_t i = 0; i < from->n_matrices; i++) {
        table->matrices[i] = from->matrices[i];
        table->matrices[i].a = copy_tensor(arena, from->matrices[i].a, &bytes);
        table->matrices[i].b = copy_tensor(arena, from->matrices[i].b, &bytes);
        table->matrices[i].gain = copy_tensor(arena, from->matrices[i].gain, &bytes);
        table->matrices[i].shift = copy_tensor(arena, from->matrices[i].shift, &bytes);
        n_matrices += from->matrices[i].a != NULL;
    }
    for (int32_t i = 0; i < from->n_layers; i++) table->directions[i] = copy_tensor(arena, from->directions[i], &bytes);
    return n_matrices;
}

frit_status test_copy_graph(frit_graph *copy, frit_arena *arena, const frit_graph *graph)
{
    frit_graph_init(copy, arena, graph->max_rows, graph->max_outs);
    for (int i = 0; i < graph->n_nodes; i++) frit_node_copy(copy, graph->nodes[i]);
    FRIT_TRY(frit_graph_check(copy));
    for (int i = 0; i < copy->n_nodes; i++)
        for (int s = 0; s < copy->nodes[i]->n_src; s++)
            copy->nodes[i]->src[s] = copy->nodes[copy->nodes[i]->src[s]->id];
    if (graph->output) copy->output = copy->nodes[graph->output->id];
    copy->results = frit_arena_new(arena, frit_node *, (size_t)graph->n_results + 1);
    if (!copy->results) return frit_fail_memory((size_t)graph->n_results * sizeof(frit_node *), "results");
    copy->n_results = graph->n_results;
    for (int i = 0; i < graph->n_results; i++) copy->results[i] = copy->nodes[graph->results[i]->id];
    return FRIT_OK;
}
