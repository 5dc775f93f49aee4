// SPDX-License-Identifier: MIT
// The host's part of picks on the GPU.
#include "backend/cuda/picks.h"
#include "base/philox.h"
#include "sample/weight.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

_Static_assert((int)FRIT_GPU_PICK_BLOCKS == (int)FRIT_BLOCKS, "blocks of a row are those of sums on CPUs");
_Static_assert(sizeof(frit_gpu_item) == sizeof(frit_candidate), "biases are copied as they are");
_Static_assert(sizeof(frit_gpu_count) == sizeof(frit_pick_count), "counts are copied as they are");

// ------------------------------------------------------------------------------- memory

uint64_t frit_cuda_picks_bytes(int64_t most)
{
    return FRIT_GPU_PICK_WAVE * sizeof(frit_gpu_pick_work) + FRIT_CUDA_FLIGHTS * (uint64_t)most * sizeof(int32_t);
}

frit_status frit_cuda_picks_prepare(frit_cuda_device *d, int64_t most)
{
    frit_cuda_picks *picks = &d->picks;
    const frit_cuda_kernel wanted = {.file = "pick.cu", .name = "pick_pass", .grid = {1, 1, 1}, .threads = 256};
    FRIT_TRY(frit_cuda_kernel_get(d, &wanted, &picks->kernel));
    if (!picks->works) {
        const size_t n_bytes = FRIT_GPU_PICK_WAVE * sizeof(frit_gpu_pick_work);
        FRIT_TRY(frit_cuda_alloc_bytes(d, n_bytes, "picks", &picks->works));
        FRIT_TRY(
            frit_cuda_check(&d->driver, d->driver.memory_set(picks->works, 0, n_bytes, d->stream), "clearing memory"));
    }
    if (picks->room >= most) return FRIT_OK;
    uint64_t tokens;
    FRIT_TRY(frit_cuda_alloc_bytes(d, FRIT_CUDA_FLIGHTS * (uint64_t)most * sizeof(int32_t), "picks", &tokens));
    int result = 0;
    const uint64_t last = tokens + (uint64_t)picks->last * (uint64_t)most * sizeof(int32_t);
    if (picks->n > 0)
        result = d->driver.copy_within(last, frit_cuda_picks_tokens(d), (size_t)picks->n * sizeof(int32_t), d->stream);
    if (result == 0) result = d->driver.stream_wait(d->stream);
    frit_cuda_free_bytes(d, picks->tokens);
    picks->tokens = tokens;
    picks->room = (int32_t)most;
    return frit_cuda_check(&d->driver, result, "copying picked tokens");
}

static uint64_t tokens_of(const frit_cuda_picks *picks, int which)
{
    return picks->tokens + (uint64_t)which * (uint64_t)picks->room * sizeof(int32_t);
}

uint64_t frit_cuda_picks_tokens(const frit_cuda_device *d)
{
    return tokens_of(&d->picks, d->picks.last);
}

uint64_t frit_cuda_picks_next_tokens(const frit_cuda_device *d)
{
    return tokens_of(&d->picks, d->picks.next);
}

void frit_cuda_picks_advance(frit_cuda_device *d, int32_t n_picks)
{
    d->picks.last = d->picks.next;
    d->picks.n = n_picks;
}

void frit_cuda_picks_close(frit_cuda_device *d)
{
    frit_cuda_free_bytes(d, d->picks.works);
    frit_cuda_free_bytes(d, d->picks.tokens);
    d->picks = (frit_cuda_picks){0};
}

// ------------------------------------------------------------------------------- what picks are

typedef struct list_offsets {
    size_t counts, masks, end;
} list_offsets;

static list_offsets offsets_of(const frit_batch *batch)
{
    const frit_pick_lists *lists = &batch->lists;
    const size_t n_words = (size_t)lists->n_masks * (size_t)frit_pick_mask_words(lists->n_vocab);
    list_offsets at = {.counts = (size_t)lists->n_biases * sizeof(frit_gpu_item)};
    at.masks = at.counts + (size_t)lists->n_counts * sizeof(frit_gpu_count);
    at.end = at.masks + n_words * sizeof(uint32_t);
    return at;
}

size_t frit_cuda_picks_lists_bytes(const frit_batch *batch)
{
    return batch->n_picks > 0 ? offsets_of(batch).end : 0;
}

static void copy_list(uint8_t *to, const void *from, size_t n_bytes)
{
    if (n_bytes > 0) memcpy(to, from, n_bytes);
}

