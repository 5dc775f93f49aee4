// SPDX-License-Identifier: MIT
// Picks on the GPU, or on the host.
#include "backend/webgpu/picks.h"
#include "backend/webgpu/ops/launch.h"
#include "base/grow.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS = 64, WORDS = FRIT_WEBGPU_PICK_BYTES / 4 };   // of kernels/pick.wgsl

// ------------------------------------------------------------------------------- launches

// n[0]: groups of threads for each pick.
static void grid_picks(const frit_webgpu_launch *l, const frit_webgpu_step *step, uint32_t *grid)
{
    grid[0] = (uint32_t)l->n[0];
    grid[1] = (uint32_t)step->n_picks;
    grid[2] = 1;
}

frit_status frit_webgpu_picks_lower(frit_exec *exec)
{
    const frit_node *logits = exec->plan->graph->output;
    if (!logits || logits->rows != FRIT_SHAPE_OUTS || logits->n_dims != 2) return FRIT_OK;
    const int64_t most = exec->plan->graph->max_outs;
    for (int pass = 0; pass < 2; pass++) {
        frit_webgpu_launch *l;
        FRIT_TRY(frit_webgpu_launch_new(exec, logits, "pick.wgsl", &l));
        frit_webgpu_bind_shared(l, 'w', FRIT_WEBGPU_PICKED);
        frit_webgpu_define(&l->wanted, "PASS", pass);
        l->params[PARAM_PICK_LOGITS] = frit_webgpu_offset(exec, logits);
        l->params[PARAM_PICK_N_VOCAB] = (uint32_t)frit_node_width(logits);
        l->params[PARAM_PICK_PARTS] = (uint32_t)(most * WORDS);
        l->n[0] = pass == 0 ? GROUPS : 1;
        l->grid = grid_picks;
    }
    exec->picked_bytes = (uint64_t)(most * (1 + GROUPS)) * FRIT_WEBGPU_PICK_BYTES;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- where picks run

static bool is_likeliest(const frit_pick *p)
{
    return !(p->temp > 0) && p->n_biases == 0 && p->n_counts == 0 && p->mask < 0 && p->first_top < 0;
}

// True if the host reads no logits of the step.
static bool fits_gpu(const frit_exec *exec, const frit_batch *batch, const frit_step_output *output)
{
    if (exec->picked_bytes == 0 || batch->n_picks != batch->n_outs || output->wants_rows) return false;
    for (int32_t i = 0; i < batch->n_picks; i++)
        if (!is_likeliest(&batch->picks[i])) return false;
    for (int32_t i = 0; output->taken && i < batch->n_outs; i++)
        if (output->taken[i].copy) return false;
    return true;
}

frit_status frit_webgpu_picks_begin(const frit_exec *exec, const frit_batch *batch, const frit_step_output *output,
                                    frit_webgpu_flight *flight)
{
    const bool has_picks = exec->plan->graph->output && batch->n_picks > 0;
    const uint64_t n_bytes = frit_batch_bytes(batch);
    flight->n_picks = has_picks ? batch->n_picks : 0;
    flight->picks_on_gpu = has_picks && fits_gpu(exec, batch, output);
    if (!has_picks) return FRIT_OK;
    FRIT_TRY(FRIT_GROW(flight->tokens, flight->tokens_capacity, batch->n_picks, "picked tokens"));
    memset(flight->tokens, 0, (size_t)batch->n_picks * sizeof *flight->tokens);
    FRIT_TRY(FRIT_GROW(flight->pick_rows, flight->rows_capacity, batch->n_picks, "rows of picks"));
    for (int32_t i = 0; i < batch->n_picks; i++) flight->pick_rows[i] = batch->picks[i].row;
    if (flight->picks_on_gpu) return FRIT_OK;
    FRIT_TRY(FRIT_GROW(flight->batch, flight->batch_capacity, (size_t)n_bytes, "picks of a step"));
    frit_batch_pack(flight->batch, batch);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- tokens of the step before

static bool knows_tokens(const frit_batch *batch)
{
    for (int32_t i = 0; i < batch->n_rows; i++)
        if (batch->tokens[i] < 0) return false;
    return true;
}

static bool knows_counts(const frit_batch *batch)
{
    for (int32_t i = 0; i < batch->n_picks; i++)
        if (frit_pick_unknown(&batch->lists, &batch->picks[i])) return false;
    return true;
}

static frit_token token_of(const frit_webgpu_flight *before, int32_t unknown)
{
    return ~unknown < before->n_picks ? before->tokens[~unknown] : 0;
}

frit_status frit_webgpu_picks_resolve(frit_webgpu_device *d, frit_webgpu_flight *before,
                                      const frit_webgpu_flight *flight, bool is_kept, frit_batch *batch)
{
    const bool needs_tokens = !knows_tokens(batch) && !(before->picks_on_gpu && is_kept);
    const bool needs_counts = batch->n_picks > 0 && !flight->picks_on_gpu && !knows_counts(batch);
    if (!needs_tokens && !needs_counts) return FRIT_OK;
    if (before->ticket) FRIT_TRY(frit_webgpu_flight_wait(d, before));
    if (needs_counts) {
        const frit_batch packed = frit_batch_view(flight->batch);
        for (int32_t i = 0; i < packed.n_picks; i++) {
            const frit_pick_count *unknown = frit_pick_unknown(&packed.lists, &packed.picks[i]);
            if (unknown) frit_pick_resolve(&packed.lists, &packed.picks[i], token_of(before, unknown->token));
        }
    }
    if (!needs_tokens) return FRIT_OK;
    FRIT_TRY(FRIT_GROW(d->tokens, d->tokens_capacity, batch->n_rows, "tokens of a step"));
    for (int32_t i = 0; i < batch->n_rows; i++)
        d->tokens[i] = batch->tokens[i] < 0 ? token_of(before, batch->tokens[i]) : batch->tokens[i];
    batch->tokens = d->tokens;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- results

static void deliver_gpu_picks(frit_webgpu_flight *flight)
{
    const uint32_t *words = (const uint32_t *)(const void *)flight->rows;
    const frit_step_output *output = flight->results;
    for (int32_t i = 0; i < flight->n_picks; i++, words += WORDS) {
        const frit_pick_status status = (frit_pick_status)words[1];
        flight->tokens[i] = (frit_token)words[0];
        output->picked[i] =
            (frit_picked_token){.token = status == FRIT_PICK_DONE ? flight->tokens[i] : -1, .status = status};
        if (words[2] && output->taken) atomic_store(&output->taken[flight->pick_rows[i]].bad, true);
    }
}

void frit_webgpu_picks_deliver(frit_webgpu_device *d, frit_webgpu_flight *flight)
{
    const frit_step_output *output = flight->results;
    if (flight->n_picks == 0) return;
    if (flight->picks_on_gpu) {
        deliver_gpu_picks(flight);
        return;
    }
    frit_batch batch = frit_batch_view(flight->batch);
    batch.lists.tops = output->tops;
    float *rows = (float *)(uintptr_t)flight->rows;   // restored when the picks have run
    frit_pick_alone(d->pick_runner, &(frit_pick_job){rows, batch.picks, batch.n_picks, &batch.lists, output->picked});
    for (int32_t i = 0; i < flight->n_picks; i++)
        flight->tokens[i] = output->picked[i].status == FRIT_PICK_DONE ? output->picked[i].token : 0;
}
