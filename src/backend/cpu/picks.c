// SPDX-License-Identifier: MIT
// Runs the picks of a step on all its threads, and resolves input tokens and counts of picks that the previous step
// picked.
#include "backend/cpu/exec.h"

#include <stdlib.h>

// ------------------------------------------------------------------------------- tokens

// Allocates for the tokens of a step and the results of its picks.
frit_status frit_cpu_reserve_tokens(frit_cpu_device *device, int32_t n)
{
    if (n <= device->tokens_capacity) return FRIT_OK;
    frit_token *tokens = realloc(device->tokens, (size_t)n * sizeof *tokens);
    if (tokens) device->tokens = tokens;
    frit_token *picked = tokens ? realloc(device->picked, (size_t)n * sizeof *picked) : NULL;
    if (!picked) return frit_fail_memory((size_t)n * sizeof *picked, "the tokens of a step");
    device->picked = picked;
    device->tokens_capacity = n;
    return FRIT_OK;
}

static bool all_known(const frit_batch *batch)
{
    for (int32_t i = 0; i < batch->n_rows; i++)
        if (batch->tokens[i] < 0) return false;
    return true;
}

static frit_status find_counts(const frit_cpu_device *device, const frit_batch *batch)
{
    for (int32_t i = 0; i < batch->n_picks; i++) {
        const frit_pick_count *unknown = frit_pick_unknown(&batch->lists, &batch->picks[i]);
        if (!unknown) continue;
        if (~unknown->token >= device->n_picked)
            return frit_fail(FRIT_E_INTERNAL, "pick %d counts pick %d of the step before, which had %d picks", i,
                             ~unknown->token, device->n_picked);
        frit_pick_resolve(&batch->lists, &batch->picks[i], device->picked[~unknown->token]);
    }
    return FRIT_OK;
}

frit_status frit_cpu_find_tokens(frit_cpu_device *device, frit_batch *batch)
{
    FRIT_TRY(find_counts(device, batch));
    if (all_known(batch)) return FRIT_OK;
    for (int32_t i = 0; i < batch->n_rows; i++) {
        const int32_t token = batch->tokens[i];
        if (token < 0 && ~token >= device->n_picked)
            return frit_fail(FRIT_E_INTERNAL, "row %d is pick %d of the step before, which had %d picks", i, ~token,
                             device->n_picked);
        device->tokens[i] = token < 0 ? device->picked[~token] : token;
    }
    batch->tokens = device->tokens;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- picks

static int open_phase(void *ctx, int phase, int *grain)
{
    *grain = 1;
    return frit_pick_open(ctx, phase);
}

static void work_on_phase(void *ctx, int phase, int begin, int end, int thread)
{
    frit_pick_work(ctx, phase, begin, end, thread);
}

// A pick that fails gives token 0, so that the next step reads within its tables.
static void keep_tokens(frit_cpu_device *device, const frit_batch *batch, const frit_picked_token *picked)
{
    for (int32_t i = 0; i < batch->n_picks; i++)
        device->picked[device->n_picked++] = picked[i].status == FRIT_PICK_DONE ? picked[i].token : 0;
}

static float *rows_of(const frit_exec *exec)
{
    const frit_node *result = exec->plan->graph->output;
    return (float *)(void *)(exec->scratch.bytes + exec->plan->offsets[result->id]);
}

static void run_picks(frit_cpu_device *device, const frit_exec *exec, frit_pool *pool, const frit_batch *batch,
                      const frit_step_output *output)
{
    frit_pick_lists lists = batch->lists;
    lists.tops = output->tops;
    const frit_pick_job job = {rows_of(exec), batch->picks, batch->n_picks, &lists, output->picked};
    for (int32_t first = 0; first < job.n_picks;) {
        first = frit_pick_begin(device->pick_runner, &job, first);
        frit_pool_walk(pool, &(frit_walk){device->pick_runner, FRIT_PICK_PHASES, open_phase, work_on_phase, NULL});
    }
    keep_tokens(device, batch, output->picked);
}

void frit_cpu_give_output(frit_cpu_device *device, const frit_exec *exec, frit_pool *pool, frit_step_output *output)
{
    if (!exec->plan->graph->output) return;
    device->n_picked = 0;
    run_picks(device, exec, pool, &exec->batch, output);
    output->rows = rows_of(exec);
}

frit_status frit_cpu_pick(frit_device *base, frit_exec *exec, const frit_batch *batch, frit_step_output *output,
                          frit_ticket *ticket)
{
    frit_cpu_device *device = (frit_cpu_device *)base;
    run_picks(device, exec, device->decode_pool, batch, output);
    *ticket = device->n_runs;
    return FRIT_OK;
}
