// SPDX-License-Identifier: MIT
// The op table as rows, and nodes. Every constructor ends in frit_node_new, which checks the node and stores it.
#include "graph/node.h"

#include "base/grow.h"

#include <stdio.h>

static const frit_op_row rows[] = {
#define OP(NAME, name, min_src, max_src, sources, attr, shape, which_rows, cut, formula) \
    {#name, min_src, max_src, sources, formula, FRIT_OP_ROWS_##which_rows},
#include "graph/ops.def"
#undef OP
};

static const frit_shape_rule rules[] = {
#define OP(NAME, name, min_src, max_src, sources, attr, shape, rows, cut, formula) frit_shape_##shape,
#include "graph/ops.def"
#undef OP
};

const frit_op_row *frit_op_get(frit_op op)
{
    return &rows[op];
}

void frit_graph_init(frit_graph *graph, frit_arena *arena, int64_t max_rows, int64_t max_outs)
{
    *graph = (frit_graph){.arena = arena, .max_rows = max_rows, .max_outs = max_outs, .depth = -1};
}

frit_status frit_graph_check(const frit_graph *graph)
{
    return graph->status == FRIT_OK ? FRIT_OK : frit_fail(graph->status, "%s", graph->failure);
}

// Stores the first failure with the thread's error sentence.
static frit_node *record_failure(frit_graph *g, frit_status status)
{
    g->status = status;
    snprintf(g->failure, sizeof g->failure, "%s", frit_error());
    return NULL;
}

frit_status frit_node_fail_shape(const frit_node *node, int a, int b, const char *expected)
{
    char shape_a[96], shape_b[96];
    return frit_fail(FRIT_E_INVALID, "op %s (%s): found %s and %s, expected %s", frit_op_get(node->op)->name,
                     frit_op_get(node->op)->sources, frit_node_shape_text(node->src[a], shape_a),
                     frit_node_shape_text(node->src[b], shape_b), expected);
}

static frit_status count_sources(frit_node *node)
{
    const frit_op_row *row = &rows[node->op];
    for (node->n_src = 0; node->n_src < FRIT_MAX_SOURCES && node->src[node->n_src]; node->n_src++) {
    }
    for (int i = node->n_src; i < FRIT_MAX_SOURCES; i++) {
        if (node->src[i])
            return frit_fail(FRIT_E_INVALID, "op %s (%s): source %d is missing, but source %d is there", row->name,
                             row->sources, node->n_src, i);
    }
    if (node->n_src < row->min_sources || node->n_src > row->max_sources)
        return frit_fail(FRIT_E_INVALID, "op %s (%s): found %d sources, expected %d to %d", row->name, row->sources,
                         node->n_src, row->min_sources, row->max_sources);
    return FRIT_OK;
}

static bool append(frit_graph *g, frit_node *node)
{
    if (FRIT_GROW_IN(g->arena, g->nodes, g->capacity, g->n_nodes + 1, "a graph") != FRIT_OK) return false;
    node->id = g->n_nodes;
    g->nodes[g->n_nodes++] = node;
    return true;
}

frit_node *frit_node_new(frit_graph *g, frit_node node)
{
    if (g->status != FRIT_OK) return NULL;
    for (int i = node.n_dims; i < FRIT_MAX_DIMS; i++) node.shape[i] = 1;
    frit_status status = count_sources(&node);
    if (status == FRIT_OK) status = rules[node.op](&node);
    if (status != FRIT_OK) return record_failure(g, status);
    node.depth = g->depth;
    return frit_node_copy(g, &node);
}

frit_node *frit_node_copy(frit_graph *g, const frit_node *node)
{
    if (g->status != FRIT_OK) return NULL;
    frit_node *kept = frit_arena_new(g->arena, frit_node, 1);
    if (!kept) return record_failure(g, frit_fail_memory(sizeof *node, "a node of the graph"));
    *kept = *node;
    if (!append(g, kept)) return record_failure(g, frit_fail_memory((size_t)g->n_nodes * 16, "the nodes of the graph"));
    return kept;
}

bool frit_node_is_leaf(const frit_node *node)
{
    return node->op == FRIT_OP_INPUT || node->op == FRIT_OP_WEIGHT;
}

bool frit_node_is_ids(const frit_node *node)
{
    return node->op == FRIT_OP_INPUT && node->input <= FRIT_INPUT_OUT_ROWS;
}

bool frit_node_is_write(const frit_node *node)
{
    return node->op == FRIT_OP_KV_WRITE || node->op == FRIT_OP_INDEX_WRITE;
}

int32_t frit_node_cache_layer(const frit_node *node)
{
    switch (node->op) {
    case FRIT_OP_KV_WRITE:
    case FRIT_OP_INDEX_WRITE:
        return node->layer;
    case FRIT_OP_ATTEND:
    case FRIT_OP_ATTEND_SPARSE:
    case FRIT_OP_ATTEND_BLOCKS:
    case FRIT_OP_ATTEND_IN_BLOCKS:
        return node->attend.layer;
    case FRIT_OP_CHOOSE:
    case FRIT_OP_CHOOSE_BLOCKS:
        return node->choose.layer;
    case FRIT_OP_CONV:
    case FRIT_OP_SCAN:
    case FRIT_OP_DELTA:
    case FRIT_OP_COMPRESS:
    case FRIT_OP_LRU:
    case FRIT_OP_SHIFT:
    case FRIT_OP_WKV:
    case FRIT_OP_RWKV:
        return node->state.layer;
    default:
        return -1;
    }
}

const frit_node *frit_node_storage(const frit_node *node)
{
    while (node->op == FRIT_OP_RESHAPE) node = node->src[0];
    return node;
}

const char *frit_node_shape_text(const frit_node *node, char text[96])
{
    int at = snprintf(text, 96, "[");
    for (int i = 0; i < node->n_dims; i++) {
        if (i > 0) at += snprintf(text + at, 96 - (size_t)at, ", ");
        if (i == 0 && node->rows != FRIT_SHAPE_FIXED)
            at += snprintf(text + at, 96 - (size_t)at, "%c", node->rows == FRIT_SHAPE_BATCH ? 'T' : 'O');
        else
            at += snprintf(text + at, 96 - (size_t)at, "%lld", (long long)node->shape[i]);
    }
    snprintf(text + at, 96 - (size_t)at, "]");
    return text;
}
