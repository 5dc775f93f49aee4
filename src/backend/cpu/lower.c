// SPDX-License-Identifier: MIT
// Makes executables of plans. A phase of the plan becomes one or more phases of actions:
//
//     its prologue, and the conversions of rows that no other action converts for its products (act_input.h)
//     its products, with their epilogue if it runs head by head; otherwise a phase for each level of the epilogue
//     `begin` and `finish` of ops that have them (frit_cpu_op)
#include "backend/cpu/lower.h"

#include "backend/cpu/ops/cache.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ACTIONS = 8 };   // actions of a fusion: four conversions, three fused nodes; keys and values of KV_WRITE

// A node has one set of kernels for all sequences, because its sources were converted for these kernels.
const frit_task_env *frit_lower_env(const lowering *l, const frit_node *node)
{
    const bool is_many = l->plan->decode_kernels ? l->plan->joins_sequences && frit_cpu_ops[node->op].linear
                                                 : node->shape[0] >= FRIT_PREFILL_ROWS;
    return is_many ? &l->exec->prefill : &l->exec->decode;
}

static bool has_kernel(const frit_cpu_device *device, const frit_node *node)
{
    const frit_cpu_op *op = &frit_cpu_ops[node->op];
    return !device->reference && op->fast && (!op->fits || op->fits(node));
}

bool frit_lower_runs_fast(const lowering *l, const frit_node *node)
{
    return has_kernel(l->device, node);
}

bool frit_lower_is_product(const lowering *l, const frit_node *node)
{
    return frit_cpu_ops[node->op].linear && frit_lower_runs_fast(l, node);
}

static bool is_matrix(const frit_node *node, int i)
{
    return frit_cpu_ops[node->op].matrices >> i & 1;
}

bool frit_lower_asks_form(const frit_node *node, int i)
{
    return is_matrix(node, i) || (node->op == FRIT_OP_ADAPT_DOWN && i == 0);
}

const float *frit_lower_activations(const lowering *l, const frit_node *read)
{
    const frit_node *storage = frit_node_storage(read);
    const uint64_t offset = l->plan->offsets[read->id];
    if (storage->op == FRIT_OP_WEIGHT) return storage->tensor->data;
    if (offset == UINT64_MAX) return NULL;
    return (const float *)(const void *)((frit_node_is_result_input(storage) ? l->exec->given.bytes
                                                                             : l->exec->scratch.bytes) +
                                         offset);
}

static float *result_of(const lowering *l, const frit_node *node)
{
    const uint64_t offset = l->plan->offsets[node->id];
    return offset == UINT64_MAX ? NULL : (float *)(void *)(l->exec->scratch.bytes + offset);
}

bool frit_cpu_can_join(const void *base, frit_join join, const frit_node *node, const frit_node *other)
{
    const frit_cpu_device *device = base;
    const frit_cpu_op *op = &frit_cpu_ops[node->op], *other_op = &frit_cpu_ops[other->op];
    if (!has_kernel(device, node) || !has_kernel(device, other)) return false;
    switch (join) {
    case FRIT_JOIN_ELEMENTS:
        return other_op->own_input && (op->fused || node->op == FRIT_OP_GLU);
    case FRIT_JOIN_ROWS:
        return op->fused && other_op->fused;
    case FRIT_JOIN_HEADS:
        return true;
    case FRIT_JOIN_PROLOGUE:
        return op->fused && other_op->own_input;
    }
    return false;
}

// ------------------------------------------------------------------------------- epilogues

static bool find_root(lowering *l, int k, int i)
{
    const frit_node *node = frit_lower_fusion(l, k)->nodes[0], *read = node->src[i];
    const int producer = l->plan->phases.fusion_of[read->id];
    const int root = frit_lower_fusion(l, producer)->level > 0 ? l->infos[producer].root[0] : producer;
    const frit_node *product = frit_lower_fusion(l, root)->nodes[0];
    const int64_t n = frit_node_width(read);
    fusion_info *info = &l->infos[root];
    l->infos[k].root[i] = root;
    if (!frit_lower_runs_fast(l, node) || !frit_lower_runs_fast(l, product)) return false;
    const bool fits =
        n % 16 == 0 && (info->unit == 0 || info->unit == n) && n * read->shape[1] == frit_node_width(product);
    info->unit = n;
    return fits;
}

