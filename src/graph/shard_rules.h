// SPDX-License-Identifier: MIT
// graph/shard_rules.h: private to graph/: what shard.c and the rules of shard_rules.c share.
#pragma once
#include "graph/node.h"
#include "graph/shard.h"

// The states in which the value of a node exists.
typedef struct frit_shard_value {
    frit_node *whole;    // NULL: not made yet
    frit_node *sliced;   // NULL: none
    frit_node *before;   // the whole value that `sliced` is a PART of; NULL: ranks compute their parts
    int32_t axis, n_parts;
    frit_node *partial;            // NULL: none
    frit_node *bias;               // of `partial`: added to the sum; NULL: none
    float factor;                  // of `partial`: multiplies the sum after that; 0: none
    int32_t heads;                 // readers reshape the last dimension to so many heads; 0: none do
    bool is_read_sliced, is_set;   // a reader that follows a cut gains from it
    bool has_leaves;               // is_exact: the product is a sum of leaves
} frit_shard_value;

typedef struct frit_sharding {
    frit_graph *g;
    frit_arena *arena;   // freed after the pass
    const frit_shard_options *options;
    int32_t n_ranks;
    frit_node **old;   // [n_old]: the nodes of the graph before the pass
    int n_old;
    frit_shard_value *values;   // [g->n_nodes], by id; new nodes are at the end of g->nodes
    size_t n_values;
    frit_node **order;   // [n_order]: the nodes of the graph after the pass
    size_t n_order, order_capacity;
} frit_sharding;

// Results of these functions may be NULL after a failure, which the graph has.
frit_shard_value *frit_shard_value_of(frit_sharding *s, const frit_node *node);
frit_node *frit_shard_whole(frit_sharding *s, frit_node *node);   // makes it by REDUCE or GATHER if need be
frit_node *frit_shard_sliced(frit_sharding *s, frit_node *node, int32_t axis, int32_t n_parts);
frit_node *frit_shard_add(frit_sharding *s, frit_node *node);   // appends a new node to the order
frit_node *frit_shard_weight(frit_sharding *s, frit_node *weight, frit_shard_cut cut);

// Set the value of a node that the rule has changed, and append the node to the order. `sliced` divides its shape.
void frit_shard_set_whole(frit_sharding *s, frit_node *node);
void frit_shard_set_sliced(frit_sharding *s, frit_node *node, int32_t axis, int32_t n_parts);
void frit_shard_set_partial(frit_sharding *s, frit_node *node, frit_node *partial);
void frit_shard_set_other(frit_sharding *s, frit_node *node, frit_node *by);   // `by` takes the place of the node

// A dimension of the node's whole value: a rule may have divided that of the node.
static inline int64_t frit_shard_dim(const frit_sharding *s, const frit_node *node, int axis)
{
    const frit_shard_value *v = &s->values[node->id];
    return node->shape[axis] * (v->sliced == node && v->axis == axis ? v->n_parts : 1);
}

// How many equal parts of the heads the ranks have: n_ranks, or one part for each head if ranks share heads, or 1.
static inline int32_t frit_shard_parts_of_heads(const frit_sharding *s, int64_t n_heads)
{
    if (n_heads % s->n_ranks == 0) return s->n_ranks;
    return n_heads > 0 && s->n_ranks % n_heads == 0 ? (int32_t)n_heads : 1;
}

#define OP(NAME, name, min_src, max_src, sources, attr, shape, rows, cut, formula) \
    void frit_cut_##cut(frit_sharding *s, frit_node *node);
#include "graph/ops.def"
#undef OP
