// SPDX-License-Identifier: MIT
// Inputs of matrix products: sums of squares for importance, and rows for an observer of inputs.
#include "engine/observe.h"

#include "base/thread/thread.h"
#include "engine/engine.h"
#include "graph/node.h"

#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------------- plans

// Matrix products, and the indices of their weights and route in `src` of the node.
static const struct {
    frit_op op;
    int weights[2];   // 0: none
    int route;        // 0: none
    bool by_head;     // one matrix for each head of x
} products[] = {
    {FRIT_OP_LINEAR, {1, 0}, 0, false},      {FRIT_OP_HEADS, {1, 0}, 0, true},
    {FRIT_OP_EXPERTS, {1, 0}, 2, false},     {FRIT_OP_EXPERTS_GLU, {1, 2}, 3, false},
    {FRIT_OP_EXPERTS_MIX, {1, 0}, 2, false},
};

static int64_t width_of(const frit_node *node)
{
    return node->shape[node->n_dims - 1];
}

static bool is_listed(const frit_planned_segment *planned, const char *name, const frit_node *x)
{
    for (int i = 0; i < planned->n_observed; i++)
        if (strcmp(planned->observed[i].name, name) == 0 && planned->observed[i].x == x) return true;
    return false;
}

static void add_result(frit_graph *graph, frit_node *node)
{
    if (node->op == FRIT_OP_INPUT) return;   // inputs have memory of their own
    for (int i = 0; i < graph->n_results; i++)
        if (graph->results[i] == node) return;
    graph->results[graph->n_results++] = node;
}

static frit_status enter_importance(frit_importance *importance, frit_observed *observed)
{
    frit_importance_entry *entry = frit_importance_find(importance, observed->name);
    if (!entry)
        FRIT_TRY(frit_importance_add(importance, observed->name, (size_t)observed->n_values, (size_t)observed->n_counts,
                                     &entry));
    if (entry->n_values != (size_t)observed->n_values || entry->n_counts != (size_t)observed->n_counts)
        return frit_fail(FRIT_E_INVALID, "importance of '%s' has %zu values and %zu counts, expected %lld and %lld",
                         observed->name, entry->n_values, entry->n_counts, (long long)observed->n_values,
                         (long long)observed->n_counts);
    observed->entry = (size_t)(entry - importance->entries);
    return FRIT_OK;
}

// Enters a tensor once. A tensor that reads two inputs is entered with the first one, because other tensors may share
// it.
static frit_status enter_input(const frit_input_observer *inputs, const frit_planned_segment *planned,
                               frit_observed *observed)
{
    int64_t same = -1;
    for (int i = 0; i < planned->n_observed; i++) {
        const frit_observed *other = &planned->observed[i];
        if (strcmp(other->name, observed->name) == 0) return FRIT_OK;
        if (other->x == observed->x && other->route == observed->route && other->width == observed->width && same < 0)
            same = other->index;
    }
    return inputs->enter(inputs->ctx, observed->name, observed->width, observed->n_values / observed->width, same,
                         &observed->index);
}

// Sets *is_wanted if the input must be a result of the plan.
static frit_status add_observed(const frit_engine *engine, frit_planned_segment *planned, frit_observed observed,
                                bool *is_wanted)
{
    const struct frit_observer *observer = engine->observer;
    *is_wanted = false;
    if (is_listed(planned, observed.name, observed.x)) return FRIT_OK;
    observed.index = -1;
    if (observer->importance) FRIT_TRY(enter_importance(observer->importance, &observed));
    if (observer->inputs.add) FRIT_TRY(enter_input(&observer->inputs, planned, &observed));
    *is_wanted = observer->importance || observed.index >= 0;
    if (*is_wanted) planned->observed[planned->n_observed++] = observed;
    return FRIT_OK;
}

