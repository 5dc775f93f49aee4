// SPDX-License-Identifier: MIT
// The rewriting table: patterns that rewrite a graph in place without changing a result beyond rounding. A pattern
// looks at a node and its sources. It may change the node, change which nodes use it, and add nodes. phase.c decides
// which nodes run together.
//
// The patterns are applied in order, each to all nodes.
#include "graph/node.h"
#include "graph/plan.h"

#include <stdio.h>

typedef struct rewrite {
    frit_graph *g;
    frit_arena *arena;   // freed after the rewriting
    int *n_uses;         // [capacity]: how often each node is a source of living nodes, or the output
    frit_node **stack;   // [capacity]
    int capacity;
} rewrite;

typedef struct pattern {
    const char *name;
    bool (*apply)(rewrite *r, frit_node *node);
} pattern;

// Counts uses by live nodes, which the output or the cache needs. Other nodes are dead.
static bool count_uses(rewrite *r)
{
    frit_graph *g = r->g;
    if (r->capacity < g->n_nodes) {
        const int capacity = g->n_nodes * 2;
        r->n_uses = frit_arena_new(r->arena, int, (size_t)capacity);
        r->stack = frit_arena_new(r->arena, frit_node *, (size_t)capacity);
        if (!r->n_uses || !r->stack) {
            g->status = frit_fail_memory((size_t)capacity * sizeof *r->stack, "fusing a graph");
            snprintf(g->failure, sizeof g->failure, "%s", frit_error());
            return false;
        }
        r->capacity = capacity;
    }
    memset(r->n_uses, 0, (size_t)r->capacity * sizeof *r->n_uses);
    int n = 0;
    r->stack[n++] = g->output;
    r->n_uses[g->output->id] = 1;
    for (int i = 0; i < g->n_results; i++)
        if (r->n_uses[g->results[i]->id]++ == 0) r->stack[n++] = g->results[i];
    for (int i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->op == FRIT_OP_KV_WRITE && r->n_uses[i]++ == 0) r->stack[n++] = g->nodes[i];
    while (n > 0) {
        const frit_node *node = r->stack[--n];
        for (int i = 0; i < node->n_src; i++) {
            if (r->n_uses[node->src[i]->id]++ == 0) r->stack[n++] = node->src[i];
        }
    }
    return true;
}

static void replace_uses(frit_graph *g, frit_node *old, frit_node *by)
{
    for (int i = 0; i < g->n_nodes; i++) {
        frit_node *node = g->nodes[i];
        for (int s = 0; s < node->n_src; s++) {
            if (node->src[s] == old) node->src[s] = by;
        }
    }
    if (g->output == old) g->output = by;
    for (int i = 0; i < g->n_results; i++)
        if (g->results[i] == old) g->results[i] = by;
}

// Gives `node` another op and sources; shape and rows stay as they are.
static void replace_op(frit_node *node, frit_op op, int n_src, frit_node *const *src)
{
    node->op = op;
    node->n_src = n_src;
    for (int i = 0; i < FRIT_MAX_SOURCES; i++) node->src[i] = i < n_src ? src[i] : NULL;
}

static bool is_lone(const rewrite *r, const frit_node *node, frit_op op)
{
    return node->op == op && r->n_uses[node->id] == 1;
}

static bool is_row_wise(const frit_node *node)
{
    const bool is_lookup = node->op == FRIT_OP_ADAPT_DOWN && frit_node_is_ids(node->src[0]);
    return frit_op_get(node->op)->is_row_wise && node->rows == FRIT_SHAPE_BATCH && !is_lookup;
}

// The node that has the wanted rows of `node`: itself if it is reduced or has no rows of the batch, else a new
// TAKE_ROWS.
static frit_node *taken_rows(rewrite *r, frit_node *node, frit_node *rows, const bool *reduced, frit_node **taken)
{
    if (node->rows != FRIT_SHAPE_BATCH || reduced[node->id]) return node;
    if (!taken[node->id]) {
        r->g->depth = node->depth;
        taken[node->id] = frit_take_rows(r->g, node, rows);
    }
    return taken[node->id];
}

