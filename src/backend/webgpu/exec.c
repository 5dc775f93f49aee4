// SPDX-License-Identifier: MIT
// Preparing plans: launches, kernels, groups of bindings. Running steps, and handing out their results.
#include "backend/webgpu/exec.h"
#include "backend/webgpu/ops/attend.h"
#include "backend/webgpu/ops/linear.h"
#include "backend/webgpu/ops/ops.h"
#include "backend/webgpu/ops/rotate.h"
#include "backend/webgpu/picks.h"
#include "backend/webgpu/step_input.h"

#include <stdlib.h>
#include <string.h>

enum { PARAMS_BYTES = 256, ALIGNMENT = 256 };

// ------------------------------------------------------------------------------- lowering

static frit_status lower_fusions(frit_exec *exec, const frit_fusion *fusions, int n)
{
    for (int i = 0, n_done; i < n; i += n_done) {
        FRIT_TRY(frit_webgpu_lower_stack(exec, fusions + i, n - i, &n_done));
        if (n_done == 0) FRIT_TRY(frit_webgpu_lower_rotated(exec, fusions + i, n - i, &n_done));
        if (n_done > 0) continue;
        FRIT_TRY(frit_webgpu_lower(exec, &fusions[i]));
        n_done = 1;
    }
    return FRIT_OK;
}

