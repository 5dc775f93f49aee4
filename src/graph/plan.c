// SPDX-License-Identifier: MIT
// Makes a plan of a graph:
//
//   1. fusion (fuse.c);
//   2. stages: a node's stage follows the latest stage of its sources, so nodes of one stage are independent of each
//      other and a barrier between stages is all that threads need. Followers (plan.h) have the stage of their sources
//      and the next level. Nodes that neither the output nor the cache needs get no stage;
//   3. steps: the nodes by stage and level;
//   4. offsets: a buffer lives from the stage that writes it to the last stage that reads it, and bytes are used again
//      from the next stage on: no barrier is there for the sake of memory alone.
#include "graph/plan.h"

#include "base/check.h"
#include "graph/node.h"

#include <assert.h>
#include <stdlib.h>

enum { ALIGNMENT = 64, NO_STAGE = -1, MAX_LEVELS = 4 };   // product, norm, rope, kv_write

typedef struct buffer {
    int step;
    bool second;       // of ADD_NORM
    int first, last;   // stages
    uint64_t size, offset;
} buffer;

typedef struct planner {
    frit_plan *plan;
    frit_graph *g;
    frit_arena *arena;   // for the time of the planning
    int *stages;         // [n_nodes]: leaves 0, aliases as their source, steps from 1; NO_STAGE: dead
    int *levels;         // [n_nodes]
    int *step_of;        // [n_nodes]
    int n_stages;
    buffer *buffers;
    int n_buffers;
} planner;

static int max_int(int a, int b)
{
    return a > b ? a : b;
}

// The product that `node` continues head by head, or NULL.
static const frit_node *followed_product(const frit_node *node, int i)
{
    for (;;) {
        const frit_node *source = frit_node_storage(node->src[i]);
        const bool by_heads = source->n_dims == 3 && (source->op == FRIT_OP_ROPE || source->op == FRIT_OP_RMS_NORM);
        if (source->op == FRIT_OP_LINEAR) return source;
        if (!by_heads) return NULL;
        node = source;
        i = 0;
    }
}

// Whether it works on the heads of products, one by one.
static bool is_follower(const frit_node *node)
{
    if (node->n_src == 0 || node->n_dims != 3 || node->src[0]->n_dims != 3) return false;
    if (node->op == FRIT_OP_RMS_NORM) return node->src[0]->op == FRIT_OP_RESHAPE && followed_product(node, 0);
    if (node->op == FRIT_OP_ROPE) return followed_product(node, 0) != NULL;
    return node->op == FRIT_OP_KV_WRITE && node->n_src == 2 && followed_product(node, 0) && followed_product(node, 1);
}

static void set_stage(planner *p, const frit_node *node)
{
    int stage = 0, level = 0;
    bool together = is_follower(node);
    for (int i = 0; i < node->n_src; i++) stage = max_int(stage, p->stages[node->src[i]->id]);
    for (int i = 0; i < node->n_src; i++) {
        const frit_node *source = frit_node_storage(node->src[i]);
        if (frit_node_is_leaf(source)) continue;
        const bool goes_on = source->op == FRIT_OP_LINEAR || p->levels[source->id] > 0;
        together = together && goes_on && p->stages[source->id] == stage && source->id < node->id;
        level = max_int(level, p->levels[source->id] + 1);
    }
    const bool is_step = !frit_node_is_leaf(node) && node->op != FRIT_OP_RESHAPE;
    together = together && level < MAX_LEVELS;
    p->stages[node->id] = stage + (is_step && !together);
    p->levels[node->id] = is_step && together ? level : 0;
    p->n_stages = max_int(p->n_stages, p->stages[node->id] + 1);
}