static int index_of(const lowering *l, const frit_fusion *fusion)
{
    return (int)(fusion - l->plan->phases.fusions);
}

// True if the epilogue continues its products head by head: there are enough heads for all threads.
static bool continues_by_heads(lowering *l, const frit_phase *phase)
{
    bool fits = phase->n_epilogue > 0;
    int64_t n_heads = 0;
    for (int e = 0; e < phase->n_epilogue; e++) {
        const int n_sources = phase->epilogue[e].nodes[0]->op == FRIT_OP_KV_WRITE ? 2 : 1;
        for (int i = 0; fits && i < n_sources; i++) fits = find_root(l, index_of(l, &phase->epilogue[e]), i);
    }
    for (int i = 0; i < phase->n_products; i++) {
        const int64_t unit = l->infos[index_of(l, &phase->products[i])].unit;
        if (unit > 0) n_heads += frit_node_width(phase->products[i].nodes[0]) / unit;
    }
    fits = fits && n_heads >= frit_cpu_most_threads(l->device);
    for (int i = 0; i < phase->n_products && !fits; i++) l->infos[index_of(l, &phase->products[i])].unit = 0;
    return fits;
}

// ------------------------------------------------------------------------------- tasks

void frit_lower_stack_forms(const lowering *l, const frit_node *node, frit_form forms[2])
{
    forms[1] = frit_matrix_form(frit_lower_env(l, node)->kernels, node->src[1]->tensor);
    forms[0] = frit_matrix_form(l->exec->decode.kernels, node->src[1]->tensor);
}

// Each use of a vector of the model is its own node.
static bool reads_same(const frit_node *x, const frit_node *y)
{
    return x == y ||
           (x && y && x->op == FRIT_OP_WEIGHT && y->op == FRIT_OP_WEIGHT && frit_tensor_is_same(x->tensor, y->tensor));
}

rope_table *frit_lower_find_rope(lowering *l, const frit_node *node)
{
    for (int i = 0; i < l->n_ropes; i++) {
        const frit_node *other = l->ropes[i].first;
        const frit_rope *x = &other->rope, *y = &node->rope;
        if (x->dim == y->dim && x->magnitude == y->magnitude && x->shift == y->shift && x->is_back == y->is_back &&
            other->src[1] == node->src[1] && reads_same(other->src[2], node->src[2]) &&
            reads_same(other->src[3], node->src[3]))
            return &l->ropes[i];
    }
    return NULL;
}

static frit_task task_of_node(lowering *l, const frit_node *node)
{
    const frit_cpu_op *op = &frit_cpu_ops[node->op];
    const bool fast = frit_lower_runs_fast(l, node);
    frit_task task = {.node = node, .env = frit_lower_env(l, node), .y = result_of(l, node)};
    for (int i = 0; i < node->n_src; i++) {
        const frit_node *root = frit_node_storage(node->src[i]);
        const uint8_t *packed = NULL;
        if (root->op == FRIT_OP_WEIGHT && (op->linear || op->stacked) && fast)
            packed = frit_packs_find(l->device->packs, root->tensor);
        if (root->op == FRIT_OP_WEIGHT && is_matrix(node, i))
            task.w[i] = packed ? packed : frit_packs_rows(l->device->packs, root->tensor);
        else
            task.x[i] = frit_lower_activations(l, node->src[i]);
    }
    if (node->op == FRIT_OP_ROPE && fast) task.shared = l->exec->scratch.bytes + frit_lower_find_rope(l, node)->offset;
    if (op->shared_bytes) task.shared = l->exec->scratch.bytes + l->shared_offset;
    if (l->exec->of_ranks && (node->op == FRIT_OP_REDUCE || node->op == FRIT_OP_GATHER))
        task.of_ranks = l->exec->of_ranks + (ptrdiff_t)l->n_exchanges++ * l->device->rank.n;
    return task;
}

