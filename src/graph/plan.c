// SPDX-License-Identifier: MIT
// Makes a plan of a graph: rewriting (fuse.c), phases (phase.c), offsets. A buffer lives from the phase that writes it
// to the last phase that reads it. Its bytes are reused from the next phase on, so memory alone never needs a barrier.
#include "graph/plan.h"

#include "base/check.h"
#include "graph/node.h"

#include <assert.h>
#include <stdlib.h>

enum { ALIGNMENT = 64, NONE = -1 };

typedef struct buffer {
    const frit_node *node;
    int first, last;   // phases
    uint64_t size, offset;
} buffer;

typedef struct planner {
    frit_plan *plan;
    frit_graph *g;
    frit_arena *arena;   // freed after planning
    buffer *buffers;
    buffer **buffer_of;   // [n_nodes]; NULL: the result is not stored
    int n_buffers;
} planner;

static frit_status buffer_size(const frit_node *node, uint64_t *size)
{
    *size = sizeof(float);
    bool fits = true;
    for (int i = 0; i < node->n_dims; i++) fits = fits && frit_mul_u64(*size, (uint64_t)node->shape[i], size);
    fits = fits && frit_align_u64(*size, ALIGNMENT, size) && *size <= UINT64_MAX / 4;
    char shape[96];
    return fits ? FRIT_OK
                : frit_fail(FRIT_E_LIMIT, "the result of op %s is too large: %s", frit_op_get(node->op)->name,
                            frit_node_shape_text(node, shape));
}

static frit_status add_buffer(planner *p, const frit_node *node, int phase)
{
    buffer *b = &p->buffers[p->n_buffers++];
    *b = (buffer){.node = node, .first = phase, .last = phase};
    p->buffer_of[node->id] = b;
    return buffer_size(node, &b->size);
}

// The fusion that computes source i of the node, or NONE if it is `fusion` itself or a leaf.
static int other_fusion(const planner *p, int fusion, const frit_node *node, int i)
{
    const int from = p->plan->phases.fusion_of[node->src[i]->id];
    return from == fusion ? NONE : from;
}

// Adds a buffer for each result of a fusion, and for each result within a fusion that another fusion reads.
static frit_status add_buffers(planner *p)
{
    const frit_phases *phases = &p->plan->phases;
    const size_t n = (size_t)p->g->n_nodes;
    bool *is_read = frit_arena_new(p->arena, bool, n);
    p->buffers = frit_arena_new(p->arena, buffer, n);
    p->buffer_of = frit_arena_new(p->arena, buffer *, n);
    if (!is_read || !p->buffers || !p->buffer_of) return frit_fail_memory(n * sizeof *p->buffers, "planning");
    if (p->g->output) is_read[frit_node_storage(p->g->output)->id] = true;
    for (int i = 0; i < p->g->n_results; i++) is_read[frit_node_storage(p->g->results[i])->id] = true;
    for (int k = 0; k < phases->n_fusions; k++)
        for (int i = 0; i < phases->fusions[k].n_nodes; i++) {
            const frit_node *node = phases->fusions[k].nodes[i];
            for (int s = 0; s < node->n_src; s++)
                if (other_fusion(p, k, node, s) != NONE) is_read[frit_node_storage(node->src[s])->id] = true;
        }
    for (int k = 0; k < phases->n_fusions; k++) {
        const frit_fusion *fusion = &phases->fusions[k];
        for (int i = 0; i < fusion->n_nodes; i++) {
            const frit_node *node = fusion->nodes[i];
            if (frit_node_is_write(node) || (i < fusion->n_nodes - 1 && !is_read[node->id])) continue;
            FRIT_TRY(add_buffer(p, node, fusion->phase));
        }
    }
    return FRIT_OK;
}

// Extends the lifetime of the sources of fusion k, and of the sources of prologues that it reads, to `phase`.
static void extend_sources(planner *p, int k, int phase)
{
    const frit_phases *phases = &p->plan->phases;
    const frit_fusion *fusion = &phases->fusions[k];
    for (int i = 0; i < fusion->n_nodes; i++) {
        const frit_node *node = fusion->nodes[i];
        for (int s = 0; s < node->n_src; s++) {
            const int from = other_fusion(p, k, node, s);
            buffer *b = from == NONE ? NULL : p->buffer_of[frit_node_storage(node->src[s])->id];
            if (b && b->last < phase) b->last = phase;
            if (from != NONE && frit_phases_is_prologue(phases, from)) extend_sources(p, from, phase);
        }
    }
}

