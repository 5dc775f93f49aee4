// SPDX-License-Identifier: MIT
// Preparing plans, and submitting steps.
#include "backend/cuda/exec.h"
#include "backend/cuda/ops/precise.h"
#include "backend/cuda/ops/linear.h"
#include "backend/cuda/picks.h"
#include "backend/cuda/profile.h"
#include "backend/cuda/recordings.h"
#include "backend/cuda/step_input.h"
#include "backend/cuda/weights/weight_stream.h"

#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------- preparing

static frit_status lower_all(frit_exec *exec)
{
    const frit_phases *phases = &exec->plan->phases;
    for (int i = 0; i < phases->n; i++) FRIT_TRY(frit_cuda_lower_phase(exec, &phases->list[i]));
    return FRIT_OK;
}

// Turns the plan into launches. Their kernels are built later.
static frit_status lower_plan(frit_exec *exec)
{
    frit_cuda_device *d = exec->device;
    exec->is_precise = frit_cuda_is_precise(&d->gpu, exec->plan->graph);
    exec->is_f16 = calloc((size_t)exec->plan->graph->n_nodes + 1, sizeof *exec->is_f16);
    exec->is_f16_input = calloc((size_t)exec->plan->graph->n_nodes + 1, sizeof *exec->is_f16_input);
    if (!exec->is_f16 || !exec->is_f16_input)
        return frit_fail_memory((size_t)exec->plan->graph->n_nodes, "a plan for a GPU");
    exec->inputs = (frit_cuda_memory){.base = {&d->base, exec->plan->input_bytes}};
    FRIT_TRY(frit_cuda_alloc_bytes(d, exec->plan->input_bytes, "results of another device", &exec->inputs.address));
    FRIT_TRY(lower_all(exec));
    if (exec->plan->graph->output) FRIT_TRY(frit_cuda_picks_prepare(d, exec->plan->graph->max_outs));
    return FRIT_OK;
}

static frit_status finish_plan(frit_exec *exec)
{
    frit_cuda_device *d = exec->device;
    FRIT_TRY(frit_cuda_scratch_reserve(d, exec->plan->scratch_bytes));
    FRIT_TRY(frit_cuda_work_reserve(d, exec->work_bytes));
    if (exec->n_streamed > 0) FRIT_TRY(frit_cuda_weight_stream_join(exec));
    FRIT_TRY(frit_cuda_kernels_build(d));
    return frit_cuda_gemm_measure(exec);
}

static frit_status new_lowered(frit_cuda_device *d, frit_plan *plan, const frit_cache *cache, frit_exec **out)
{
    frit_exec *exec = calloc(1, sizeof *exec);
    *out = NULL;
    if (!exec) return frit_fail_memory(sizeof *exec, "a plan for a GPU");
    *exec = (frit_exec){.device = d, .plan = plan, .cache = cache, .shared_group = -1};
    frit_status status = frit_cuda_check(&d->driver, d->driver.context_use(d->gpu.context), "using a GPU");
    if (status == FRIT_OK) status = lower_plan(exec);
    if (status != FRIT_OK) {
        frit_cuda_exec_free(&d->base, exec);
        return status;
    }
    *out = exec;
    return FRIT_OK;
}

static frit_status prepare_new(frit_cuda_device *d, frit_plan *plan, const frit_cache *cache, frit_exec **out)
{
    FRIT_TRY(new_lowered(d, plan, cache, out));
    const frit_status status = finish_plan(*out);
    if (status == FRIT_OK) return FRIT_OK;
    frit_cuda_exec_free(&d->base, *out);
    *out = NULL;
    return status;
}

// Measures products of unknown shapes. If other kernels than estimated are fastest, the plan is lowered again.
frit_status frit_cuda_prepare(frit_device *base, frit_plan *plan, const frit_cache *cache, frit_exec **out)
{
    frit_cuda_device *d = (frit_cuda_device *)base;
    int n_others;
    FRIT_TRY(prepare_new(d, plan, cache, out));
    const frit_status status = frit_cuda_autotune_measure(d, &n_others);
    if (status == FRIT_OK && n_others == 0) return FRIT_OK;
    frit_cuda_exec_free(base, *out);
    *out = NULL;
    return status == FRIT_OK ? prepare_new(d, plan, cache, out) : status;
}

static frit_status list_kernels(frit_cuda_device *d, frit_plan *const *plans, size_t n, const frit_cache *cache)
{
    for (size_t i = 0; i < n; i++) {
        frit_exec *exec;
        FRIT_TRY(new_lowered(d, plans[i], cache, &exec));
        frit_cuda_exec_free(&d->base, exec);
    }
    return FRIT_OK;
}

