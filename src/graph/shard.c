// SPDX-License-Identifier: MIT
// Divides a graph among ranks (shard.h):
//
//   1. What readers gain from a cut, from the last node to the first: heads of attention, inputs of products.
//   2. With is_exact, which products are sums of leaves: those that two ranks would cut by columns. So this does not
//      depend on the number of ranks.
//   3. The rule of each node, sources first. A rule changes the node, and asks for its sources in the state that it
//      needs, which makes REDUCE, GATHER and PART where they do not have it yet.
//   4. The output and the results of the graph become whole.
#include "graph/shard_rules.h"

#include "base/grow.h"

#include <stdio.h>
#include <string.h>

typedef void (*rule)(frit_sharding *s, frit_node *node);

static const rule rules[] = {
#define OP(NAME, name, min_src, max_src, sources, attr, shape, rows, cut, formula) frit_cut_##cut,
#include "graph/ops.def"
#undef OP
};

// ------------------------------------------------------------------------------- values

static void fail(frit_sharding *s, frit_status status)
{
    if (s->g->status != FRIT_OK) return;
    s->g->status = status;
    snprintf(s->g->failure, sizeof s->g->failure, "%s", frit_error());
}

frit_shard_value *frit_shard_value_of(frit_sharding *s, const frit_node *node)
{
    return &s->values[node->id];
}

static void append(frit_sharding *s, frit_node *node)
{
    if (FRIT_GROW_IN(s->arena, s->order, s->order_capacity, s->n_order + 1, "the nodes of a rank") != FRIT_OK) {
        fail(s, FRIT_E_MEMORY);
        return;
    }
    s->order[s->n_order++] = node;
}

// Makes room for the values of new nodes.
static bool reserve(frit_sharding *s)
{
    const size_t before = s->n_values;
    if ((size_t)s->g->n_nodes < before) return true;
    if (FRIT_GROW_IN(s->arena, s->values, s->n_values, (size_t)s->g->n_nodes + 1, "the values of a rank") != FRIT_OK) {
        fail(s, FRIT_E_MEMORY);
        return false;
    }
    memset(s->values + before, 0, (s->n_values - before) * sizeof *s->values);
    return true;
}

frit_node *frit_shard_add(frit_sharding *s, frit_node *node)
{
    if (!node || !reserve(s)) return NULL;
    append(s, node);
    s->values[node->id].whole = node;
    s->values[node->id].is_set = true;
    return node;
}

void frit_shard_set_whole(frit_sharding *s, frit_node *node)
{
    frit_shard_value *v = frit_shard_value_of(s, node);
    v->whole = node;
    v->is_set = true;
    append(s, node);
}

void frit_shard_set_sliced(frit_sharding *s, frit_node *node, int32_t axis, int32_t n_parts)
{
    frit_shard_value *v = frit_shard_value_of(s, node);
    v->sliced = node;
    v->axis = axis;
    v->n_parts = n_parts;
    v->is_set = true;
    node->shape[axis] /= n_parts;
    append(s, node);
}

void frit_shard_set_partial(frit_sharding *s, frit_node *node, frit_node *partial)
{
    frit_shard_value *v = frit_shard_value_of(s, node);
    v->partial = partial;
    v->is_set = true;
}

void frit_shard_set_other(frit_sharding *s, frit_node *node, frit_node *by)
{
    frit_shard_value *v = frit_shard_value_of(s, node);
    v->whole = by;
    v->is_set = true;
}

// The sum of what ranks have, then the bias and the factor of the product.
static frit_node *reduce(frit_sharding *s, const frit_shard_value *value)
{
    const frit_shard_value v = *value;
    s->g->depth = v.partial->depth;
    frit_node *sum = frit_shard_add(s, frit_reduce_node(s->g, v.partial, s->n_ranks));
    if (sum && v.bias) sum = frit_shard_add(s, frit_add(s->g, sum, v.bias));
    if (sum && v.factor != 0 && v.factor != 1) sum = frit_shard_add(s, frit_scale(s->g, sum, v.factor));
    return sum;
}

