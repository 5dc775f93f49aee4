// SPDX-License-Identifier: MIT
// Picks on the GPU, or on the host.
#include "backend/webgpu/picks.h"
#include "backend/webgpu/ops/launch.h"
#include "base/grow.h"
#include "base/philox.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS = 64, WORDS = FRIT_WEBGPU_PICK_BYTES / 4 };   // of kernels/pick.wgsl
// Constants of kernels/pick_run.wgsl. Results of up to MOST_RESULTS picks lie where no plan has anything else.
enum { PICK_WORDS = 18, WORK_WORDS = 5250, MOST_LIST = 256, MOST_RUN = 256, MOST_RESULTS = 1024, N_STAGES = 5 };
typedef enum kind { LIKELIEST, LIST, ALL, OTHER } kind;

// ------------------------------------------------------------------------------- launches

enum { FIRST_LOOK = 1, LIKELIEST_OF_GROUPS = 2, STAGE_0 = 4 };   // STAGE_0 << i: stage i of pick_run.wgsl

// n[0]: groups of threads for each pick, n[1]: the stage.
static void grid_picks(const frit_webgpu_launch *l, const frit_webgpu_step *step, uint32_t *grid)
{
    grid[0] = (uint32_t)l->n[0];
    grid[1] = step->pick_stages & l->n[1] ? (uint32_t)step->n_picks : 0;
    grid[2] = 1;
}

static frit_status add_launch(frit_exec *exec, const char *file, const char *name, int stage, int bit, int n_groups)
{
    const frit_node *logits = exec->plan->graph->output;
    const int64_t most = exec->plan->graph->max_outs;
    frit_webgpu_launch *l;
    FRIT_TRY(frit_webgpu_launch_new(exec, logits, file, &l));
    frit_webgpu_bind_shared(l, 'w', FRIT_WEBGPU_PICKED);
    if (bit >= STAGE_0) frit_webgpu_bind_shared(l, 'w', FRIT_WEBGPU_PICK_WORK);
    frit_webgpu_define(&l->wanted, name, stage);
    l->params[PARAM_PICK_LOGITS] = frit_webgpu_offset(exec, logits);
    l->params[PARAM_PICK_N_VOCAB] = (uint32_t)frit_node_width(logits);
    l->params[PARAM_PICK_PARTS] = (uint32_t)((most > MOST_RESULTS ? most : MOST_RESULTS) * WORDS);
    l->n[0] = n_groups;
    l->n[1] = bit;
    l->grid = grid_picks;
    return FRIT_OK;
}