// Lowers the plans to find out which kernels they have, again if other kernels than estimated are fastest.
frit_status frit_cuda_compile_plans(frit_device *base, frit_plan *const *plans, size_t n, const frit_cache *cache,
                                    frit_progress progress)
{
    frit_cuda_device *d = (frit_cuda_device *)base;
    int n_others;
    d->compiler.progress = progress.fn;
    d->compiler.progress_ctx = progress.ctx;
    frit_status status = list_kernels(d, plans, n, cache);
    if (status == FRIT_OK) status = frit_cuda_autotune_measure(d, &n_others);
    if (status == FRIT_OK && n_others > 0) status = list_kernels(d, plans, n, cache);
    if (status == FRIT_OK) status = frit_cuda_kernels_build(d);
    d->compiler.progress = NULL;
    return status;
}

frit_status frit_cuda_plan_alloc(frit_exec *exec, uint64_t n_bytes, bool clears, uint64_t *address)
{
    frit_cuda_device *d = exec->device;
    frit_cuda_buffer *buffers = realloc(exec->buffers, (size_t)(exec->n_buffers + 1) * sizeof *buffers);
    if (!buffers) return frit_fail_memory(sizeof *buffers, "the memory of a plan");
    exec->buffers = buffers;
    FRIT_TRY(frit_cuda_alloc_bytes(d, n_bytes, "a plan", address));
    exec->buffers[exec->n_buffers++] = (frit_cuda_buffer){.address = *address, .n_bytes = (size_t)n_bytes};
    if (!clears || n_bytes == 0) return FRIT_OK;
    return frit_cuda_check(&d->driver, d->driver.memory_set(*address, 0, (size_t)n_bytes, d->stream),
                           "clearing memory");
}

void frit_cuda_exec_free(frit_device *base, frit_exec *exec)
{
    frit_cuda_device *d = (frit_cuda_device *)base;
    if (!exec) return;
    d->driver.context_use(d->gpu.context);
    d->driver.stream_wait(d->stream);
    frit_cuda_weight_stream_leave(exec);
    frit_cuda_recordings_drop(d, exec);
    frit_cuda_free_bytes(d, exec->inputs.address);
    frit_cuda_matmuls_free(exec);
    for (int i = 0; i < exec->n_buffers; i++) frit_cuda_free_bytes(d, exec->buffers[i].address);
    free(exec->buffers);
    free(exec->rope_tables);
    free(exec->dispatches);
    free(exec->is_f16);
    free(exec->is_f16_input);
    free(exec->launches);
    free(exec);
}

frit_address frit_cuda_value(frit_exec *exec, const frit_node *node)
{
    const frit_node *storage = frit_node_storage(node);
    frit_cuda_memory *memory = frit_node_is_result_input(storage) ? &exec->inputs : &exec->device->scratch;
    return (frit_address){&memory->base, exec->plan->offsets[storage->id]};
}

// ------------------------------------------------------------------------------- running

// A free flight. If all are in use, waits for the oldest one.
static frit_status find_flight(frit_cuda_device *d, frit_cuda_flight **out)
{
    frit_cuda_flight *oldest = &d->flights[0];
    for (int i = 0; i < FRIT_CUDA_FLIGHTS; i++) {
        if (d->flights[i].ticket < oldest->ticket) oldest = &d->flights[i];
    }
    *out = oldest;
    return oldest->ticket ? frit_cuda_flight_wait(d, oldest) : FRIT_OK;
}

// Checks tokens ~i of rows and counts, which are pick i of the step before.
static frit_status check_tokens(const frit_cuda_device *d, const frit_batch *batch)
{
    for (int32_t i = 0; i < batch->n_picks; i++) {
        const frit_pick_count *unknown = frit_pick_unknown(&batch->lists, &batch->picks[i]);
        if (unknown && ~unknown->token >= d->picks.n)
            return frit_fail(FRIT_E_INTERNAL, "pick %d counts pick %d of the step before, which had %d picks", i,
                             ~unknown->token, d->picks.n);
    }
    for (int32_t i = 0; i < batch->n_rows; i++) {
        const int32_t token = batch->tokens[i];
        if (token < 0 && ~token >= d->picks.n)
            return frit_fail(FRIT_E_INTERNAL, "row %d is pick %d of the step before, which had %d picks", i, ~token,
                             d->picks.n);
    }
    return FRIT_OK;
}

// True if output row o is copied to the host: if it is read there, or if nothing is picked from it, so that the host
// can check that it is finite. *pick advances to the first pick of this or a later row.
static bool comes_to_host(const frit_cuda_flight *flight, int64_t o, int32_t *pick)
{
    const frit_step_output *output = flight->results;
    while (*pick < flight->n_picks && flight->picks[*pick].row < o) ++*pick;
    const bool is_picked =
        (*pick < flight->n_picks && flight->picks[*pick].row == o) || (output->taken && output->taken[o].is_late);
    return output->wants_rows || !is_picked || (output->taken && output->taken[o].copy);
}

