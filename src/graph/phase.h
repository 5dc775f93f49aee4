// SPDX-License-Identifier: MIT
// graph/phase.h: which nodes of a graph run together.
//
// A graph runs phase by phase, with a barrier before each phase. A phase has products (or ops of another kind) that do
// not depend on each other, a prologue that every worker may compute for itself, and an epilogue that is applied to
// results of the products while they are in the cache:
//
//     prologue     h = rms_norm(x, w)                                       row by row
//     products     q = linear(h, wq)    k = linear(h, wk)    v = linear(h, wv)
//     epilogue     rope(q)              rope(k)              kv_write       head by head
//
// Each entry is a fusion: nodes that run as one. The first node of a fusion computes rows or columns of values, and
// every other node is applied to them before they leave the cache:
//
//     linear, act                   y = f(x w^T)
//     linear, linear, glu           y = f(x w0^T) * (x w1^T)
//     linear, scale, add            y = r + (x w^T) factor
//     rms_norm, add                 y = r + rms_norm(x)
//     reduce, add                   y = r + the sum of x over the ranks
//     add, rms_norm                 s = x + r, y = rms_norm(s); both are read later
//
// A fusion computes the formulas of ops.def in the order of its nodes. A table (phase.c) lists which nodes may join,
// and a device says which rows of the table it supports. A node that does not join is a fusion by itself.
#pragma once
#include "graph/graph.h"

typedef enum frit_join {
    FRIT_JOIN_ELEMENTS,   // applied to any elements of a product's results
    FRIT_JOIN_ROWS,       // applied to whole rows of the results of a norm, of a sum, or of a sum over ranks
    FRIT_JOIN_HEADS,      // in the epilogue: applied to whole heads of a product
    FRIT_JOIN_PROLOGUE,   // only products read the rows: every worker may compute them for itself
} frit_join;

// True if the device runs `node` together with `other`, which is the fusion's first node, or, with FRIT_JOIN_PROLOGUE,
// a product that reads the node's rows.
typedef bool (*frit_can_join_fn)(const void *device, frit_join join, const frit_node *node, const frit_node *other);

enum { FRIT_FUSION_NODES = 6, FRIT_MAX_LEVELS = 4 };   // levels: product, norm, rope, kv_write

typedef struct frit_fusion {
    frit_node *nodes[FRIT_FUSION_NODES];   // each after its sources
    int n_nodes;
    int n_products;   // leading nodes that are products: 2 before GLU, otherwise 1
    int phase;
    int level;   // epilogue: 1 above the highest level that it reads in its phase; otherwise 0
} frit_fusion;

typedef struct frit_phase {
    frit_fusion *prologue;   // each may read earlier ones
    frit_fusion *products;
    frit_fusion *epilogue;   // in the order of levels
    int n_prologue, n_products, n_epilogue;
} frit_phase;

typedef struct frit_phases {
    frit_phase *list;
    int n;
    frit_fusion *fusions;   // of all phases in order: prologue, products, epilogue
    int n_fusions;
    int *fusion_of;   // [graph->n_nodes]: the fusion that computes the node or its source if it is an alias; -1: none
} frit_phases;

// Allocates in the graph's arena. can_join NULL: the device supports every join.
frit_status frit_phases_make(frit_phases *out, frit_graph *graph, frit_can_join_fn can_join, const void *device);

static inline frit_node *frit_fusion_result(const frit_fusion *fusion)
{
    return fusion->nodes[fusion->n_nodes - 1];
}

// True if the fusion is in the prologue of its phase.
bool frit_phases_is_prologue(const frit_phases *phases, int fusion);