// take_rows(f(x)) becomes f(take_rows(x)), as far up as only the taken rows are needed, which is after the attention of
// the last layer. Constructors number nodes after their sources, so a walk in descending order sees every use of a node
// first.
static bool take_rows_early(rewrite *r, frit_node *take)
{
    if (take->op != FRIT_OP_TAKE_ROWS || !is_row_wise(take->src[0])) return false;
    frit_graph *g = r->g;
    frit_node *last = take->src[0], *rows = take->src[1];
    size_t n = (size_t)g->n_nodes;
    int *claims = frit_arena_new(r->arena, int, n);   // uses by reduced nodes
    bool *reduced = frit_arena_new(r->arena, bool, n);
    frit_node **taken = frit_arena_new(r->arena, frit_node *, n);
    if (!claims || !reduced || !taken) return false;
    claims[last->id] = 1;
    for (int id = last->id; id >= 0; id--) {
        const frit_node *node = g->nodes[id];
        reduced[id] = claims[id] > 0 && claims[id] == r->n_uses[id] && is_row_wise(node);
        for (int s = 0; reduced[id] && s < node->n_src; s++) claims[node->src[s]->id]++;
    }
    if (!reduced[last->id]) return false;
    for (int id = 0; id <= last->id; id++) {
        frit_node *node = g->nodes[id];
        if (!reduced[id]) continue;
        for (int s = 0; s < node->n_src; s++) {
            node->src[s] = taken_rows(r, node->src[s], rows, reduced, taken);
            if (!node->src[s]) return false;   // out of memory; the graph has the error
        }
        node->rows = take->rows;
        node->shape[0] = take->shape[0];
    }
    replace_uses(g, take, last);
    return true;
}

static bool fold_scales(rewrite *r, frit_node *node)
{
    if (node->op != FRIT_OP_SCALE || !is_lone(r, node->src[0], FRIT_OP_SCALE)) return false;
    node->factor *= node->src[0]->factor;
    node->src[0] = node->src[0]->src[0];
    return true;
}

static bool fold_reshapes(rewrite *r, frit_node *node)
{
    (void)r;
    if (node->op != FRIT_OP_RESHAPE || node->src[0]->op != FRIT_OP_RESHAPE) return false;
    node->src[0] = node->src[0]->src[0];
    return true;
}

// adapt_up(linear(x, w, b), h) and adapt_up(experts(x, w, route), h, route): the thread that computes the product adds
// the adapters' term.
static bool fuse_adapted(rewrite *r, frit_node *node)
{
    if (node->op != FRIT_OP_ADAPT_UP || node->src[1]->op != FRIT_OP_ADAPT_DOWN) return false;
    frit_node *product = node->src[0], *h = node->src[1];
    if (!is_lone(r, product, FRIT_OP_LINEAR) && !is_lone(r, product, FRIT_OP_EXPERTS)) return false;
    if (product->adapts) return false;
    frit_node *src[FRIT_MAX_SOURCES];
    memcpy(src, product->src, sizeof src);
    src[product->n_src] = h;
    if (product->op == FRIT_OP_EXPERTS)
        node->experts = product->experts;
    else
        node->factor = product->factor;
    replace_op(node, product->op, product->n_src + 1, src);
    node->adapts = 1;
    return true;
}

// Appends the ADAPT_DOWN sources of two products to the n sources of their common node.
static int take_adapts(frit_node *node, const frit_node *first, const frit_node *second, int n, frit_node **src)
{
    const frit_node *const products[] = {first, second};
    node->adapts = 0;
    for (int i = 0; i < 2; i++) {
        if (!products[i] || !products[i]->adapts) continue;
        node->adapts |= 1u << i;
        node->adapted[i] = products[i]->adapted[0];
        src[n++] = products[i]->src[frit_node_adapts(products[i], 0)];
    }
    return n;
}