static frit_status lower_plan(frit_exec *exec)
{
    frit_plan *plan = exec->plan;
    frit_plan_set_rows(plan, plan->graph->max_rows, plan->graph->max_outs);
    exec->inputs_offset = (plan->scratch_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    exec->own_offset = (exec->inputs_offset + plan->input_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    exec->is_precise = frit_webgpu_is_precise(plan->graph);
    FRIT_TRY(lower_fusions(exec, plan->phases.fusions, plan->phases.n_fusions));
    FRIT_TRY(frit_webgpu_picks_lower(exec));
    for (int i = 0; i < exec->n_launches; i++)
        FRIT_TRY(frit_webgpu_kernel_get(exec->device, &exec->launches[i].wanted, &exec->launches[i].kernel));
    return FRIT_OK;
}

static frit_status upload_params(frit_exec *exec)
{
    frit_webgpu_device *d = exec->device;
    const size_t n_bytes = (size_t)exec->n_launches * PARAMS_BYTES;
    uint8_t *params = calloc(n_bytes + 1, 1);
    if (!params) return frit_fail_memory(n_bytes, "the parameters of a plan");
    for (int i = 0; i < exec->n_launches; i++)
        memcpy(params + (size_t)i * PARAMS_BYTES, exec->launches[i].params, sizeof exec->launches[i].params);
    frit_status status = frit_gpu_buffer_new(&d->gpu, n_bytes, FRIT_GPU_UNIFORM, "a plan", &exec->params);
    if (status == FRIT_OK) status = frit_gpu_write(&d->gpu, &exec->params, 0, params, n_bytes);
    free(params);
    return status;
}

static void drop_ready(frit_webgpu_device *d)
{
    frit_gpu_drop_commands(&d->gpu, d->ready.commands);
    d->ready.commands = NULL;
}

static void free_groups(frit_exec *exec)
{
    for (int i = 0; i < exec->n_launches; i++) {
        if (exec->launches[i].group) exec->device->gpu.call.group_release(exec->launches[i].group);
        exec->launches[i].group = NULL;
    }
    exec->version = 0;
}

static frit_status make_group(frit_exec *exec, int i)
{
    frit_webgpu_device *d = exec->device;
    frit_webgpu_launch *l = &exec->launches[i];
    frit_gpu_range ranges[FRIT_GPU_BINDINGS];
    for (int k = 0; k < l->n_bindings; k++) {
        const frit_webgpu_binding *b = &l->bindings[k];
        ranges[k] = (frit_gpu_range){.buffer = b->buffer};
        if (b->where == FRIT_WEBGPU_AT_SHARED) ranges[k].buffer = &d->shared[b->which].buffer;
        if (b->where == FRIT_WEBGPU_AT_PARAMS)
            ranges[k] = (frit_gpu_range){&exec->params, (uint64_t)i * PARAMS_BYTES, sizeof l->params};
    }
    return frit_gpu_group_new(&d->gpu, &l->kernel->pipeline, ranges, &l->group);
}

// Makes the shared memory large enough for the plan, and groups that bind it as it is now.
static frit_status bind_groups(frit_exec *exec)
{
    frit_webgpu_device *d = exec->device;
    FRIT_TRY(frit_webgpu_reserve(d, FRIT_WEBGPU_SCRATCH, exec->own_offset + exec->own_bytes));
    FRIT_TRY(frit_webgpu_reserve(d, FRIT_WEBGPU_ACTS, exec->acts_bytes));
    FRIT_TRY(frit_webgpu_reserve(d, FRIT_WEBGPU_PARTS, exec->parts_bytes));
    FRIT_TRY(frit_webgpu_reserve(d, FRIT_WEBGPU_STEP, 1));
    FRIT_TRY(frit_webgpu_reserve(d, FRIT_WEBGPU_PICKED, exec->picked_bytes));
    FRIT_TRY(frit_webgpu_reserve(d, FRIT_WEBGPU_PICK_WORK, exec->pick_work_bytes));
    FRIT_TRY(frit_webgpu_reserve(d, FRIT_WEBGPU_ADAPTERS, 1));
    if (exec->version == d->version) return FRIT_OK;
    free_groups(exec);
    for (int i = 0; i < exec->n_launches; i++) FRIT_TRY(make_group(exec, i));
    exec->version = d->version;
    return FRIT_OK;
}

static frit_status prepare(frit_exec *exec)
{
    FRIT_TRY(lower_plan(exec));
    exec->dispatches = calloc((size_t)exec->n_launches + 1, sizeof *exec->dispatches);
    if (!exec->dispatches) return frit_fail_memory((size_t)exec->n_launches * sizeof *exec->dispatches, "a plan");
    if (exec->n_launches > 0) FRIT_TRY(upload_params(exec));
    if (exec->plan->input_bytes > 0)
        FRIT_TRY(frit_gpu_buffer_new(&exec->device->gpu, exec->plan->input_bytes, FRIT_GPU_STORAGE, "inputs of a plan",
                                     &exec->inputs.buffer));
    exec->inputs.base = (frit_memory){&exec->device->base, exec->plan->input_bytes};
    return bind_groups(exec);
}

frit_status frit_webgpu_prepare(frit_device *base, frit_plan *plan, const frit_cache *cache, frit_exec **out)
{
    frit_exec *exec = calloc(1, sizeof *exec);
    *out = NULL;
    if (!exec) return frit_fail_memory(sizeof *exec, "a plan for WebGPU");
    exec->device = (frit_webgpu_device *)base;
    exec->plan = plan;
    exec->cache = cache;
    const frit_status status = prepare(exec);
    if (status == FRIT_OK)
        *out = exec;
    else
        frit_webgpu_exec_free(base, exec);
    return status;
}

void frit_webgpu_exec_free(frit_device *base, frit_exec *exec)
{
    frit_webgpu_device *d = (frit_webgpu_device *)base;
    if (!exec) return;
    if (d->ready.commands && d->ready.key.exec == exec) drop_ready(d);
    free_groups(exec);
    frit_gpu_buffer_free(&d->gpu, &exec->params);
    frit_gpu_buffer_free(&d->gpu, &exec->inputs.buffer);
    free(exec->dispatches);
    free(exec->launches);
    free(exec->routes);
    free(exec);
}

frit_address frit_webgpu_value(frit_exec *exec, const frit_node *node)
{
    const frit_node *storage = frit_node_storage(node);
    frit_webgpu_memory *scratch = &exec->device->shared[FRIT_WEBGPU_SCRATCH];
    return (frit_address){frit_node_is_result_input(storage) ? &exec->inputs.base : &scratch->base,
                          exec->plan->offsets[storage->id]};
}

// ------------------------------------------------------------------------------- running

// Returns the flight of a step; steps use the flights one after the other.
static frit_webgpu_flight *flight_of(frit_webgpu_device *d, frit_ticket ticket)
{
    return &d->flights[ticket % FRIT_WEBGPU_FLIGHTS];
}

static frit_status reserve_readback(frit_webgpu_device *d, frit_webgpu_flight *flight, uint64_t n_bytes)
{
    frit_gpu_unmap(&d->gpu, &flight->readback);
    if (flight->readback.n_bytes >= n_bytes) return FRIT_OK;
    frit_gpu_buffer_free(&d->gpu, &flight->readback);
    return frit_gpu_buffer_new(&d->gpu, n_bytes + n_bytes / 2, FRIT_GPU_READBACK, "results", &flight->readback);
}

// Stores in the flight which results the caller wants. Plans without an output have none: four bytes of the scratch
// memory show that such a step has ended.
static frit_status describe_output(const frit_exec *exec, const frit_batch *batch, frit_step_output *output,
                                   frit_webgpu_flight *flight)
{
    const frit_node *result = exec->plan->graph->output;
    const bool has_output = result && batch->n_outs > 0;
    flight->results = has_output ? output : NULL;
    flight->n_outs = batch->n_outs;
    flight->width = has_output ? frit_node_width(result) : 0;
    flight->n_bytes = has_output ? (uint64_t)(flight->n_outs * flight->width) * sizeof(float) : 4;
    if (flight->picks_on_gpu) flight->n_bytes = (uint64_t)flight->n_picks * FRIT_WEBGPU_PICK_BYTES;
    if (has_output) output->rows = NULL;
    return reserve_readback(exec->device, flight, flight->n_bytes);
}

static frit_status encode(frit_exec *exec, const frit_webgpu_step *step, const frit_webgpu_flight *flight,
                          frit_wgpu_command_buffer *out)
{
    frit_webgpu_device *d = exec->device;
    const frit_node *result = exec->plan->graph->output;
    const frit_gpu_buffer *scratch = &d->shared[FRIT_WEBGPU_SCRATCH].buffer;
    for (int i = 0; i < exec->n_launches; i++) {
        frit_gpu_dispatch *dispatch = &exec->dispatches[i];
        *dispatch =
            (frit_gpu_dispatch){.pipeline = &exec->launches[i].kernel->pipeline, .group = exec->launches[i].group};
        exec->launches[i].grid(&exec->launches[i], step, dispatch->grid);
    }
    // The inputs are written while other plans use the scratch memory.
    const frit_gpu_copy inputs = {.from = &exec->inputs.buffer,
                                  .to = scratch,
                                  .to_offset = exec->inputs_offset,
                                  .n_bytes = (exec->plan->input_bytes + 3) / 4 * 4};
    const bool has_rows = result && step->batch->n_outs > 0 && step->n_picks == 0;
    const frit_gpu_copy outputs = {.from = step->n_picks > 0 ? &d->shared[FRIT_WEBGPU_PICKED].buffer : scratch,
                                   .to = &flight->readback,
                                   .from_offset = has_rows ? exec->plan->offsets[frit_node_storage(result)->id] : 0,
                                   .n_bytes = flight->n_bytes};
    FRIT_TRY(frit_gpu_encode(&d->gpu,
                             &(frit_gpu_list){.before = &inputs,
                                              .n_before = exec->plan->input_bytes > 0,
                                              .dispatches = exec->dispatches,
                                              .n_dispatches = (size_t)exec->n_launches,
                                              .copies = &outputs,
                                              .n_copies = 1,
                                              .is_new = !exec->is_checked},
                             out));
    exec->is_checked = true;
    return FRIT_OK;
}

static void set_key(frit_webgpu_ready *ready, frit_exec *exec, const frit_webgpu_step *step,
                    const frit_webgpu_flight *flight)
{
    memset(&ready->key, 0, sizeof ready->key);
    ready->key.exec = exec;
    ready->key.readback = flight->readback.handle;
    ready->key.n_bytes = flight->n_bytes;
    ready->key.n_rows = step->batch->n_rows;
    ready->key.n_outs = step->batch->n_outs;
    ready->key.n_parts = step->n_parts;
    ready->key.n_blocks = step->n_blocks;
    ready->key.n_picks = step->n_picks;
    ready->key.pick_stages = step->pick_stages;
    ready->key.version = exec->version;
}

// Encodes the next step while this one runs, as if it were like this one. A failure is left to that step.
static void encode_ahead(frit_exec *exec, const frit_webgpu_step *step, const frit_webgpu_flight *flight)
{
    enum { MOST_ROWS = 16 };
    frit_webgpu_device *d = exec->device;
    frit_webgpu_flight *next = flight_of(d, d->n_submitted + 1);
    if (step->batch->n_rows > MOST_ROWS || next->ticket) return;
    if (reserve_readback(d, next, flight->n_bytes) != FRIT_OK) return;
    next->n_bytes = flight->n_bytes;
    set_key(&d->ready, exec, step, next);
    if (encode(exec, step, next, &d->ready.commands) != FRIT_OK) d->ready.commands = NULL;
}

static frit_status run(frit_exec *exec, const frit_webgpu_step *step, frit_webgpu_flight *flight)
{
    frit_webgpu_device *d = exec->device;
    frit_webgpu_ready wanted = {0};
    set_key(&wanted, exec, step, flight);
    if (d->ready.commands && memcmp(&wanted.key, &d->ready.key, sizeof wanted.key) == 0) {
        wanted.commands = d->ready.commands;
        d->ready.commands = NULL;
    } else {
        drop_ready(d);
        FRIT_TRY(encode(exec, step, flight, &wanted.commands));
    }
    FRIT_TRY(frit_gpu_submit_commands(&d->gpu, wanted.commands));
    flight->submit = d->gpu.last_submit;
    return frit_gpu_map_begin(&d->gpu, &flight->readback, flight->n_bytes);
}

frit_status frit_webgpu_submit(frit_device *base, frit_exec *exec, const frit_batch *batch, frit_step_output *output,
                               frit_ticket *ticket)
{
    frit_webgpu_device *d = (frit_webgpu_device *)base;
    frit_webgpu_flight *flight = flight_of(d, d->n_submitted + 1);
    frit_batch resolved = *batch;
    frit_webgpu_step step = {
        .batch = &resolved, .n_parts = frit_webgpu_parts_of(batch), .n_blocks = frit_webgpu_blocks_of(batch)};
    if (flight->ticket) FRIT_TRY(frit_webgpu_flight_wait(d, flight));
    FRIT_TRY(frit_webgpu_picks_begin(exec, batch, output, flight));
    const bool is_kept = exec->picked_bytes <= d->shared[FRIT_WEBGPU_PICKED].buffer.n_bytes;
    frit_webgpu_flight *before = flight_of(d, d->n_submitted);
    FRIT_TRY(frit_webgpu_picks_resolve(d, before, flight, is_kept, &resolved));
    step.n_picks = flight->picks_on_gpu ? flight->n_picks : 0;
    step.pick_stages = frit_webgpu_pick_stages(batch, step.n_picks);
    step.counts_from = before->picks_on_gpu && is_kept ? NULL : before;
    FRIT_TRY(describe_output(exec, batch, output, flight));
    FRIT_TRY(frit_webgpu_step_upload(d, &step));
    FRIT_TRY(bind_groups(exec));
    FRIT_TRY(run(exec, &step, flight));
    *ticket = flight->ticket = ++d->n_submitted;
    encode_ahead(exec, &step, flight);
    return FRIT_OK;
}

static void deliver_results(const frit_webgpu_flight *flight)
{
    frit_step_output *output = flight->results;
    if (flight->picks_on_gpu) return;
    if (output->wants_rows) output->rows = flight->rows;
    for (int64_t o = 0; output->taken && o < flight->n_outs; o++)
        frit_out_row_take(&output->taken[o], flight->rows + o * flight->width, flight->width);
}

frit_status frit_webgpu_flight_wait(frit_webgpu_device *d, frit_webgpu_flight *flight)
{
    const void *bytes;
    const frit_status status = frit_gpu_map_wait(&d->gpu, &flight->readback, flight->submit, flight->n_bytes, &bytes);
    flight->rows = bytes;
    if (status != FRIT_OK) frit_gpu_unmap(&d->gpu, &flight->readback);
    if (status == FRIT_OK && flight->results) {
        deliver_results(flight);
        frit_webgpu_picks_deliver(d, flight);
    }
    if (flight->ticket > d->n_done) d->n_done = flight->ticket;
    flight->ticket = 0;
    flight->results = NULL;
    return status;
}