static frit_fused_node fused_node_of(const lowering *l, const frit_fusion *fusion, int i)
{
    const frit_node *node = fusion->nodes[i];
    frit_fused_node fused = {.node = node, .y = result_of(l, node)};
    for (int s = 0; s < node->n_src; s++) {
        bool is_own = false;
        for (int k = 0; k < i; k++) is_own = is_own || node->src[s] == fusion->nodes[k];
        if (!is_own) fused.x[s] = frit_lower_activations(l, node->src[s]);
    }
    return fused;
}

// The task of a fusion: its first node, with the other nodes fused into it.
static frit_task task_of(lowering *l, int k)
{
    const frit_fusion *fusion = frit_lower_fusion(l, k);
    frit_task task = task_of_node(l, fusion->nodes[0]);
    for (int i = fusion->n_products; i < fusion->n_nodes; i++) task.fused[task.n_fused++] = fused_node_of(l, fusion, i);
    if (frit_lower_is_product(l, task.node)) task.y = result_of(l, frit_fusion_result(fusion));
    return task;
}

// ------------------------------------------------------------------------------- actions

static int add_action(lowering *l, frit_action a, bool new_phase)
{
    frit_exec *exec = l->exec;
    new_phase = new_phase || exec->n_phases == 0;
    if (new_phase) {
        exec->phases[exec->n_phases++] = (frit_exec_phase){exec->n_actions, 0};
        l->shared_busy = l->ropes_busy = l->dispatch.busy = false;
        for (int form = 0; form < FRIT_FORM_COUNT; form++) l->sorted[form].busy = false;
    }
    exec->phases[exec->n_phases - 1].n++;
    a.follower = FRIT_NO_ACTION;
    exec->actions[exec->n_actions] = a;
    return exec->n_actions++;
}

// Adds an action that sorts the rows of source 0 by expert, with the dispatch, unless memory has both already. Returns
// true if the product needs a barrier first.
static bool add_sorting(lowering *l, frit_task *task, bool barrier)
{
    const frit_node *node = task->node, *x = node->src[0];
    const frit_node *route = node->op == FRIT_OP_HEADS ? NULL : frit_node_route(node);
    const bool dispatches = route && l->dispatch.route != route;
    bool ready = route && !dispatches, busy = dispatches && l->dispatch.busy;
    frit_form forms[2];
    frit_lower_stack_forms(l, node, forms);
    for (int i = 0; i < 2; i++) {
        const sorted_rows *p = &l->sorted[forms[i]];
        ready = ready && p->rows == x && p->route == route;
        busy = busy || p->busy;
        task->forms[forms[i]] = l->exec->scratch.bytes + p->offset;
    }
    if (route) task->dispatch = (void *)(l->exec->scratch.bytes + l->dispatch.offset);
    if (!ready) {
        frit_action convert = {frit_fast_convert_sorted, frit_convert_sorted_pieces, 0, 0, *task};
        if (dispatches) convert.pieces = frit_dispatch_and_convert_pieces;
        if (!route) convert.run = frit_fast_convert_heads;
        add_action(l, convert, barrier || busy);
    }
    return barrier || !ready;
}

// Called after the product of a stacked op was added.
static void note_sorting(lowering *l, const frit_task *task)
{
    const frit_node *route = task->dispatch ? frit_node_route(task->node) : NULL;
    for (int form = 0; form < FRIT_FORM_COUNT; form++) {
        sorted_rows *p = &l->sorted[form];
        if (task->forms[form]) *p = (sorted_rows){p->offset, p->n_bytes, task->node->src[0], route, true};
    }
    if (route) l->dispatch = (sorted_rows){l->dispatch.offset, l->dispatch.n_bytes, NULL, route, true};
}

static void add_epilogue(lowering *l, frit_task task, int root)
{
    fusion_info *info = &l->infos[root];
    task.by_heads = true;
    const int k = add_action(l, (frit_action){frit_cpu_ops[task.node->op].fast, NULL, 0, 0, task}, false);
    l->exec->actions[info->last_action].follower = k;
    info->last_action = k;
}

