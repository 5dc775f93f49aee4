// SPDX-License-Identifier: MIT
// Cuts a graph into segments:
//
//   1. The order: the nodes that the output and the cache need, each after its sources.
//   2. A device for each node.
//   3. Segments: all nodes of one device whose sources are computed, until no node is left.
//   4. A graph for each segment: copies of its nodes and of the leaves and aliases that they read, and inputs for
// results
//      of other segments.
#include "graph/segment.h"
#include "graph/node.h"

enum { NONE = -1 };

typedef struct cutting {
    const frit_placement *placement;
    frit_graph *g;
    frit_arena *arena;    // freed after the cutting
    frit_node **order;    // [n]: computing nodes, each after its sources
    int *segment_of;      // [n_nodes]; NONE: not yet
    frit_node **copies;   // [n_nodes]: copies of computing nodes in their own segment
    frit_node **here;     // [n_nodes]: the copy or input for a node in the current segment
    int n;
} cutting;

// ------------------------------------------------------------------------------- order

static bool is_computed(const frit_node *node)
{
    return !frit_node_is_leaf(node) && node->op != FRIT_OP_RESHAPE;
}

// Depth first, without recursion: a node stays on the stack until its sources are in order.
static frit_status add_in_order(cutting *c, frit_node *root, bool *is_done, frit_node **stack)
{
    int top = 0;
    stack[top++] = root;
    while (top > 0) {
        frit_node *node = stack[top - 1], *waits_for = NULL;
        for (int i = 0; i < node->n_src && !waits_for; i++)
            if (!is_done[node->src[i]->id]) waits_for = node->src[i];
        if (waits_for && !is_done[node->id]) {
            if (top == c->g->n_nodes) return frit_fail(FRIT_E_INTERNAL, "the nodes of a graph read each other");
            stack[top++] = waits_for;
            continue;
        }
        top--;
        if (is_done[node->id]) continue;
        is_done[node->id] = true;
        if (is_computed(node)) c->order[c->n++] = node;
    }
    return FRIT_OK;
}

static frit_status set_order(cutting *c)
{
    const size_t n = (size_t)c->g->n_nodes;
    bool *is_done = frit_arena_new(c->arena, bool, n);
    frit_node **stack = frit_arena_new(c->arena, frit_node *, n);
    c->order = frit_arena_new(c->arena, frit_node *, n);
    c->segment_of = frit_arena_new(c->arena, int, n);
    c->copies = frit_arena_new(c->arena, frit_node *, n);
    c->here = frit_arena_new(c->arena, frit_node *, n);
    if (frit_arena_failed(c->arena)) return frit_fail_memory(n * sizeof *stack, "segments");
    for (size_t i = 0; i < n; i++) c->segment_of[i] = NONE;
    for (size_t i = 0; i < n; i++)
        if (c->g->nodes[i]->op == FRIT_OP_KV_WRITE) FRIT_TRY(add_in_order(c, c->g->nodes[i], is_done, stack));
    for (int i = 0; i < c->g->n_results; i++) FRIT_TRY(add_in_order(c, c->g->results[i], is_done, stack));
    return c->g->output ? add_in_order(c, c->g->output, is_done, stack) : FRIT_OK;
}

// ------------------------------------------------------------------------------- devices

static int device_of(const frit_placement *p, const frit_node *node)
{
    const int32_t layer = frit_node_cache_layer(node);
    if (layer >= 0) return p->cache_devices[layer];
    const int wanted = p->wanted(p->ctx, node);
    return p->runs(p->ctx, wanted, node) ? wanted : p->n_devices - 1;
}

frit_status frit_segments_place_cache(const frit_placement *placement, const frit_graph *graph, int8_t *devices,
                                      int32_t n_layers)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        const frit_node *node = graph->nodes[i];
        const int32_t layer = frit_node_cache_layer(node);
        if (layer < 0) continue;
        if (layer >= n_layers)
            return frit_fail(FRIT_E_INTERNAL, "op %s touches layer %d of the cache, which has %d",
                             frit_op_get(node->op)->name, (int)layer, (int)n_layers);
        if (devices[layer] < 0) devices[layer] = (int8_t)placement->wanted(placement->ctx, node);
        if (!placement->runs(placement->ctx, devices[layer], node)) devices[layer] = (int8_t)(placement->n_devices - 1);
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- segments

static bool is_ready(const cutting *c, const frit_node *node)
{
    for (int i = 0; i < node->n_src; i++) {
        const frit_node *read = frit_node_storage(node->src[i]);
        if (is_computed(read) && c->segment_of[read->id] == NONE) return false;
    }
    return true;
}

// Adds to segment i the nodes of the device whose sources are computed. Returns the first remaining node, or NULL.
static const frit_node *fill_segment(cutting *c, int i, int device)
{
    const frit_node *left = NULL;
    for (int k = 0; k < c->n; k++) {
        const frit_node *node = c->order[k];
        if (c->segment_of[node->id] != NONE) continue;
        if (device_of(c->placement, node) == device && is_ready(c, node))
            c->segment_of[node->id] = i;
        else if (!left)
            left = node;
    }
    return left;
}