static bool any_comes_to_host(const frit_cuda_flight *flight)
{
    int32_t pick = 0;
    for (int64_t o = 0; flight->results && o < flight->n_outs; o++)
        if (comes_to_host(flight, o, &pick)) return true;
    return false;
}

static frit_status fetch_rows(frit_cuda_device *d, frit_cuda_flight *flight, uint64_t rows)
{
    const size_t n_bytes = (size_t)flight->width * sizeof(float);
    int32_t pick = 0;
    FRIT_TRY(frit_cuda_buffer_reserve(d, &flight->output, (size_t)flight->n_outs * n_bytes, false, true));
    for (int64_t o = 0, end; o < flight->n_outs; o = end) {
        end = o + 1;
        if (!comes_to_host(flight, o, &pick)) continue;
        while (end < flight->n_outs && comes_to_host(flight, end, &pick)) end++;
        float *to = (float *)flight->output.host + o * flight->width;
        const int result =
            d->driver.copy_down(to, rows + (uint64_t)o * n_bytes, (size_t)(end - o) * n_bytes, d->stream);
        FRIT_TRY(frit_cuda_check(&d->driver, result, "copying results from a GPU"));
    }
    return FRIT_OK;
}

static uint64_t rows_of(const frit_exec *exec)
{
    const frit_node *result = exec->plan->graph->output;
    return exec->device->scratch.address + exec->plan->offsets[frit_node_storage(result)->id];
}

static frit_status run_picks(const frit_exec *exec, const frit_cuda_step *step, int n_passes)
{
    frit_cuda_device *d = exec->device;
    return frit_cuda_picks_run(d, rows_of(exec), step->arrays[FRIT_CUDA_PICKS], frit_cuda_picks_next_tokens(d),
                               step->batch, n_passes);
}

static frit_status run_launches(frit_exec *exec, const frit_cuda_step *step)
{
    if (exec->device->profile)
        FRIT_TRY(frit_cuda_profile_run(exec, step));
    else
        for (int i = 0; i < exec->n_launches; i++)
            FRIT_TRY(exec->launches[i].run(exec->device, &exec->launches[i], step));
    return step->n_picks > 0 ? run_picks(exec, step, step->n_passes) : FRIT_OK;
}

// True if a step of the same shape is likely to follow: it has few rows, or one row for each of some sequences. Steps
// with adapters are not recorded, because the address of the adapters' table may change.
static bool is_recorded(const frit_batch *batch)
{
    enum { MOST_ROWS = 16, MOST_SEQS = 256 };
    if (batch->scales) return false;
    return batch->n_rows <= MOST_ROWS || (batch->n_rows <= MOST_SEQS && batch->n_rows == batch->n_seqs);
}

// Launches the kernels of the step, or the graph of a recorded one.
static frit_status run_step(frit_exec *exec, const frit_cuda_step *step, const frit_cuda_flight *flight)
{
    frit_cuda_device *d = exec->device;
    const frit_batch *batch = step->batch;
    frit_cuda_recording *recording;
    if (d->profile || !is_recorded(batch) || exec->n_streamed > 0) return run_launches(exec, step);
    const frit_cuda_graph_key key = {.n_rows = batch->n_rows,
                                     .n_outs = batch->n_outs,
                                     .n_seqs = batch->n_seqs,
                                     .page_stride = step->page_stride,
                                     .n_row_tiles = step->n_row_tiles,
                                     .n_shared_tiles = step->n_shared_tiles,
                                     .n_picks = step->n_picks,
                                     .n_passes = step->n_passes,
                                     .input = flight->input.address,
                                     .scratch = step->scratch,
                                     .work = step->work,
                                     .picked = step->picked,
                                     .picks = step->picks,
                                     .exec = exec};
    FRIT_TRY(frit_cuda_recordings_find(d, &key, &recording));
    if (recording && !recording->graph) frit_cuda_recordings_record(recording, exec, step, run_launches);
    if (!recording || !recording->graph) return run_launches(exec, step);
    return frit_cuda_check(&d->driver, d->driver.graph_launch(recording->graph, d->stream), "launching a step");
}

// Stores in the flight which results the caller wants. Plans without an output have none.
static void describe_output(const frit_exec *exec, const frit_batch *batch, frit_step_output *output,
                            frit_cuda_flight *flight)
{
    const frit_node *result = exec->plan->graph->output;
    const bool has_output = result && batch->n_outs > 0;
    flight->results = has_output ? output : NULL;
    flight->n_outs = batch->n_outs;
    flight->width = has_output ? result->shape[1] : 0;
    flight->n_picks = has_output ? batch->n_picks : 0;
    if (has_output) output->rows = NULL;
}

