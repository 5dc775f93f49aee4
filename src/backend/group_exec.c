// SPDX-License-Identifier: MIT
// Weights and executables of a group: each rank has its parts of the weights, and the group's plan with them.
#include "backend/group_device.h"

#include <stdio.h>
#include <stdlib.h>

// ------------------------------------------------------------------------------- weights

typedef struct weights_call {
    const frit_weight_uses *uses;
    frit_weight_bytes bytes[FRIT_MAX_RANKS];
    frit_progress progress;
} weights_call;

static frit_status measure_rank(frit_group *group, int rank, void *ctx)
{
    weights_call *call = ctx;
    frit_weight_uses uses;
    FRIT_TRY(frit_group_uses(&group->weights[rank], call->uses, &uses));
    const frit_status status = group->kind->weight_bytes(group->members[rank], &uses, &call->bytes[rank]);
    frit_weight_uses_free(&uses);
    return status;
}

// Members with memory of their own need as much as rank 0; others share the host's memory.
frit_status frit_group_weight_bytes(frit_device *base, const frit_weight_uses *uses, frit_weight_bytes *out)
{
    frit_group *group = (frit_group *)base;
    weights_call call = {.uses = uses};
    FRIT_TRY(frit_group_run(group, measure_rank, &call));
    *out = call.bytes[0];
    for (int i = 1; i < group->n && !group->has_own_memory; i++) {
        out->stored += call.bytes[i].stored;
        out->missing += call.bytes[i].missing;
        out->in_place += call.bytes[i].in_place;
    }
    return FRIT_OK;
}

// The progress of rank 0, on the caller's thread, stands for all.
static frit_status load_rank(frit_group *group, int rank, void *ctx)
{
    const weights_call *call = ctx;
    frit_weight_uses uses;
    FRIT_TRY(frit_group_uses(&group->weights[rank], call->uses, &uses));
    const frit_status status =
        group->kind->load(group->members[rank], &uses, rank == 0 ? call->progress : (frit_progress){0});
    frit_weight_uses_free(&uses);
    return status;
}

frit_status frit_group_load(frit_device *base, const frit_weight_uses *uses, frit_progress progress)
{
    weights_call call = {.uses = uses, .progress = progress};
    FRIT_TRY(frit_group_settle((frit_group *)base));
    return frit_group_run((frit_group *)base, load_rank, &call);
}

// ------------------------------------------------------------------------------- adapters

typedef struct adapter_call {
    int32_t i;
    const frit_adapter_table *adapter;
} adapter_call;

static frit_status set_adapter_of_rank(frit_group *group, int rank, void *ctx)
{
    const adapter_call *call = ctx;
    return group->kind->set_adapter(group->members[rank], call->i, call->adapter);
}

frit_status frit_group_set_adapter(frit_device *base, int32_t i, const frit_adapter_table *adapter)
{
    FRIT_TRY(frit_group_settle((frit_group *)base));
    return frit_group_run((frit_group *)base, set_adapter_of_rank, &(adapter_call){i, adapter});
}

// ------------------------------------------------------------------------------- executables

// Makes the plan of a rank: the group's plan with the rank's weights.
static frit_status plan_rank(const group_exec *e, int rank, frit_arena *arena, frit_graph *graph, frit_plan **out)
{
    frit_group *group = e->group;
    const frit_plan *plan = e->plan;
    const frit_plan_options options = {.no_fuse = plan->no_fuse,
                                       .is_fused = true,
                                       .decode_kernels = plan->decode_kernels,
                                       .joins_sequences = plan->joins_sequences,
                                       .early_prologues = group->kind->early_prologues,
                                       .can_join = group->kind->can_join,
                                       .device = group->members[rank]};
    FRIT_TRY(frit_shard_copy(graph, arena, plan->graph, frit_group_part, &group->weights[rank]));
    return frit_plan_new(out, graph, &options);
}

typedef struct prepare_call {
    group_exec *exec;
    const frit_cache *cache;
} prepare_call;