static frit_status list_segments(cutting *c, frit_segments *out)
{
    out->list = frit_arena_new(c->g->arena, frit_segment, (size_t)c->n + 1);
    if (!out->list) return frit_fail_memory((size_t)c->n * sizeof *out->list, "segments");
    for (const frit_node *left = c->n > 0 ? c->order[0] : NULL; left; out->n++) {
        const int device = device_of(c->placement, left);
        out->list[out->n].device = device;
        left = fill_segment(c, out->n, device);
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- graphs

// Makes a node a result of its segment, once.
static frit_status add_result(frit_graph *g, frit_node *node, size_t capacity)
{
    if (!g->results) g->results = frit_arena_new(g->arena, frit_node *, capacity);
    if (!g->results) return frit_fail_memory(capacity * sizeof node, "results of a segment");
    for (int i = 0; i < g->n_results; i++)
        if (g->results[i] == node) return FRIT_OK;
    g->results[g->n_results++] = node;
    return FRIT_OK;
}

// Adds an input that stands for a node of an earlier segment.
static frit_status add_input(cutting *c, const frit_segments *segments, frit_segment *to, frit_node *node)
{
    const int from = c->segment_of[node->id];
    const bool is_write = frit_node_is_write(node);
    frit_node input = {.op = FRIT_OP_INPUT,
                       .input = is_write ? FRIT_INPUT_WRITTEN : FRIT_INPUT_RESULT,
                       .depth = node->depth,
                       .rows = node->rows,
                       .n_dims = node->n_dims};
    memcpy(input.shape, node->shape, sizeof input.shape);
    frit_node *copy = c->here[node->id] = frit_node_copy(&to->graph, &input);
    if (!copy) return frit_graph_check(&to->graph);
    FRIT_TRY(add_result(&segments->list[from].graph, c->copies[node->id], (size_t)c->n));
    if (is_write) return FRIT_OK;
    if (!to->inputs) to->inputs = frit_arena_new(c->g->arena, frit_crossing, (size_t)c->n);
    if (!to->inputs) return frit_fail_memory((size_t)c->n * sizeof *to->inputs, "inputs of a segment");
    to->inputs[to->n_inputs++] = (frit_crossing){from, c->copies[node->id], copy};
    return FRIT_OK;
}

static frit_status copy_node(cutting *c, frit_segment *to, frit_node *node)
{
    frit_node copy = *node;
    for (int i = 0; i < node->n_src; i++) copy.src[i] = c->here[node->src[i]->id];
    c->here[node->id] = frit_node_copy(&to->graph, &copy);
    if (node->op == FRIT_OP_INPUT && node->input == FRIT_INPUT_RESULT) to->given = c->here[node->id];
    return frit_graph_check(&to->graph);
}

// Makes the source available in the segment: copies leaves and aliases, adds an input for results of other segments.
static frit_status copy_source(cutting *c, const frit_segments *segments, frit_segment *to, frit_node *node)
{
    if (c->here[node->id]) return FRIT_OK;
    if (is_computed(node)) return add_input(c, segments, to, node);
    if (node->op == FRIT_OP_RESHAPE) FRIT_TRY(copy_source(c, segments, to, node->src[0]));
    return copy_node(c, to, node);
}

static frit_status make_graph(cutting *c, const frit_segments *segments, int i)
{
    frit_segment *segment = &segments->list[i];
    frit_graph_init(&segment->graph, c->g->arena, c->g->max_rows, c->g->max_outs);
    memset(c->here, 0, (size_t)c->g->n_nodes * sizeof *c->here);
    for (int k = 0; k < c->n; k++) {
        frit_node *node = c->order[k];
        if (c->segment_of[node->id] != i) continue;
        for (int s = 0; s < node->n_src; s++) FRIT_TRY(copy_source(c, segments, segment, node->src[s]));
        FRIT_TRY(copy_node(c, segment, node));
        c->copies[node->id] = c->here[node->id];
    }
    if (!c->g->output || c->segment_of[frit_node_storage(c->g->output)->id] != i) return FRIT_OK;
    FRIT_TRY(copy_source(c, segments, segment, c->g->output));
    segment->graph.output = c->here[c->g->output->id];
    return FRIT_OK;
}

// One device runs all nodes: the segment is the graph itself.
static void use_whole_graph(const cutting *c, frit_segments *out)
{
    out->list[0].graph = *c->g;
    for (int i = 0; i < c->g->n_nodes; i++) {
        const frit_node *node = c->g->nodes[i];
        if (node->op == FRIT_OP_INPUT && node->input == FRIT_INPUT_RESULT) out->list[0].given = node;
    }
    out->result = c->g->n_results > 0 ? c->g->results[0] : NULL;
}

static frit_status record_result(const cutting *c, frit_segments *out)
{
    if (c->g->n_results == 0) return FRIT_OK;
    frit_node *result = frit_node_storage(c->g->results[0])->id == c->g->results[0]->id ? c->g->results[0] : NULL;
    if (!result) return frit_fail(FRIT_E_INTERNAL, "a graph keeps the result of a reshape");
    out->result_segment = c->segment_of[result->id];
    out->result = c->copies[result->id];
    return add_result(&out->list[out->result_segment].graph, c->copies[result->id], (size_t)c->n);
}

static frit_status make_segments(cutting *c, frit_segments *out)
{
    FRIT_TRY(set_order(c));
    FRIT_TRY(list_segments(c, out));
    if (out->n == 1) {
        use_whole_graph(c, out);
        return FRIT_OK;
    }
    for (int i = 0; i < out->n; i++) FRIT_TRY(make_graph(c, out, i));
    FRIT_TRY(record_result(c, out));
    if (c->g->output) out->output = c->segment_of[frit_node_storage(c->g->output)->id];
    return FRIT_OK;
}

frit_status frit_segments_make(frit_segments *out, frit_graph *graph, const frit_placement *placement)
{
    *out = (frit_segments){0};
    frit_arena arena = {0};
    const frit_status status = make_segments(&(cutting){.placement = placement, .g = graph, .arena = &arena}, out);
    frit_arena_free(&arena);
    return status;
}