// Depth first without recursion: a node stays on the stack until its sources have their stages.
static frit_status set_stages(planner *p)
{
    size_t n = (size_t)p->g->n_nodes;
    frit_node **stack = frit_arena_new(p->arena, frit_node *, n * (FRIT_MAX_SOURCES + 2) + 1);
    p->stages = frit_arena_new(p->arena, int, n);
    p->levels = frit_arena_new(p->arena, int, n);
    if (!stack || !p->stages || !p->levels) return frit_fail_memory(n * sizeof *stack, "planning");
    for (size_t i = 0; i < n; i++) p->stages[i] = NO_STAGE;
    int top = 0;
    for (size_t i = 0; i < n; i++)
        if (p->g->nodes[i]->op == FRIT_OP_KV_WRITE) stack[top++] = p->g->nodes[i];
    stack[top++] = p->g->output;
    while (top > 0) {
        frit_node *node = stack[top - 1];
        int waiting = 0;
        for (int i = 0; i < node->n_src; i++) {
            if (p->stages[node->src[i]->id] != NO_STAGE) continue;
            stack[top++] = node->src[i];
            waiting++;
        }
        if (waiting > 0) continue;
        top--;
        set_stage(p, node);
    }
    return FRIT_OK;
}

static int key_of(const planner *p, int i)
{
    return p->stages[i] * MAX_LEVELS + p->levels[i];
}

// Counting sort by stage and level; within a level nodes keep their order.
static frit_status set_steps(planner *p)
{
    frit_graph *g = p->g;
    const int n_keys = p->n_stages * MAX_LEVELS;
    int *at = frit_arena_new(p->arena, int, (size_t)n_keys + 1);
    p->step_of = frit_arena_new(p->arena, int, (size_t)g->n_nodes);
    if (!at || !p->step_of) return frit_fail_memory((size_t)g->n_nodes * sizeof *at, "planning");
    frit_plan *plan = p->plan;
    for (int i = 0; i < g->n_nodes; i++) {
        bool is_step = p->stages[i] > 0 && g->nodes[i]->op != FRIT_OP_RESHAPE;
        if (is_step) at[key_of(p, i) + 1]++;
        plan->n_steps += is_step;
    }
    for (int k = 1; k <= n_keys; k++) at[k] += at[k - 1];
    plan->steps = frit_arena_new(g->arena, frit_plan_step, (size_t)plan->n_steps);
    if (!plan->steps) return frit_fail_memory((size_t)plan->n_steps * sizeof *plan->steps, "a plan");
    for (int i = 0; i < g->n_nodes; i++) {
        frit_node *node = g->nodes[i];
        if (p->stages[i] <= 0 || node->op == FRIT_OP_RESHAPE) continue;
        int k = p->step_of[i] = at[key_of(p, i)]++;
        plan->steps[k] = (frit_plan_step){.node = node, .has_buffer = !frit_node_is_write(node), .level = p->levels[i]};
    }
    for (int k = 1; k < plan->n_steps; k++)
        plan->steps[k].barrier = p->stages[plan->steps[k].node->id] != p->stages[plan->steps[k - 1].node->id];
    return FRIT_OK;
}

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

// True if reading `node` reads the second result of its storage.
static bool reads_second(const frit_node *node)
{
    bool second = false;
    for (; node->op == FRIT_OP_RESHAPE; node = node->src[0]) second = second || node->second;
    return second;
}

static buffer *find_buffer(planner *p, int *first_buffer, const frit_node *read)
{
    const frit_node *storage = frit_node_storage(read);
    if (frit_node_is_leaf(storage) || frit_node_is_write(storage)) return NULL;
    return &p->buffers[first_buffer[p->step_of[storage->id]] + reads_second(read)];
}

static void extend(buffer *b, int stage)
{
    if (b) b->last = max_int(b->last, stage);
}

// Who reads a norm, or a sum with one, may compute it himself; the norm of such a sum, both.
static void extend_sources(planner *p, int *first_buffer, const frit_node *source, int stage)
{
    const bool is_norm = source->op == FRIT_OP_RMS_NORM || source->op == FRIT_OP_LAYER_NORM;
    if (!is_norm && source->op != FRIT_OP_NORM_ADD) return;
    extend(find_buffer(p, first_buffer, source->src[0]), stage);
    if (source->op == FRIT_OP_NORM_ADD) extend(find_buffer(p, first_buffer, source->src[2]), stage);
    const frit_node *below = frit_node_storage(source->src[0]);
    if (is_norm && below->op == FRIT_OP_NORM_ADD) extend_sources(p, first_buffer, below, stage);
}