static void add_epilogues(lowering *l, int k)
{
    const fusion_info *info = &l->infos[k];
    frit_task task = task_of(l, k);
    if (task.node->op != FRIT_OP_KV_WRITE) {
        add_epilogue(l, task, info->root[0]);
        return;
    }
    task.keys = true;
    add_epilogue(l, task, info->root[0]);
    task.keys = false, task.values = true;
    add_epilogue(l, task, info->root[1]);
}

// The second product of GLU.
static void set_up(lowering *l, int k, frit_task *task)
{
    const frit_fusion *fusion = frit_lower_fusion(l, k);
    if (fusion->n_products < 2) return;
    frit_task *up = &l->exec->ups[l->n_ups++];
    *up = task_of_node(l, fusion->nodes[1]);
    frit_lower_set_inputs(l, k, up);
    up->unit = task->unit;
    task->up = up;
}

static void add_fusion(lowering *l, int k, bool barrier)
{
    const frit_fusion *fusion = frit_lower_fusion(l, k);
    const frit_cpu_op *op = &frit_cpu_ops[fusion->nodes[0]->op];
    frit_task task = task_of(l, k);
    if (!frit_lower_runs_fast(l, task.node)) {
        add_action(l, (frit_action){frit_cpu_references[task.node->op], frit_pieces_of_reference, 0, 0, task}, barrier);
        return;
    }
    frit_lower_set_inputs(l, k, &task);
    if (op->stacked) barrier = add_sorting(l, &task, barrier);
    task.continued = l->infos[k].unit > 0;
    if (task.continued) task.unit = l->infos[k].unit;
    set_up(l, k, &task);
    barrier = barrier || (op->shared_bytes && l->shared_busy) || (task.node->op == FRIT_OP_ROPE && l->ropes_busy);
    if (op->begin) {
        add_action(l, (frit_action){op->begin, op->begin_pieces, 0, 0, task}, barrier);
        barrier = true;
    }
    frit_action action = {op->fast, op->pieces, 0, 0, task};
    if (task.n_fused > 0 && !op->linear) action.run = frit_fast_rows, action.pieces = frit_pieces_of_norm;
    l->infos[k].last_action = add_action(l, action, barrier);
    if (op->finish) add_action(l, (frit_action){op->finish, op->finish_pieces, 0, 0, task}, true);
    if (op->shared_bytes) l->shared_busy = true;
    if (op->stacked) note_sorting(l, &task);
}

// A product of the phase that reads the input.
static const frit_node *reader_of(const lowering *l, const frit_phase *phase, const frit_act_input *input)
{
    for (int c = 0; c < phase->n_products; c++)
        for (int i = 0; i < phase->products[c].n_products; i++) {
            const frit_node *node = phase->products[c].nodes[i];
            for (int s = 0; frit_lower_is_product(l, node) && s < node->n_src; s++) {
                frit_form forms[2];
                const int n = frit_lower_asks_form(node, s) ? frit_lower_forms(l, node, s, forms) : 0;
                for (int f = 0; f < n; f++)
                    if (frit_lower_find_input(l, node, forms[f]) == input) return node;
            }
        }
    return NULL;
}

// Adds conversions of inputs. Returns true if it added any.
static bool add_conversions(lowering *l, const frit_phase *phase, bool barrier)
{
    bool any = false;
    for (int i = 0; i < l->exec->n_inputs; i++) {
        const frit_act_input *input = &l->exec->inputs[i];
        if (l->inputs[i].producer != FRIT_NONE || l->inputs[i].first != phase->products[0].phase) continue;
        frit_task task = {.node = reader_of(l, phase, input), .env = input->env, .form = input->form};
        task.shared = input->rows;
        task.x[0] = input->x;
        task.inputs[input->form] = input;
        add_action(l, (frit_action){frit_fast_convert, frit_pieces_of_convert, 0, 0, task}, barrier && !any);
        any = true;
    }
    return any;
}