static frit_status prepare_rank(frit_group *group, int rank, void *ctx)
{
    const prepare_call *call = ctx;
    group_exec *e = call->exec;
    const group_memory *memory = (const group_memory *)call->cache->memory;
    FRIT_TRY(plan_rank(e, rank, &e->arenas[rank], &e->graphs[rank], &e->plans[rank]));
    return group->kind->prepare(group->members[rank], e->plans[rank], memory ? &memory->caches[rank] : call->cache,
                                &e->execs[rank]);
}

static frit_status free_exec_of_rank(frit_group *group, int rank, void *ctx)
{
    group_exec *e = ctx;
    if (e->execs[rank]) group->kind->exec_free(group->members[rank], e->execs[rank]);
    frit_arena_free(&e->arenas[rank]);
    return FRIT_OK;
}

void frit_group_exec_free(frit_device *base, frit_exec *exec)
{
    group_exec *e = (group_exec *)(void *)exec;
    if (!e) return;
    frit_group_settle((frit_group *)base);
    frit_group_on_all((frit_group *)base, free_exec_of_rank, e);
    free(e->values);
    free(e);
}

static group_exec *new_exec(frit_group *group, frit_plan *plan)
{
    group_exec *e = calloc(1, sizeof *e);
    if (!e) return NULL;
    e->group = group;
    e->plan = plan;
    e->values = calloc((size_t)plan->graph->n_nodes + 1, sizeof *e->values);
    if (e->values) return e;
    free(e);
    return NULL;
}

frit_status frit_group_prepare(frit_device *base, frit_plan *plan, const frit_cache *cache, frit_exec **out)
{
    frit_group *group = (frit_group *)base;
    *out = NULL;
    FRIT_TRY(frit_group_settle(group));
    group_exec *e = new_exec(group, plan);
    if (!e) return frit_fail_memory((size_t)plan->graph->n_nodes * sizeof *e->values, "an executable of a group");
    frit_status status = frit_group_run(group, prepare_rank, &(prepare_call){e, cache});
    if (status == FRIT_OK) {
        *out = (frit_exec *)(void *)e;
        return FRIT_OK;
    }
    char text[FRIT_ERROR_BYTES];
    snprintf(text, sizeof text, "%s", frit_error());
    frit_group_exec_free(base, (frit_exec *)(void *)e);
    return frit_fail(status, "%s", text);
}

static frit_status tune_rank(frit_group *group, int rank, void *ctx)
{
    return group->kind->tune(((const group_exec *)ctx)->execs[rank]);
}

frit_status frit_group_tune(frit_exec *exec)
{
    group_exec *e = (group_exec *)(void *)exec;
    return frit_group_run(e->group, tune_rank, e);
}

// The needs of rank 0, which those of the others equal.
frit_status frit_group_exec_bytes(frit_device *base, frit_plan *plan, frit_exec_bytes *out)
{
    frit_group *group = (frit_group *)base;
    const group_exec e = {.group = group, .plan = plan};
    frit_arena arena = {0};
    frit_graph graph;
    frit_plan *own;
    frit_status status = plan_rank(&e, 0, &arena, &graph, &own);
    if (status == FRIT_OK) {
        *out = (frit_exec_bytes){.own = own->scratch_bytes + own->input_bytes};
        if (group->kind->exec_bytes) status = group->kind->exec_bytes(group->members[0], own, out);
    }
    frit_arena_free(&arena);
    if (group->has_own_memory) return status;
    out->shared *= (uint64_t)group->n;
    out->own *= (uint64_t)group->n;
    return status;
}

// Values that are read and written from outside are whole: all ranks have the same ones.
frit_address frit_group_value(frit_exec *exec, const frit_node *node)
{
    group_exec *e = (group_exec *)(void *)exec;
    const frit_group *group = e->group;
    group_memory *memory = &e->values[node->id];
    for (int i = 0; i < group->n; i++) {
        const frit_address at = group->kind->value(e->execs[i], e->graphs[i].nodes[node->id]);
        memory->ranks[i] = at.memory;
        memory->offsets[i] = at.offset;
        memory->base.n_bytes = at.memory->n_bytes;
    }
    memory->base.device = &e->group->base;
    return (frit_address){&memory->base, 0};
}
