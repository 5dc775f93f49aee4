// SPDX-License-Identifier: MIT
// graph/phase.h: which nodes of a graph run together.
//
// A graph runs phase by phase, with a barrier before each. A phase has products (or ops of another kind) that do not
// depend on each other; before them what every worker may compute for itself, and after them what is done to their
// results while these are near:
//
//     prologue     h = rms_norm(x, w)                                       row by row
//     products     q = linear(h, wq)    k = linear(h, wk)    v = linear(h, wv)
//     epilogue     rope(q)              rope(k)              kv_write       head by head
//
// Each of these is a fusion: nodes that run as one. The first node of a fusion computes rows or columns of values, and
// every other one is applied to them before they leave the cache:
//
//     linear, act                   y = f(x w^T)
//     linear, linear, glu           y = f(x w0^T) * (x w1^T)
//     linear, scale, add            y = r + (x w^T) factor
//     rms_norm, add                 y = r + rms_norm(x)
//     add, rms_norm                 s = x + r, y = rms_norm(s); both are read later
//
// What a fusion computes is what its nodes compute one after the other: the formulas of ops.def, in order. Which nodes
// join is a table (phase.c), and a device says which of its rows it takes. What it does not take runs by itself.
#pragma once
#include "graph/graph.h"

typedef enum frit_join {
    FRIT_JOIN_ELEMENTS,   // applied to any elements of a product's results
    FRIT_JOIN_ROWS,       // applied to whole rows of a norm's or a sum's results
    FRIT_JOIN_HEADS,      // in the epilogue: applied to whole heads of a product
    FRIT_JOIN_PROLOGUE,   // only products read the rows: every worker may compute them for itself
} frit_join;

// Whether the device runs `node` together with `other`: the fusion's first node; of FRIT_JOIN_PROLOGUE a product that
// reads the node's rows.
typedef bool (*frit_takes_fn)(const void *device, frit_join join, const frit_node *node, const frit_node *other);

enum { FRIT_FUSION_NODES = 6, FRIT_MAX_LEVELS = 4 };   // levels: product, norm, rope, kv_write

typedef struct frit_fusion {
    frit_node *nodes[FRIT_FUSION_NODES];   // each after those that it reads
    int n_nodes;
    int n_products;   // the first nodes, of which the next one makes one result: 2 before GLU, otherwise 1
    int phase;
    int level;   // epilogue: 1 above the highest level of the phase that it reads; otherwise 0
} frit_fusion;

typedef struct frit_phase {
    frit_fusion *prologue;   // each may read those before it
    frit_fusion *products;
    frit_fusion *epilogue;   // by level
    int n_prologue, n_products, n_epilogue;
} frit_phase;

typedef struct frit_phases {
    frit_phase *list;
    int n;
    frit_fusion *fusions;   // of all phases in order: prologue, products, epilogue
    int n_fusions;
    int *fusion_of;   // [graph->n_nodes]: what computes the node; aliases as their source; -1: leaves and dead nodes
} frit_phases;

// Allocates in the graph's arena. takes NULL: all is taken.
frit_status frit_phases_make(frit_phases *out, frit_graph *graph, frit_takes_fn takes, const void *device);

static inline frit_node *frit_fusion_result(const frit_fusion *fusion)
{
    return fusion->nodes[fusion->n_nodes - 1];
}

// The phase's prologue has this fusion.
bool frit_phases_is_prologue(const frit_phases *phases, int fusion);