// The buffers of the steps, in their order, with the stages they live in.
static frit_status set_lifetimes(planner *p)
{
    frit_plan *plan = p->plan;
    int *first_buffer = frit_arena_new(p->arena, int, (size_t)plan->n_steps);
    p->buffers = frit_arena_new(p->arena, buffer, 2 * (size_t)plan->n_steps);
    if (!first_buffer || !p->buffers) return frit_fail_memory((size_t)plan->n_steps * sizeof *p->buffers, "planning");
    for (int k = 0; k < plan->n_steps; k++) {
        const frit_node *node = plan->steps[k].node;
        first_buffer[k] = p->n_buffers;
        int n_results = !plan->steps[k].has_buffer ? 0 : node->op == FRIT_OP_ADD_NORM ? 2 : 1;
        for (int i = 0; i < n_results; i++) {
            int stage = p->stages[node->id];
            buffer *b = &p->buffers[p->n_buffers++];
            *b = (buffer){.step = k, .second = i == 1, .first = stage, .last = stage};
            FRIT_TRY(buffer_size(node, &b->size));
        }
    }
    for (int k = 0; k < plan->n_steps; k++) {
        const frit_node *node = plan->steps[k].node;
        for (int i = 0; i < node->n_src; i++) {
            const int stage = p->stages[node->id];
            extend(find_buffer(p, first_buffer, node->src[i]), stage);
            extend_sources(p, first_buffer, frit_node_storage(node->src[i]), stage);
        }
    }
    buffer *result = find_buffer(p, first_buffer, p->g->output);
    if (!result) return frit_fail(FRIT_E_INVALID, "the output of the graph is not computed by any op");
    result->last = p->n_stages;
    return FRIT_OK;
}

static int larger_first(const void *a, const void *b)
{
    const buffer *x = *(const buffer *const *)a, *y = *(const buffer *const *)b;
    if (x->size != y->size) return x->size > y->size ? -1 : 1;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    return (int)x->second - (int)y->second;
}

// The lowest place beside all placed buffers that live at the same time; `placed` is kept in order of offsets.
static void place(planner *p, buffer **placed, int n_placed, buffer *b)
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
    for (int i = 0; i < p->n_buffers; i++) place(p, placed, i, by_size[i]);
    for (int i = 0; i < p->n_buffers; i++) {
        const buffer *b = &p->buffers[i];
        frit_plan_step *step = &plan->steps[b->step];
        *(b->second ? &step->second_offset : &step->offset) = b->offset;
    }
    for (int i = 0; i < p->g->n_nodes; i++) {
        const frit_node *node = p->g->nodes[i], *storage = frit_node_storage(node);
        plan->offsets[i] = UINT64_MAX;
        if (p->stages[storage->id] <= 0 || frit_node_is_write(storage)) continue;
        const frit_plan_step *step = &plan->steps[p->step_of[storage->id]];
        plan->offsets[i] = reads_second(node) ? step->second_offset : step->offset;
    }
    return FRIT_OK;
}

static frit_status make_plan(planner *p)
{
    FRIT_TRY(set_stages(p));
    FRIT_TRY(set_steps(p));
    FRIT_TRY(set_lifetimes(p));
    return set_offsets(p);
}

frit_status frit_plan_new(frit_plan **out, frit_graph *graph, const frit_plan_options *options)
{
    *out = NULL;
    FRIT_TRY(frit_graph_check(graph));
    if (!graph->output) return frit_fail(FRIT_E_INVALID, "the graph has no output");
    if (!options || !options->no_fuse) frit_fuse(graph);
    FRIT_TRY(frit_graph_check(graph));
    frit_plan *plan = frit_arena_new(graph->arena, frit_plan, 1);
    if (!plan) return frit_fail_memory(sizeof *plan, "a plan");
    plan->graph = graph;
    plan->few_rows = options && options->few_rows;
    plan->n_rows = graph->max_rows;
    plan->n_outs = graph->max_outs;
    frit_arena arena = {0};
    frit_status status = make_plan(&(planner){.plan = plan, .g = graph, .arena = &arena});
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
        if (node->rows == FRIT_ROWS_BATCH) node->shape[0] = n_rows;
        if (node->rows == FRIT_ROWS_OUTS) node->shape[0] = n_outs;
    }
    plan->n_rows = n_rows;
    plan->n_outs = n_outs;
}