frit_node *frit_shard_whole(frit_sharding *s, frit_node *node)
{
    const frit_shard_value v = *frit_shard_value_of(s, node);
    if (v.whole || s->g->status != FRIT_OK) return v.whole;
    frit_node *whole = v.before;
    if (v.partial) {
        whole = reduce(s, &v);
    } else if (v.sliced && !whole) {
        s->g->depth = node->depth;
        whole = frit_shard_add(s, frit_gather_node(s->g, v.sliced, (frit_ranks){s->n_ranks, v.n_parts, v.axis}));
    }
    frit_shard_value_of(s, node)->whole = whole;
    return whole;
}

frit_node *frit_shard_sliced(frit_sharding *s, frit_node *node, int32_t axis, int32_t n_parts)
{
    frit_shard_value v = *frit_shard_value_of(s, node);
    if (v.sliced && v.axis == axis && v.n_parts == n_parts) return v.sliced;
    frit_node *whole = frit_shard_whole(s, node);
    if (!whole) return NULL;
    s->g->depth = node->depth;
    frit_node *part = frit_shard_add(s, frit_part_node(s->g, whole, (frit_ranks){s->n_ranks, n_parts, axis}));
    if (!part) return NULL;
    frit_shard_value *after = frit_shard_value_of(s, node);
    if (!after->sliced) after->sliced = part, after->axis = axis, after->n_parts = n_parts;
    return part;
}

frit_node *frit_shard_weight(frit_sharding *s, frit_node *weight, frit_shard_cut cut)
{
    frit_node part = *weight;
    part.cut = cut;
    part.shape[cut.axis] = cut.size / cut.n_parts;
    return frit_shard_add(s, frit_node_copy(s->g, &part));
}

// ------------------------------------------------------------------------------- what readers gain

// True if the op has the cut of its sources.
static bool follows(const frit_node *node)
{
    const rule r = rules[node->op];
    return r == frit_cut_elements || r == frit_cut_pair || r == frit_cut_last || r == frit_cut_pair_last ||
           r == frit_cut_reshape || r == frit_cut_concat || r == frit_cut_mix;
}

static bool gains(const frit_node *node, int source)
{
    switch (node->op) {
    case FRIT_OP_LINEAR:
    case FRIT_OP_ATTEND:
    case FRIT_OP_EXPERTS_MIX:
    case FRIT_OP_HEADS:
        return source == 0;
    case FRIT_OP_EXPERTS:
        return source == 0 && node->src[0]->n_dims == 3;
    case FRIT_OP_KV_WRITE:
        return true;
    default:
        return false;
    }
}

// The readers of a node come after it, except that TAKE_ROWS may come after its readers (fuse.c): a second iteration
// finds them.
static void find_gains(frit_sharding *s)
{
    for (int iteration = 0; iteration < 2; iteration++)
        for (int i = s->n_old - 1; i >= 0; i--) {
            const frit_node *node = s->old[i];
            const frit_shard_value *v = &s->values[i];
            for (int k = 0; k < node->n_src; k++) {
                frit_shard_value *read = &s->values[node->src[k]->id];
                read->is_read_sliced = read->is_read_sliced || gains(node, k) || (follows(node) && v->is_read_sliced);
                if (node->op == FRIT_OP_RESHAPE && node->n_dims == 3) read->heads = (int32_t)node->shape[1];
                if (follows(node) && node->op != FRIT_OP_RESHAPE && v->heads > 0 && node->n_dims == 2)
                    read->heads = v->heads;
            }
        }
}

// ------------------------------------------------------------------------------- the pass

static void visit(frit_sharding *s, frit_node *node)
{
    if (s->values[node->id].is_set || s->g->status != FRIT_OK) return;
    for (int i = 0; i < node->n_src; i++) visit(s, node->src[i]);
    if (s->g->status != FRIT_OK || !reserve(s)) return;
    s->g->depth = node->depth;
    rules[node->op](s, node);
}