// scale(linear(x, w, b)).
static bool fuse_linear_scale(rewrite *r, frit_node *node)
{
    if (node->op != FRIT_OP_SCALE || !is_lone(r, node->src[0], FRIT_OP_LINEAR) || node->factor == 0) return false;
    const frit_node *product = node->src[0];
    if (product->factor != 0) node->factor *= product->factor;
    node->adapts = product->adapts;
    node->adapted[0] = product->adapted[0];
    frit_node *src[FRIT_MAX_SOURCES];
    memcpy(src, product->src, sizeof src);
    replace_op(node, FRIT_OP_LINEAR, product->n_src, src);
    return true;
}

// glu(experts(x, w0, route), experts(x, w1, route)).
static bool fuse_experts_glu(rewrite *r, frit_node *node)
{
    if (node->op != FRIT_OP_GLU) return false;
    frit_node *gate = node->src[0], *up = node->src[1];
    bool fits = gate != up && is_lone(r, gate, FRIT_OP_EXPERTS) && is_lone(r, up, FRIT_OP_EXPERTS) &&
                gate->src[0] == up->src[0] && gate->src[2] == up->src[2];
    if (!fits || gate->experts.weigh != up->experts.weigh) return false;
    if (gate->src[1]->tensor->dtype != up->src[1]->tensor->dtype) return false;
    node->experts_glu = (frit_experts_glu){.act = node->act,
                                           .gate = gate->experts.begin,
                                           .up = up->experts.begin,
                                           .n = gate->experts.n,
                                           .weigh = gate->experts.weigh};
    frit_node *src[FRIT_MAX_SOURCES] = {gate->src[0], gate->src[1], up->src[1], gate->src[2]};
    replace_op(node, FRIT_OP_EXPERTS_GLU, take_adapts(node, gate, up, 4, src), src);
    return true;
}

// mix(experts(x, w, route), route), unless both weigh.
static bool fuse_experts_mix(rewrite *r, frit_node *node)
{
    if (node->op != FRIT_OP_MIX || !is_lone(r, node->src[0], FRIT_OP_EXPERTS)) return false;
    frit_node *product = node->src[0];
    if (product->src[0]->n_dims != 3 || product->src[2] != node->src[1]) return false;
    if (product->experts.weigh && !node->plain) return false;
    const bool weigh = product->experts.weigh || !node->plain;
    node->experts = product->experts;
    node->experts.weigh = weigh;
    frit_node *src[FRIT_MAX_SOURCES] = {product->src[0], product->src[1], node->src[1]};
    replace_op(node, FRIT_OP_EXPERTS_MIX, take_adapts(node, product, NULL, 3, src), src);
    return true;
}

static const pattern patterns[] = {
    {"rows are taken before what works row by row", take_rows_early},
    {"scale of scale", fold_scales},
    {"products with what adapters add to them", fuse_adapted},
    {"product with scale", fuse_linear_scale},
    {"gate and up products of experts with their activation", fuse_experts_glu},
    {"products of experts with their sum", fuse_experts_mix},
    {"reshape of reshape", fold_reshapes},
};

int frit_fuse(frit_graph *graph)
{
    frit_arena arena = {0};
    rewrite r = {.g = graph, .arena = &arena};
    int n_applied = 0;
    for (size_t p = 0; p < FRIT_COUNT(patterns) && graph->status == FRIT_OK; p++) {
        bool counted = false;
        for (int i = 0; i < graph->n_nodes; i++) {
            if (!counted && !count_uses(&r)) break;
            counted = true;
            if (r.n_uses[i] == 0 || !patterns[p].apply(&r, graph->nodes[i])) continue;
            n_applied++;
            counted = false;
        }
    }
    frit_arena_free(&arena);
    return n_applied;
}