static frit_status add_product(const frit_engine *engine, frit_planned_segment *planned, frit_graph *graph,
                               const frit_node *node, size_t row)
{
    const int route = products[row].route;
    for (int k = 0; k < 2 && products[row].weights[k] > 0; k++) {
        const frit_tensor *weight = node->src[products[row].weights[k]]->tensor;
        const bool is_matrix = weight && weight->n_dims > 1 && frit_checkpoint_find(engine->model->ckpt, weight->name);
        if (!is_matrix) continue;
        frit_node *x = (frit_node *)(uintptr_t)frit_node_storage(node->src[0]);
        const int64_t n_matrices = weight->n_dims > 2 && (route > 0 || products[row].by_head) ? weight->shape[0] : 1;
        const frit_observed observed = {.name = weight->name,
                                        .x = x,
                                        .width = width_of(node->src[0]),
                                        .route = route > 0 ? frit_node_storage(node->src[route]) : NULL,
                                        .n_values = width_of(node->src[0]) * n_matrices,
                                        .n_counts = route > 0 ? n_matrices : 1};
        bool is_wanted;
        FRIT_TRY(add_observed(engine, planned, observed, &is_wanted));
        if (!is_wanted) continue;
        add_result(graph, x);
        if (route > 0) add_result(graph, (frit_node *)(uintptr_t)observed.route);
    }
    return FRIT_OK;
}

static bool push_live(const frit_node **stack, int *n, bool *is_live, const frit_node *node)
{
    if (!node || is_live[node->id]) return false;
    is_live[node->id] = true;
    stack[(*n)++] = node;
    return true;
}

// Marks nodes that are used: rewriting leaves unused nodes in the list.
static void find_live(const frit_graph *graph, bool *is_live, const frit_node **stack)
{
    int n = 0;
    push_live(stack, &n, is_live, graph->output);
    for (int i = 0; i < graph->n_results; i++) push_live(stack, &n, is_live, graph->results[i]);
    for (int i = 0; i < graph->n_nodes; i++)
        if (frit_node_is_write(graph->nodes[i])) push_live(stack, &n, is_live, graph->nodes[i]);
    while (n > 0) {
        const frit_node *node = stack[--n];
        for (int s = 0; s < node->n_src; s++) push_live(stack, &n, is_live, node->src[s]);
    }
}