// Replaces a node as a source, and in the order.
static void replace(frit_sharding *s, frit_node *node, frit_node *by)
{
    for (size_t i = 0; i < s->n_order; i++) {
        if (s->order[i] == node) s->order[i] = by;
        for (int k = 0; k < s->order[i]->n_src; k++)
            if (s->order[i]->src[k] == node) s->order[i]->src[k] = by;
    }
}

// A reader outside of the graph knows a node by its address: the node becomes the whole value, and a new node computes
// what the node computed.
static void give_whole(frit_sharding *s, frit_node *node)
{
    frit_node *whole = frit_shard_whole(s, node);
    if (!whole || whole == node) return;
    frit_node *computing = frit_node_copy(s->g, node);
    if (!computing) return;
    replace(s, node, computing);
    *node = *whole;
    replace(s, whole, node);
    s->values[node->id].whole = node;   // the node has the id of `whole` now
}

static frit_status begin(frit_sharding *s)
{
    frit_graph *g = s->g;
    s->n_old = g->n_nodes;
    s->old = frit_arena_new(s->arena, frit_node *, (size_t)g->n_nodes + 1);
    if (!s->old || !reserve(s)) return frit_fail_memory((size_t)g->n_nodes * sizeof *s->old, "the nodes of a rank");
    memcpy(s->old, g->nodes, (size_t)g->n_nodes * sizeof *s->old);
    return FRIT_OK;
}

static void finish(frit_sharding *s)
{
    frit_graph *g = s->g;
    if (g->output) give_whole(s, g->output);
    for (int i = 0; i < g->n_results; i++)
        if (!frit_node_is_write(g->results[i])) give_whole(s, g->results[i]);
    if (g->status != FRIT_OK) return;
    for (size_t i = 0; i < s->n_order; i++) {
        g->nodes[i] = s->order[i];
        g->nodes[i]->id = (int)i;
    }
    g->n_nodes = (int)s->n_order;
}

static frit_status run(frit_sharding *s, const bool *has_leaves)
{
    FRIT_TRY(begin(s));
    for (int i = 0; i < s->n_old && has_leaves; i++) s->values[i].has_leaves = has_leaves[i];
    find_gains(s);
    for (int i = 0; i < s->n_old; i++) visit(s, s->old[i]);
    return frit_graph_check(s->g);
}

static const frit_tensor *same_tensor(void *ctx, const frit_node *weight)
{
    (void)ctx;
    return weight->tensor;
}

// Marks the products that two ranks would cut by columns.
static frit_status find_leaves(const frit_graph *graph, const frit_shard_options *options, bool *has_leaves,
                               frit_arena *arena)
{
    frit_graph copy;
    const frit_shard_options two = {.n_ranks = 2, .least_elems = options->least_elems};
    frit_sharding s = {.g = &copy, .arena = arena, .options = &two, .n_ranks = 2};
    FRIT_TRY(frit_shard_copy(&copy, arena, graph, same_tensor, NULL));
    FRIT_TRY(run(&s, NULL));
    for (int i = 0; i < s.n_old; i++) {
        const frit_op op = graph->nodes[i]->op;
        has_leaves[i] =
            s.values[i].partial && (op == FRIT_OP_LINEAR || op == FRIT_OP_EXPERTS || op == FRIT_OP_EXPERTS_MIX);
    }
    return FRIT_OK;
}

static frit_status shard(frit_graph *graph, const frit_shard_options *options, frit_arena *arena)
{
    bool *has_leaves = frit_arena_new(arena, bool, (size_t)graph->n_nodes + 1);
    if (!has_leaves) return frit_fail_memory((size_t)graph->n_nodes, "the leaves of sums");
    if (options->is_exact) FRIT_TRY(find_leaves(graph, options, has_leaves, arena));
    frit_sharding s = {.g = graph, .arena = arena, .options = options, .n_ranks = options->n_ranks};
    FRIT_TRY(run(&s, has_leaves));
    finish(&s);
    return frit_graph_check(graph);
}

frit_status frit_shard_graph(frit_graph *graph, const frit_shard_options *options)
{
    frit_arena arena = {0};
    FRIT_TRY(frit_graph_check(graph));
    const frit_status status = shard(graph, options, &arena);
    frit_arena_free(&arena);
    return status;
}