static frit_gpu_pick describe_pick(const frit_pick *p, const frit_pick_lists *lists, uint64_t address, list_offsets at)
{
    const uint64_t mask_bytes = (uint64_t)frit_pick_mask_words(lists->n_vocab) * sizeof(uint32_t);
    return (frit_gpu_pick){.biases = address + (uint64_t)p->first_bias * sizeof(frit_gpu_item),
                           .counts = address + at.counts + (uint64_t)p->first_count * sizeof(frit_gpu_count),
                           .mask = p->mask >= 0 ? address + at.masks + (uint64_t)p->mask * mask_bytes : 0,
                           .drawn = p->temp > 0 ? frit_philox_draw(p->seed, p->position) : 0,
                           .row = p->row,
                           .n_biases = p->n_biases,
                           .n_counts = p->n_counts,
                           .top_k = p->top_k,
                           .n_top = p->first_top >= 0 ? p->n_top : 0,
                           .has_logprob = p->first_top >= 0,
                           .temp = p->temp,
                           .top_p = p->top_p,
                           .min_p = p->min_p,
                           .log_min_p = p->min_p > 0 ? logf(p->min_p) : 0,
                           .top_n_sigma = p->top_n_sigma,
                           .repeat = p->repeat,
                           .frequency = p->frequency,
                           .presence = p->presence};
}