static bool reads_prologue(const lowering *l, const frit_phase *phase, int k)
{
    const frit_node *node = frit_lower_fusion(l, k)->nodes[0];
    const int from = l->plan->phases.fusion_of[node->src[0]->id];
    return phase->n_prologue > 0 && from >= index_of(l, phase->prologue) && from < k;
}

static void add_phase(lowering *l, const frit_phase *phase)
{
    const bool by_heads = continues_by_heads(l, phase);
    bool barrier =
        index_of(l, phase->n_prologue > 0 ? phase->prologue : phase->products) > 0 || (by_heads && l->ropes_busy);
    const bool converts = add_conversions(l, phase, barrier);
    for (int i = 0; i < phase->n_prologue; i++) {
        const int k = index_of(l, &phase->prologue[i]);
        add_fusion(l, k, (barrier && i == 0 && !converts) || reads_prologue(l, phase, k));
    }
    barrier = barrier || converts || phase->n_prologue > 0;
    for (int i = 0; i < phase->n_products; i++) add_fusion(l, index_of(l, &phase->products[i]), barrier && i == 0);
    for (int i = 0, level = 0; i < phase->n_epilogue; i++) {
        const int k = index_of(l, &phase->epilogue[i]);
        if (by_heads)
            add_epilogues(l, k);
        else
            add_fusion(l, k, phase->epilogue[i].level != level);
        level = phase->epilogue[i].level;
    }
}

static void add_rope(lowering *l, const rope_table *rope)
{
    const frit_task task = task_of(l, rope->fusion);
    add_action(l, (frit_action){frit_fast_rope_table, frit_pieces_by_row, 0, 0, task}, false);
    l->ropes_busy = true;
}

// ------------------------------------------------------------------------------- executables

// True if there is a product, and no product has a matrix of fewer bits than f16.
static bool is_fine(const frit_plan *plan)
{
    bool any = false;
    for (int i = 0; i < plan->graph->n_nodes; i++) {
        const frit_node *node = plan->graph->nodes[i];
        const frit_cpu_op *op = &frit_cpu_ops[node->op];
        if (plan->phases.fusion_of[i] == FRIT_NONE) continue;
        for (int s = 0; (op->linear || op->stacked) && s < node->n_src; s++) {
            const frit_node *root = is_matrix(node, s) ? frit_node_storage(node->src[s]) : NULL;
            if (!root || root->op != FRIT_OP_WEIGHT) continue;
            if (root->tensor->dtype != FRIT_DTYPE_F32 && root->tensor->dtype != FRIT_DTYPE_F16) return false;
            any = true;
        }
    }
    return any;
}

static frit_status lower_plan(lowering *l)
{
    frit_exec *exec = l->exec;
    exec->decode.fine = exec->prefill.fine = is_fine(l->plan);
    FRIT_TRY(frit_lower_memory(l, frit_cpu_most_threads(l->device)));
    for (int i = 0; i < l->n_ropes; i++) add_rope(l, &l->ropes[i]);
    for (int i = 0; i < l->plan->phases.n; i++) add_phase(l, &l->plan->phases.list[i]);
    const frit_node *output = l->plan->graph->output;
    if (!output) return FRIT_OK;
    const frit_task results = {.node = output, .env = &exec->decode, .x = {frit_lower_activations(l, output)}};
    add_action(l, (frit_action){frit_fast_results, frit_results_pieces, 0, 0, results}, true);
    return FRIT_OK;
}