frit_status frit_observe_keep(const frit_engine *engine, frit_planned_segment *planned, frit_graph *graph,
                              const frit_tensor *head)
{
    const size_t n = (size_t)graph->n_nodes;
    frit_node **results = frit_arena_new(graph->arena, frit_node *, 3 * n + 1);
    const frit_node **stack = frit_arena_new(graph->arena, const frit_node *, n + 1);
    bool *is_live = frit_arena_new(graph->arena, bool, n + 1);
    planned->observed = frit_arena_new(graph->arena, frit_observed, 2 * n + 1);
    if (!results || !stack || !is_live || !planned->observed)
        return frit_fail_memory(n * sizeof *planned->observed, "what products read");
    find_live(graph, is_live, stack);
    for (int i = 0; i < graph->n_results; i++) results[i] = graph->results[i];
    graph->results = results;
    for (size_t i = 0; i < n; i++)
        for (size_t row = 0; row < FRIT_COUNT(products) && is_live[i]; row++)
            if (graph->nodes[i]->op == products[row].op)
                FRIT_TRY(add_product(engine, planned, graph, graph->nodes[i], row));
    if (!graph->output) return FRIT_OK;
    bool reads_output = false;
    const int64_t width = width_of(graph->output);
    if (head) {
        const frit_node *x = frit_node_storage(graph->output);
        const frit_observed observed = {.name = head->name, .x = x, .width = width, .n_values = width, .n_counts = 1};
        FRIT_TRY(add_observed(engine, planned, observed, &reads_output));
    }
    if (engine->observer->layers.no_results && !reads_output && planned->n_observed > 0) graph->output = NULL;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- steps

typedef struct adding {
    const frit_planned_segment *planned;
    const frit_batch *batch;
    const frit_importance *importance;
} adding;

static const float *values_of(const frit_planned_segment *planned, const frit_node *node)
{
    const frit_address at = planned->device->backend->value(planned->exec, node);
    return (const float *)(const void *)((const char *)planned->device->backend->map(at.memory) + at.offset);
}

static int64_t rows_of(const frit_node *node, const frit_batch *batch)
{
    return node->rows == FRIT_SHAPE_BATCH  ? batch->n_rows
           : node->rows == FRIT_SHAPE_OUTS ? batch->n_outs
                                           : node->shape[0];
}

static int64_t elems_of_row(const frit_node *node)
{
    int64_t n = 1;
    for (int d = 1; d < node->n_dims; d++) n *= node->shape[d];
    return n;
}

// Adds squares of columns [begin, end).
static void add_rows(const float *x, int64_t n_rows, int64_t width, int64_t begin, int64_t end, double *sums)
{
    for (int64_t r = 0; r < n_rows; r++, x += width)
        for (int64_t c = begin; c < end; c++) sums[c] += (double)x[c] * (double)x[c];
}

static void add_experts(const frit_observed *o, const adding *a, int64_t width, int64_t begin, int64_t end,
                        const frit_importance_entry *entry)
{
    const float *x = values_of(a->planned, o->x), *route = values_of(a->planned, o->route);
    const int64_t n_rows = rows_of(o->route, a->batch), n_used = o->route->shape[2];
    const int64_t n_each = elems_of_row(o->x) / width;   // rows of x for one token: 1, or one for each expert
    for (int64_t t = 0; t < n_rows; t++)
        for (int64_t k = 0; k < n_used; k++) {
            const int64_t e = (int64_t)route[2 * n_used * t + k];
            if (e < 0 || e >= o->n_counts) continue;
            add_rows(x + (n_each * t + (n_each > 1 ? k : 0)) * width, 1, width, begin, end, entry->sums + e * width);
            if (begin == 0) entry->counts[e]++;
        }
}

static void add_part(void *ctx, int thread, int n_threads)
{
    const adding *a = ctx;
    for (int i = 0; i < a->planned->n_observed; i++) {
        const frit_observed *o = &a->planned->observed[i];
        const frit_importance_entry *entry = &a->importance->entries[o->entry];
        const int64_t width = o->route ? o->n_values / o->n_counts : o->n_values;
        const int64_t begin = width * thread / n_threads, end = width * (thread + 1) / n_threads;
        if (begin == end) continue;
        if (o->route) {
            add_experts(o, a, width, begin, end, entry);
            continue;
        }
        const int64_t n_rows = rows_of(o->x, a->batch) * elems_of_row(o->x) / width;
        add_rows(values_of(a->planned, o->x), n_rows, width, begin, end, entry->sums);
        if (begin == 0) entry->counts[0] += n_rows;
    }
}

// Lists the rows that each expert or head reads.
static void list_rows(const frit_observed *o, const frit_planned_segment *planned, const frit_batch *batch,
                      frit_input_rows *rows, int64_t *indices, int32_t *each)
{
    const float *route = o->route ? values_of(planned, o->route) : NULL;
    const int64_t n_each = o->n_values / o->width, n_per_token = elems_of_row(o->x) / o->width;
    const int64_t n_used = route ? o->route->shape[2] : n_per_token;
    rows->n = 0;
    for (int64_t t = 0; t < rows_of(o->route ? o->route : o->x, batch); t++)
        for (int64_t k = 0; k < n_used; k++) {
            const int64_t e = route ? (int64_t)route[2 * n_used * t + k] : k % n_each;
            if (e < 0 || e >= n_each) continue;
            indices[rows->n] = n_per_token * t + (n_per_token > 1 ? k : 0);
            each[rows->n++] = (int32_t)e;
        }
    rows->rows = indices;
    rows->each = each;
}

static frit_status pass_input(const frit_engine *engine, const frit_observed *o, const frit_planned_segment *planned,
                              const frit_batch *batch)
{
    const frit_input_observer *inputs = &engine->observer->inputs;
    frit_input_rows rows = {.x = values_of(planned, o->x), .n = rows_of(o->x, batch) * elems_of_row(o->x) / o->width};
    if (o->n_values == o->width && !o->route) return inputs->add(inputs->ctx, o->index, &rows, engine->observer->pool);
    const int64_t n = o->route ? rows_of(o->route, batch) * o->route->shape[2] : rows.n;
    int64_t *indices = calloc((size_t)n + 1, sizeof *indices);
    int32_t *each = calloc((size_t)n + 1, sizeof *each);
    frit_status status = indices && each ? FRIT_OK : frit_fail_memory((size_t)n * sizeof *indices, o->name);
    if (status == FRIT_OK) list_rows(o, planned, batch, &rows, indices, each);
    if (status == FRIT_OK) status = inputs->add(inputs->ctx, o->index, &rows, engine->observer->pool);
    free(indices);
    free(each);
    return status;
}

frit_status frit_observe_segment(const frit_engine *engine, const frit_planned_segment *planned,
                                 const frit_batch *batch, frit_ticket ticket)
{
    const frit_backend *backend = planned->device->backend;
    if (planned->n_observed == 0) return FRIT_OK;
    FRIT_TRY(backend->wait(planned->device, ticket));
    if (!backend->map)
        return frit_fail(FRIT_E_UNSUPPORTED, "importance is measured on the CPU, not on %s", backend->name);
    adding a = {planned, batch, engine->observer->importance};
    if (a.importance) frit_pool_run(engine->observer->pool, add_part, &a);
    for (int i = 0; i < planned->n_observed && engine->observer->inputs.add; i++)
        if (planned->observed[i].index >= 0) FRIT_TRY(pass_input(engine, &planned->observed[i], planned, batch));
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- engines

void frit_observer_free(struct frit_observer *observer)
{
    if (!observer) return;
    frit_pool_free(observer->pool);
    free(observer);
}

static frit_status set_observer(frit_engine *engine, frit_importance *importance, frit_input_observer inputs)
{
    FRIT_TRY(frit_flight_wait_all(engine));
    frit_plans_free(engine);   // steps make new ones
    frit_observer_free(engine->observer);
    engine->observer = NULL;
    if (!importance && !inputs.add) return FRIT_OK;
    frit_engine_info info;
    struct frit_observer *observer = calloc(1, sizeof *observer);
    if (!observer) return frit_fail_memory(sizeof *observer, "an observer");
    frit_status status = frit_engine_get_info(engine, &info);
    if (status == FRIT_OK) status = frit_pool_new(&observer->pool, info.n_threads_batch);
    if (status != FRIT_OK) {
        frit_observer_free(observer);
        return status;
    }
    observer->importance = importance;
    observer->inputs = inputs;
    engine->observer = observer;
    return FRIT_OK;
}

void frit_observe_layers(frit_engine *engine, frit_observed_layers layers)
{
    if (engine->observer) engine->observer->layers = layers;
}

void frit_observe_rows(frit_engine *engine, frit_observed_rows rows)
{
    if (engine->observer) engine->observer->rows = rows;
}

frit_status frit_observe_give(const frit_engine *engine, const frit_planned_segment *planned, frit_address to,
                              const frit_batch *batch)
{
    const frit_backend *backend = planned->device->backend;
    const frit_observed_rows *rows = &engine->observer->rows;
    const int64_t n_embd = engine->hp.n_embd;
    for (int32_t r = 0; r < batch->n_seqs; r++) {
        const frit_seq *seq = &batch->seqs[r];
        const float *from = rows->given + r * rows->apart + seq->n_past * n_embd;
        const uint64_t n_bytes = (uint64_t)(seq->n_rows * n_embd) * sizeof *from;
        const frit_address at = {to.memory, to.offset + (uint64_t)(seq->first_row * n_embd) * sizeof *from};
        if (backend->map)
            frit_pool_copy(engine->observer->pool, (char *)backend->map(at.memory) + at.offset, from, (size_t)n_bytes);
        else
            FRIT_TRY(backend->write(planned->device, at, from, n_bytes));
    }
    return FRIT_OK;
}

frit_status frit_engine_observe(frit_engine *engine, frit_importance *importance)
{
    FRIT_REQUIRE(engine);
    return set_observer(engine, importance, engine->observer ? engine->observer->inputs : (frit_input_observer){0});
}

frit_status frit_observe_inputs(frit_engine *engine, const frit_input_observer *inputs)
{
    return set_observer(engine, engine->observer ? engine->observer->importance : NULL,
                        inputs ? *inputs : (frit_input_observer){0});
}
