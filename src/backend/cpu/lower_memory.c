// SPDX-License-Identifier: MIT
// Memory besides the plan's scratch. Activation inputs are in buffers, which are reused after the phase of their last
// reader. Each rotation has a table. Kernels in several parts share one block of memory, which is used once between two
// barriers. Each thread has a workspace.
#include "backend/cpu/lower.h"
#include "backend/cpu/pack/memory.h"

static uint64_t reserve_bytes(lowering *l, uint64_t n_bytes)
{
    const uint64_t offset = l->n_bytes;
    l->n_bytes += frit_align(n_bytes);
    return offset;
}

static void measure_stack(lowering *l, const frit_node *node)
{
    frit_form forms[2];
    frit_lower_stack_forms(l, node, forms);
    for (int i = 0; i < 2; i++)
        frit_widen(&l->sorted[forms[i]].n_bytes,
                   frit_form_bytes_of_rows(forms[i], frit_sorted_rows(node), frit_node_width(node->src[0])));
    if (node->op != FRIT_OP_HEADS) frit_widen(&l->dispatch.n_bytes, frit_dispatch_node_bytes(node));
}

static void measure_node(lowering *l, int k, const frit_node *node, uint64_t *workspace_bytes)
{
    const frit_cpu_op *op = &frit_cpu_ops[node->op];
    if (op->workspace_bytes) frit_widen(workspace_bytes, op->workspace_bytes(node));
    if (!frit_lower_runs_fast(l, node)) return;
    if (op->shared_bytes) frit_widen(&l->shared_bytes, op->shared_bytes(node, frit_lower_env(l, node)->kernels));
    if (op->stacked) measure_stack(l, node);
    if (node->op == FRIT_OP_ROPE && !frit_lower_find_rope(l, node))
        l->ropes[l->n_ropes++] = (rope_table){.first = node, .fusion = k, .n_bytes = frit_rope_table_bytes(node)};
}

// The part of a workspace that survives a task.
static uint64_t measure_thread_inputs(lowering *l)
{
    uint64_t n_bytes = frit_align(sizeof(frit_thread_inputs) + l->thread_row_bytes);
    for (int form = 0; form < FRIT_FORM_COUNT; form++) {
        l->per_thread_offsets[form] = n_bytes;
        n_bytes += frit_align(l->per_thread_bytes[form]);
    }
    return n_bytes;
}

void frit_lower_measure(lowering *l)
{
    uint64_t workspace_bytes = 0;
    for (int k = 0; k < l->plan->phases.n_fusions; k++) {
        const frit_fusion *fusion = frit_lower_fusion(l, k);
        for (int i = 0; i < fusion->n_nodes; i++) measure_node(l, k, fusion->nodes[i], &workspace_bytes);
        if (fusion->n_products == 2) frit_widen(&workspace_bytes, frit_glu_workspace_bytes(fusion->nodes[0]));
    }
    reserve_bytes(l, l->plan->scratch_bytes);
    for (int i = 0; i < l->n_buffers; i++) l->buffers[i].offset = reserve_bytes(l, l->buffers[i].n_bytes);
    for (int i = 0; i < l->n_ropes; i++) l->ropes[i].offset = reserve_bytes(l, l->ropes[i].n_bytes);
    for (int form = 0; form < FRIT_FORM_COUNT; form++)
        l->sorted[form].offset = reserve_bytes(l, l->sorted[form].n_bytes);
    l->dispatch.offset = reserve_bytes(l, l->dispatch.n_bytes);
    l->shared_offset = reserve_bytes(l, l->shared_bytes);
    frit_task_env *env = &l->exec->decode;
    env->inputs_offset = (size_t)frit_align(workspace_bytes);
    env->workspace_bytes = env->inputs_offset + (size_t)measure_thread_inputs(l);
    l->exec->prefill.inputs_offset = env->inputs_offset;
    l->exec->prefill.workspace_bytes = env->workspace_bytes;
}

static frit_status allocate_bytes(frit_cpu_memory *memory, uint64_t n_bytes, const char *what)
{
    memory->base.n_bytes = 0;
    memory->bytes = n_bytes > 0 ? frit_cpu_memory_new(n_bytes) : NULL;
    if (n_bytes > 0 && !memory->bytes) return frit_fail_memory((size_t)n_bytes, what);
    memory->base.n_bytes = n_bytes;
    return FRIT_OK;
}

// One executable runs at a time, and its results are read before the next one runs, so executables share the device's
// memory. It grows only while no executable uses it; the first plan of an engine is the largest.
static frit_status share_scratch(const lowering *l)
{
    frit_cpu_device *device = l->device;
    frit_exec *exec = l->exec;
    if (l->n_bytes > device->scratch.base.n_bytes && device->n_sharing == 0) {
        frit_cpu_memory_free(device->scratch.bytes, device->scratch.base.n_bytes);
        FRIT_TRY(allocate_bytes(&device->scratch, l->n_bytes, "intermediate results"));
        frit_nodes_spread(&device->topology.nodes, device->scratch.bytes, l->n_bytes);
    }
    exec->shares_scratch = l->n_bytes <= device->scratch.base.n_bytes;
    if (!exec->shares_scratch) {
        FRIT_TRY(allocate_bytes(&exec->scratch, l->n_bytes, "intermediate results"));
        frit_nodes_spread(&device->topology.nodes, exec->scratch.bytes, l->n_bytes);
        return FRIT_OK;
    }
    exec->scratch.bytes = device->scratch.bytes;
    exec->scratch.base.n_bytes = l->n_bytes;
    device->n_sharing++;
    return FRIT_OK;
}

frit_status frit_lower_memory(lowering *l, int n_threads)
{
    frit_exec *exec = l->exec;
    frit_lower_measure(l);
    FRIT_TRY(share_scratch(l));
    FRIT_TRY(allocate_bytes(&exec->given, l->plan->input_bytes, "results of other devices"));
    FRIT_TRY(allocate_bytes(&exec->workspaces, exec->decode.workspace_bytes * (uint64_t)n_threads, "workspaces"));
    if (l->plan->graph->max_rows < FRIT_SPARSE_MEMORY_ROWS)
        frit_cpu_memory_sparse(exec->workspaces.bytes, exec->workspaces.base.n_bytes);
    exec->decode.workspaces = exec->prefill.workspaces = exec->workspaces.bytes;
    frit_lower_point_inputs(l);
    return FRIT_OK;
}