frit_status frit_cuda_picks_write(frit_cuda_device *d, frit_cuda_flight *flight, const frit_batch *batch,
                                  const frit_cuda_picks_staging *staging)
{
    const frit_pick_lists *lists = &batch->lists;
    const list_offsets at = offsets_of(batch);
    const size_t tops = (size_t)batch->n_picks * sizeof(frit_gpu_picked);
    FRIT_TRY(frit_cuda_buffer_reserve(d, &flight->picked, tops + (size_t)lists->n_tops * sizeof(frit_gpu_item), false,
                                      true));
    const uint64_t results = (uint64_t)(uintptr_t)flight->picked.host;
    copy_list(staging->lists, lists->biases, at.counts);
    copy_list(staging->lists + at.counts, lists->counts, at.masks - at.counts);
    copy_list(staging->lists + at.masks, lists->masks, at.end - at.masks);
    for (int32_t i = 0; i < batch->n_picks; i++) {
        const frit_pick *p = &batch->picks[i];
        frit_gpu_pick *to = &staging->picks[i];
        *to = describe_pick(p, lists, staging->lists_address, at);
        to->out = results + (uint64_t)i * sizeof(frit_gpu_picked);
        to->tops = p->first_top < 0 ? 0 : results + tops + (uint64_t)p->first_top * sizeof(frit_gpu_item);
    }
    flight->picks = staging->picks;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- running

// Passes that a pick of this kind usually needs. If it needs more, the last pass runs them too.
static int usual_passes(const frit_pick *p, int32_t n_vocab)
{
    const bool changes = p->n_biases + p->n_counts > 0, is_list = p->top_k > 0 && p->top_k <= FRIT_GPU_PICK_BEST;
    int n = 1;   // the pass that finds the largest logit
    if (p->first_top >= 0)
        n += p->n_top > 0 ? 4 : 2;
    else
        n += changes;
    if (!(p->temp > 0)) return n;
    if (is_list && !(p->top_n_sigma > 0)) return n + 2;
    n += p->top_n_sigma > 0;
    if (p->top_k > 0 && p->top_k < n_vocab) n += 3;
    if (p->top_p > 0 && p->top_p < 1) n += 3;
    return n + 1;
}

int frit_cuda_picks_passes(const frit_batch *batch)
{
    int most = 0;
    for (int32_t i = 0; i < batch->n_picks; i++) {
        const int n = usual_passes(&batch->picks[i], batch->lists.n_vocab);
        if (n > most) most = n;
    }
    return most;
}

frit_status frit_cuda_picks_run(frit_cuda_device *d, uint64_t rows, uint64_t picks, uint64_t tokens,
                                const frit_batch *batch, int n_passes)
{
    const int32_t n_vocab = batch->lists.n_vocab, block_size = frit_block_size(n_vocab);
    frit_cuda_kernel kernel = *d->picks.kernel;
    kernel.grid[0] = (unsigned)((n_vocab + block_size - 1) / block_size);
    for (int32_t first = 0; first < batch->n_picks; first += FRIT_GPU_PICK_WAVE) {
        const int32_t left = batch->n_picks - first;
        kernel.grid[1] = (unsigned)(left < FRIT_GPU_PICK_WAVE ? left : FRIT_GPU_PICK_WAVE);
        for (int pass = 0; pass < n_passes; pass++) {
            const frit_pick_args args = {.rows = rows,
                                         .picks = picks + (uint64_t)first * sizeof(frit_gpu_pick),
                                         .works = d->picks.works,
                                         .tokens = tokens + (uint64_t)first * sizeof(int32_t),
                                         .before = frit_cuda_picks_tokens(d),
                                         .n_vocab = n_vocab,
                                         .block_size = block_size,
                                         .is_first = pass == 0,
                                         .is_last = pass == n_passes - 1};
            FRIT_TRY(frit_cuda_kernel_launch(&d->gpu, &kernel, d->stream, &args, FRIT_CUDA_OVERLAPPING));
        }
    }
    return FRIT_OK;
}

// Copies what the picks are while the step runs, and picks after it.
static frit_status upload(const frit_cuda_device *d, const frit_cuda_flight *flight, size_t n_bytes)
{
    const frit_cuda_driver *driver = &d->driver;
    int result = driver->copy_up(flight->input.address, flight->input.host, n_bytes, d->uploads);
    if (result == 0) result = driver->event_record(flight->is_uploaded, d->uploads);
    if (result == 0) result = driver->stream_wait_event(d->stream, flight->is_uploaded, 0);
    return frit_cuda_check(driver, result, "copying picks to a GPU");
}

frit_status frit_cuda_picks_run_late(frit_cuda_device *d, frit_cuda_flight *flight, uint64_t rows,
                                     const frit_batch *batch)
{
    const size_t n_lists = offsets_of(batch).end, n_picks = (size_t)batch->n_picks * sizeof(frit_gpu_pick);
    const uint64_t tokens = frit_cuda_picks_tokens(d) + (uint64_t)d->picks.n * sizeof(int32_t);
    if (d->picks.n + batch->n_picks > d->picks.room)
        return frit_fail(FRIT_E_INTERNAL, "a step had %d picks, and %d are to follow; expected %d at most", d->picks.n,
                         batch->n_picks, d->picks.room);
    FRIT_TRY(frit_cuda_buffer_reserve(d, &flight->input, n_picks + n_lists, true, true));
    uint8_t *host = flight->input.host;
    const frit_cuda_picks_staging staging = {.picks = (frit_gpu_pick *)(void *)host,
                                             .lists = host + n_picks,
                                             .lists_address = flight->input.address + n_picks};
    FRIT_TRY(frit_cuda_picks_write(d, flight, batch, &staging));
    FRIT_TRY(upload(d, flight, n_picks + n_lists));
    FRIT_TRY(frit_cuda_picks_run(d, rows, flight->input.address, tokens, batch, frit_cuda_picks_passes(batch)));
    d->picks.n += batch->n_picks;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- results

// Computes log-probabilities with the host's logarithm, so that they equal those of a CPU.
static void deliver_pick(const frit_cuda_flight *flight, int32_t i)
{
    const frit_step_output *output = flight->results;
    const frit_gpu_pick *p = &flight->picks[i];
    const frit_gpu_picked *found = (const frit_gpu_picked *)flight->picked.host + i;
    frit_picked_token *picked = &output->picked[i];
    *picked = (frit_picked_token){.token = found->token, .status = (frit_pick_status)found->status};
    if (found->is_bad && output->taken) atomic_store(&output->taken[p->row].bad, true);
    if (!p->has_logprob || !(found->sum > 0)) return;
    const double log_sum = (double)found->max + log(found->sum);
    if (picked->status == FRIT_PICK_DONE) picked->logprob = (float)((double)found->logit - log_sum);
    const frit_gpu_item *tops = (const frit_gpu_item *)(uintptr_t)p->tops,
                        *all = (const frit_gpu_item *)((const frit_gpu_picked *)flight->picked.host + flight->n_picks);
    for (int k = 0; k < p->n_top; k++)
        output->tops[tops - all + k] = (frit_logprob){tops[k].token, (float)((double)tops[k].logit - log_sum)};
}

void frit_cuda_picks_deliver(const frit_cuda_flight *flight)
{
    for (int32_t i = 0; i < flight->n_picks; i++) deliver_pick(flight, i);
}