// Extends the sources of the previous phase's fusions that prologue k reads, to the phase of k.
static void extend_for_prologue(planner *p, int k)
{
    const frit_phases *phases = &p->plan->phases;
    const frit_fusion *fusion = &phases->fusions[k];
    for (int i = 0; i < fusion->n_nodes; i++)
        for (int s = 0; s < fusion->nodes[i]->n_src; s++) {
            const int from = other_fusion(p, k, fusion->nodes[i], s);
            if (from != NONE && phases->fusions[from].phase == fusion->phase - 1)
                extend_sources(p, from, fusion->phase);
        }
}

static bool is_exchange(const frit_node *node)
{
    return node->op == FRIT_OP_REDUCE || node->op == FRIT_OP_GATHER;
}

// Other ranks may read the source of an exchange until they come to the next one.
static void extend_exchanged(planner *p)
{
    const frit_phases *phases = &p->plan->phases;
    int phase = phases->n, next = phases->n;
    for (int k = phases->n_fusions - 1; k >= 0; k--) {
        const frit_fusion *fusion = &phases->fusions[k];
        if (!is_exchange(fusion->nodes[0])) continue;
        if (fusion->phase != phase) next = phase, phase = fusion->phase;
        buffer *b = p->buffer_of[frit_node_storage(fusion->nodes[0]->src[0])->id];
        if (b && b->last < next) b->last = next;
    }
}

static frit_status set_lifetimes(planner *p, bool early_prologues)
{
    const frit_phases *phases = &p->plan->phases;
    FRIT_TRY(add_buffers(p));
    for (int k = 0; k < phases->n_fusions; k++) {
        extend_sources(p, k, phases->fusions[k].phase);
        if (early_prologues && frit_phases_is_prologue(phases, k)) extend_for_prologue(p, k);
    }
    extend_exchanged(p);
    for (int i = -1; i < p->g->n_results; i++) {
        const frit_node *read = i < 0 ? p->g->output : p->g->results[i];
        if (!read || frit_node_is_write(read)) continue;
        buffer *result = p->buffer_of[frit_node_storage(read)->id];
        if (!result) return frit_fail(FRIT_E_INVALID, "the output of the graph is not computed by any op");
        result->last = p->plan->phases.n;
    }
    return FRIT_OK;
}

static int larger_first(const void *a, const void *b)
{
    const buffer *x = *(const buffer *const *)a, *y = *(const buffer *const *)b;
    if (x->size != y->size) return x->size > y->size ? -1 : 1;
    return x < y ? -1 : x > y;
}

// Gives b the lowest offset that no buffer of an overlapping lifetime uses. `placed` is sorted by offset.
static void place_buffer(planner *p, buffer **placed, int n_placed, buffer *b)
{
    uint64_t offset = 0;
    for (int i = 0; i < n_placed; i++) {
        const buffer *other = placed[i];
        bool together = other->first <= b->last && b->first <= other->last;
        if (!together || other->offset + other->size <= offset) continue;
        if (other->offset >= offset + b->size) break;
        offset = other->offset + other->size;
    }
    b->offset = offset;
    int i = n_placed;
    for (; i > 0 && placed[i - 1]->offset > offset; i--) placed[i] = placed[i - 1];
    placed[i] = b;
    if (p->plan->scratch_bytes < offset + b->size) p->plan->scratch_bytes = offset + b->size;
}

// Inputs never share bytes: another graph may write them at any time before this one runs.
static frit_status set_input_offsets(frit_plan *plan)
{
    const frit_graph *g = plan->graph;
    for (int i = 0; i < g->n_nodes; i++) {
        uint64_t size;
        if (!frit_node_is_result_input(g->nodes[i])) continue;
        FRIT_TRY(buffer_size(g->nodes[i], &size));
        plan->offsets[i] = plan->input_bytes;
        plan->input_bytes += size;
    }
    for (int i = 0; i < g->n_nodes; i++) {
        const frit_node *storage = frit_node_storage(g->nodes[i]);
        if (frit_node_is_result_input(storage)) plan->offsets[i] = plan->offsets[storage->id];
    }
    return FRIT_OK;
}