// Picks change logits, so rows that the host reads are copied before picks run.
static frit_status run_all(frit_exec *exec, frit_cuda_step *step, frit_cuda_flight *flight)
{
    const int n_passes = flight->n_picks > 0 ? frit_cuda_picks_passes(step->batch) : 0;
    const bool any_row = any_comes_to_host(flight);
    if (!any_row) step->n_picks = flight->n_picks, step->n_passes = n_passes;
    FRIT_TRY(run_step(exec, step, flight));
    if (!any_row) return FRIT_OK;
    FRIT_TRY(fetch_rows(exec->device, flight, rows_of(exec)));
    return flight->n_picks > 0 ? run_picks(exec, step, n_passes) : FRIT_OK;
}

frit_status frit_cuda_submit(frit_device *base, frit_exec *exec, const frit_batch *batch, frit_step_output *output,
                             frit_ticket *ticket)
{
    frit_cuda_device *d = (frit_cuda_device *)base;
    frit_cuda_flight *flight;
    frit_cuda_step step = {.batch = batch, .inputs = exec->inputs.address, .shared_group = exec->shared_group};
    FRIT_TRY(frit_cuda_check(&d->driver, d->driver.context_use(d->gpu.context), "using a GPU"));
    FRIT_TRY(check_tokens(d, batch));
    // A larger plan that failed to allocate may have left less memory than this plan needs.
    FRIT_TRY(frit_cuda_scratch_reserve(d, exec->plan->scratch_bytes));
    FRIT_TRY(frit_cuda_work_reserve(d, exec->work_bytes));
    FRIT_TRY(find_flight(d, &flight));
    describe_output(exec, batch, output, flight);
    FRIT_TRY(frit_cuda_step_upload(d, flight, batch, &step));
    step.scratch = d->scratch.address;
    step.work = d->work;
    step.picked = frit_cuda_picks_tokens(d);
    d->picks.next = (int)(flight - d->flights);
    step.picks = frit_cuda_picks_next_tokens(d);
    if (exec->n_streamed > 0) FRIT_TRY(frit_cuda_weight_stream_begin(exec, &step.streamed));
    FRIT_TRY(run_all(exec, &step, flight));
    if (exec->n_streamed > 0) FRIT_TRY(frit_cuda_weight_stream_end(exec));
    if (exec->plan->graph->output) frit_cuda_picks_advance(d, flight->n_picks);
    FRIT_TRY(frit_cuda_check(&d->driver, d->driver.event_record(flight->is_done, d->stream), "recording an event"));
    *ticket = flight->ticket = ++d->n_submitted;
    return FRIT_OK;
}

frit_status frit_cuda_pick(frit_device *base, frit_exec *exec, const frit_batch *batch, frit_step_output *output,
                           frit_ticket *ticket)
{
    frit_cuda_device *d = (frit_cuda_device *)base;
    frit_cuda_flight *flight = &d->flights[FRIT_CUDA_FLIGHTS + d->picks.last];
    FRIT_TRY(frit_cuda_check(&d->driver, d->driver.context_use(d->gpu.context), "using a GPU"));
    if (flight->ticket) FRIT_TRY(frit_cuda_flight_wait(d, flight));
    flight->results = output;
    flight->n_outs = flight->width = 0;   // the rows belong to the step
    flight->n_picks = batch->n_picks;
    FRIT_TRY(frit_cuda_picks_run_late(d, flight, rows_of(exec), batch));
    FRIT_TRY(frit_cuda_check(&d->driver, d->driver.event_record(flight->is_done, d->stream), "recording an event"));
    *ticket = flight->ticket = ++d->n_submitted;
    return FRIT_OK;
}

// Stores what the caller wants of each output row (frit_out_row).
static void deliver_results(const frit_cuda_flight *flight)
{
    frit_step_output *output = flight->results;
    const float *rows = flight->output.host;
    int32_t pick = 0;
    if (output->wants_rows) output->rows = rows;
    for (int64_t o = 0; output->taken && o < flight->n_outs; o++)
        if (comes_to_host(flight, o, &pick))
            frit_out_row_take(&output->taken[o], rows + o * flight->width, flight->width);
    frit_cuda_picks_deliver(flight);
}

frit_status frit_cuda_flight_wait(frit_cuda_device *d, frit_cuda_flight *flight)
{
    frit_status status = frit_cuda_check(&d->driver, d->driver.event_wait(flight->is_done), "running a step on a GPU");
    if (status == FRIT_OK && flight->results) deliver_results(flight);
    if (flight->ticket > d->n_done) d->n_done = flight->ticket;
    flight->ticket = 0;
    flight->results = NULL;
    return status;
}