static frit_exec *exec_new(frit_cpu_device *device, frit_plan *plan, const frit_cache *cache, size_t n_actions)
{
    const size_t n_fusions = (size_t)plan->phases.n_fusions;
    frit_exec *exec = calloc(1, sizeof *exec);
    if (!exec) return NULL;
    exec->plan = plan;
    exec->scratch.base.device = exec->given.base.device = &device->base;
    exec->decode.cache = exec->prefill.cache = &exec->cache;
    exec->decode.adapters = exec->prefill.adapters = &device->adapters;
    exec->decode.ranks = exec->prefill.ranks = device->rank.meeting ? &device->rank : NULL;
    if (device->rank.meeting) exec->of_ranks = calloc(n_fusions * (size_t)device->rank.n + 1, sizeof *exec->of_ranks);
    exec->decode.kernels = &device->decode_kernels;
    exec->prefill.kernels = device->has_prefill_kernels ? &device->prefill_kernels : &device->decode_kernels;
    exec->decode.decode_kernels = exec->prefill.decode_kernels = &device->decode_kernels;
    exec->actions = calloc(n_actions, sizeof *exec->actions);
    exec->phases = calloc(n_actions, sizeof *exec->phases);
    exec->inputs = calloc(4 * n_fusions + 1, sizeof *exec->inputs);
    exec->ups = calloc(n_fusions + 1, sizeof *exec->ups);
    const bool has_all =
        exec->actions && exec->phases && exec->inputs && exec->ups && (exec->of_ranks || !device->rank.meeting);
    if (has_all && frit_cpu_cache_bind(&exec->cache, &exec->layers, cache) == FRIT_OK) return exec;
    frit_cpu_exec_free(&device->base, exec);
    return NULL;
}

static frit_status load_weights(frit_cpu_device *device, const frit_plan *plan)
{
    frit_weight_uses uses = {0};
    frit_status status = frit_weight_uses_add(&uses, plan);
    if (status == FRIT_OK) status = frit_packs_load(device->packs, device->prefill_pool, &uses, (frit_progress){0});
    frit_weight_uses_free(&uses);
    return status;
}

// Makes the executable with its list of inputs, before anything is lowered.
static frit_status begin_lowering(lowering *l, frit_arena *arena, frit_cpu_device *device, frit_plan *plan,
                                  const frit_cache *cache)
{
    const size_t n_fusions = (size_t)plan->phases.n_fusions, n_actions = n_fusions * MAX_ACTIONS + 2;
    frit_plan_set_rows(plan, plan->graph->max_rows, plan->graph->max_outs);
    *l = (lowering){.device = device, .plan = plan};
    l->infos = frit_arena_new(arena, fusion_info, n_fusions + 1);
    l->inputs = frit_arena_new(arena, input_info, 4 * n_fusions + 1);
    l->buffers = frit_arena_new(arena, input_buffer, 4 * n_fusions + 1);
    l->ropes = frit_arena_new(arena, rope_table, n_fusions + 1);
    l->exec = exec_new(device, plan, cache, n_actions);
    if (!l->exec || frit_arena_failed(arena))
        return frit_fail_memory(n_actions * sizeof(frit_action), "the list of actions");
    frit_lower_list_inputs(l);
    return FRIT_OK;
}

frit_status frit_cpu_exec_bytes(frit_device *base, frit_plan *plan, frit_exec_bytes *out)
{
    frit_cpu_device *device = (frit_cpu_device *)base;
    frit_arena arena = {0};   // freed after lowering
    lowering l;
    const frit_status status = begin_lowering(&l, &arena, device, plan, &(frit_cache){0});
    *out = (frit_exec_bytes){0};
    if (status == FRIT_OK) {
        frit_lower_measure(&l);
        out->shared = l.n_bytes;
        out->own = l.exec->decode.workspace_bytes * (uint64_t)frit_cpu_most_threads(device) + plan->input_bytes;
    }
    frit_arena_free(&arena);
    frit_cpu_exec_free(base, l.exec);
    return status;
}

frit_status frit_cpu_prepare(frit_device *base, frit_plan *plan, const frit_cache *cache, frit_exec **out)
{
    frit_cpu_device *device = (frit_cpu_device *)base;
    *out = NULL;
    FRIT_TRY(load_weights(device, plan));
    FRIT_TRY(frit_cpu_reserve_tokens(device, (int32_t)plan->graph->max_rows));
    if (device->probes) FRIT_TRY(frit_cpu_choose_threads(device));

    frit_arena arena = {0};
    lowering l;
    frit_status status = begin_lowering(&l, &arena, device, plan, cache);
    if (status == FRIT_OK) status = lower_plan(&l);
    frit_arena_free(&arena);
    if (status == FRIT_OK)
        *out = l.exec;
    else
        frit_cpu_exec_free(base, l.exec);
    return status;
}