static frit_status set_offsets(planner *p)
{
    frit_plan *plan = p->plan;
    buffer **by_size = frit_arena_new(p->arena, buffer *, (size_t)p->n_buffers);
    buffer **placed = frit_arena_new(p->arena, buffer *, (size_t)p->n_buffers);
    plan->offsets = frit_arena_new(p->g->arena, uint64_t, (size_t)p->g->n_nodes);
    if (!by_size || !placed || !plan->offsets)
        return frit_fail_memory((size_t)p->n_buffers * sizeof *placed, "planning");
    for (int i = 0; i < p->n_buffers; i++) by_size[i] = &p->buffers[i];
    qsort(by_size, (size_t)p->n_buffers, sizeof *by_size, larger_first);
    for (int i = 0; i < p->n_buffers; i++) place_buffer(p, placed, i, by_size[i]);
    for (int i = 0; i < p->g->n_nodes; i++) {
        const buffer *b = p->buffer_of[frit_node_storage(p->g->nodes[i])->id];
        plan->offsets[i] = b ? b->offset : UINT64_MAX;
    }
    return set_input_offsets(plan);
}

static frit_status make_plan(planner *p, const frit_plan_options *options)
{
    FRIT_TRY(frit_phases_make(&p->plan->phases, p->g, options->can_join, options->device));
    FRIT_TRY(set_lifetimes(p, options->early_prologues));
    return set_offsets(p);
}

// True if something the graph computes is read later. A segment may only write to the cache.
static bool has_purpose(const frit_graph *graph)
{
    bool writes = false;
    for (int i = 0; i < graph->n_nodes; i++) writes = writes || graph->nodes[i]->op == FRIT_OP_KV_WRITE;
    return graph->output || graph->n_results > 0 || writes;
}

static bool joins_nothing(const void *device, frit_join join, const frit_node *node, const frit_node *other)
{
    (void)device;
    (void)join;
    (void)node;
    (void)other;
    return false;
}

frit_status frit_plan_new(frit_plan **out, frit_graph *graph, const frit_plan_options *options)
{
    frit_plan_options with = options ? *options : (frit_plan_options){0};
    *out = NULL;
    FRIT_TRY(frit_graph_check(graph));
    if (!has_purpose(graph)) return frit_fail(FRIT_E_INVALID, "the graph has no output");
    if (with.no_fuse)
        with.can_join = joins_nothing;
    else if (!with.is_fused)
        frit_fuse(graph);
    FRIT_TRY(frit_graph_check(graph));
    frit_plan *plan = frit_arena_new(graph->arena, frit_plan, 1);
    if (!plan) return frit_fail_memory(sizeof *plan, "a plan");
    plan->graph = graph;
    plan->decode_kernels = with.decode_kernels;
    plan->joins_sequences = with.joins_sequences;
    plan->streams = with.streams;
    plan->no_fuse = with.no_fuse;
    plan->n_rows = graph->max_rows;
    plan->n_outs = graph->max_outs;
    frit_arena arena = {0};
    frit_status status = make_plan(&(planner){.plan = plan, .g = graph, .arena = &arena}, &with);
    frit_arena_free(&arena);
    if (status == FRIT_OK) *out = plan;
    return status;
}

void frit_plan_set_rows(frit_plan *plan, int64_t n_rows, int64_t n_outs)
{
    frit_graph *g = plan->graph;
    assert(0 <= n_rows && n_rows <= g->max_rows && 0 <= n_outs && n_outs <= g->max_outs);
    for (int i = 0; i < g->n_nodes; i++) {
        frit_node *node = g->nodes[i];
        if (node->rows == FRIT_SHAPE_BATCH) node->shape[0] = n_rows;
        if (node->rows == FRIT_SHAPE_OUTS) node->shape[0] = n_outs;
    }
    plan->n_rows = n_rows;
    plan->n_outs = n_outs;
}