frit_status frit_webgpu_picks_lower(frit_exec *exec)
{
    const frit_node *logits = exec->plan->graph->output;
    if (!logits || logits->rows != FRIT_SHAPE_OUTS || logits->n_dims != 2) return FRIT_OK;
    const int64_t most = exec->plan->graph->max_outs, n_results = most > MOST_RESULTS ? most : MOST_RESULTS;
    FRIT_TRY(add_launch(exec, "pick.wgsl", "PASS", 0, FIRST_LOOK, GROUPS));
    FRIT_TRY(add_launch(exec, "pick.wgsl", "PASS", 1, LIKELIEST_OF_GROUPS, 1));
    exec->picked_bytes = (uint64_t)(n_results + most * GROUPS) * FRIT_WEBGPU_PICK_BYTES;
    if (most > MOST_RUN) return FRIT_OK;
    for (int i = 0; i < N_STAGES; i++)
        FRIT_TRY(add_launch(exec, "pick_run.wgsl", "STAGE", i, STAGE_0 << i, i == 0 || i == 4 ? 1 : GROUPS));
    exec->pick_work_bytes = (uint64_t)most * WORK_WORDS * 4;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- the input of a step

static bool has_changes(const frit_pick *p)
{
    return p->n_biases > 0 || p->n_counts > 0;
}

static kind kind_of(const frit_pick *p, int32_t n_vocab)
{
    const bool has_top_k = p->top_k > 0 && p->top_k < n_vocab;
    const bool has_top_p = p->top_p > 0 && p->top_p < 1;
    if (p->first_top >= 0) return OTHER;
    if (!(p->temp > 0)) return LIKELIEST;
    if (p->top_n_sigma > 0) return OTHER;
    if (p->top_k > 0 && p->top_k <= MOST_LIST) return LIST;
    return has_top_k || has_top_p ? OTHER : ALL;
}

static bool is_plain(const frit_pick *p)   // the likeliest token of the logits as they are
{
    return !(p->temp > 0) && !has_changes(p) && p->mask < 0 && p->first_top < 0;
}

int32_t frit_webgpu_pick_stages(const frit_batch *batch, int32_t n_picks)
{
    const int32_t run = (STAGE_0 << 1) | (STAGE_0 << 3) | (STAGE_0 << 4);
    int32_t stages = 0;
    for (int32_t i = 0; i < n_picks; i++) {
        const frit_pick *p = &batch->picks[i];
        if (!is_plain(p)) stages |= run;
        if (has_changes(p)) stages |= FIRST_LOOK | STAGE_0;
        if (kind_of(p, batch->lists.n_vocab) == LIST) stages |= STAGE_0 << 2;
    }
    return n_picks > 0 && stages == 0 ? FIRST_LOOK | LIKELIEST_OF_GROUPS : stages;
}

static size_t mask_words(const frit_pick_lists *lists)
{
    return (size_t)lists->n_masks * (size_t)frit_pick_mask_words(lists->n_vocab);
}

size_t frit_webgpu_picks_words(const frit_webgpu_step *step)
{
    const frit_pick_lists *lists = &step->batch->lists;
    if (step->n_picks == 0) return 0;
    return (size_t)step->n_picks * PICK_WORDS + 2 * (size_t)lists->n_biases + 2 * (size_t)lists->n_counts +
           mask_words(lists);
}

static frit_token token_of(const frit_webgpu_flight *before, int32_t unknown)
{
    return ~unknown < before->n_picks ? before->tokens[~unknown] : 0;
}

// at: where the biases, counts and masks of all picks lie.
static void put_pick(const frit_webgpu_step *step, const frit_pick *p, const size_t at[3], uint32_t *to)
{
    const frit_pick_lists *lists = &step->batch->lists;
    const frit_pick_count *last = frit_pick_unknown(lists, p);
    const uint64_t drawn = p->temp > 0 ? frit_philox_draw(p->seed, p->position) : 0;
    const bool has_top_p = p->top_p > 0 && p->top_p < 1;
    const uint32_t words[PICK_WORDS] = {
        (uint32_t)p->row,
        (uint32_t)p->n_biases,
        (uint32_t)(at[0] + 2 * (size_t)p->first_bias),
        (uint32_t)(p->n_counts - (last ? 1 : 0)),
        (uint32_t)(at[1] + 2 * (size_t)p->first_count),
        !last ? INT32_MAX : (uint32_t)(step->counts_from ? token_of(step->counts_from, last->token) : last->token),
        p->mask < 0 ? 0 : (uint32_t)(at[2] + (size_t)p->mask * (size_t)frit_pick_mask_words(lists->n_vocab)),
        (uint32_t)kind_of(p, lists->n_vocab),
        (uint32_t)p->top_k,
        frit_webgpu_float(p->temp),
        frit_webgpu_float(has_top_p ? p->top_p : 0),
        p->min_p > 0,
        frit_webgpu_float(p->min_p > 0 ? logf(p->min_p) : 0),
        (uint32_t)drawn,
        (uint32_t)(drawn >> 32),
        frit_webgpu_float(p->repeat),
        frit_webgpu_float(p->frequency),
        frit_webgpu_float(p->presence)};
    memcpy(to, words, sizeof words);
}

static size_t put_list(uint32_t *to, size_t at, const void *list, size_t n_words)
{
    if (n_words > 0) memcpy(to + at, list, n_words * 4);
    return at + n_words;
}

size_t frit_webgpu_picks_put(const frit_webgpu_step *step, uint32_t *to, size_t at)
{
    const frit_pick_lists *lists = &step->batch->lists;
    size_t begins[3], picks = at;
    if (step->n_picks == 0) return at;
    begins[0] = at + (size_t)step->n_picks * PICK_WORDS;
    begins[1] = put_list(to, begins[0], lists->biases, 2 * (size_t)lists->n_biases);
    begins[2] = put_list(to, begins[1], lists->counts, 2 * (size_t)lists->n_counts);
    for (int32_t i = 0; i < step->n_picks; i++, picks += PICK_WORDS)
        put_pick(step, &step->batch->picks[i], begins, to + picks);
    return put_list(to, begins[2], lists->masks, mask_words(lists));
}

// ------------------------------------------------------------------------------- where picks run

// True if the host reads no logits of the step.
static bool fits_gpu(const frit_exec *exec, const frit_batch *batch, const frit_step_output *output)
{
    if (exec->picked_bytes == 0 || batch->n_picks != batch->n_outs || output->wants_rows) return false;
    for (int32_t i = 0; i < batch->n_picks; i++) {
        const frit_pick *p = &batch->picks[i];
        const bool runs = exec->pick_work_bytes > 0 && kind_of(p, batch->lists.n_vocab) != OTHER;
        if (!is_plain(p) && !runs) return false;
    }
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

frit_status frit_webgpu_picks_resolve(frit_webgpu_device *d, frit_webgpu_flight *before,
                                      const frit_webgpu_flight *flight, bool is_kept, frit_batch *batch)
{
    const bool is_on_gpu = before->picks_on_gpu && is_kept;
    const bool needs_tokens = !knows_tokens(batch) && !is_on_gpu;
    const bool needs_counts = batch->n_picks > 0 && !(flight->picks_on_gpu && is_on_gpu) && !knows_counts(batch);
    if (!needs_tokens && !needs_counts) return FRIT_OK;
    if (before->ticket) FRIT_TRY(frit_webgpu_flight_wait(d, before));
    if (needs_counts && !flight->picks_on_gpu) {
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
