// SPDX-License-Identifier: MIT
// Writing a step's input and copying it to the GPU.
#include "backend/cuda/step_input.h"
#include "backend/cuda/ops/attend.h"
#include "backend/cuda/ops/rows.h"
#include "backend/cuda/picks.h"
#include "backend/cuda/shared_pages.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 64 };   // bytes of a cache line of the host; arrays begin at a line

typedef struct input_array {
    const void *from;   // NULL: written in place
    size_t n_bytes;
} input_array;

// Sequences at the beginning of the batch whose attention is computed row by row: all of a small step, otherwise those
// with single rows.
static int32_t n_single_seqs_of(const frit_batch *batch)
{
    int32_t n = 0;
    if (batch->n_rows < FRIT_CUDA_ATTEND_ROWS_FROM) return batch->n_seqs;
    while (n < batch->n_seqs && batch->seqs[n].n_rows == 1) n++;
    return n;
}

static int32_t n_row_tiles_of(const frit_batch *batch)
{
    int32_t n = 0;
    for (int32_t i = n_single_seqs_of(batch); i < batch->n_seqs; i++)
        n += (batch->seqs[i].n_rows + FRIT_CUDA_ROWS_OF_TILE - 1) / FRIT_CUDA_ROWS_OF_TILE;
    return n;
}

// Finds the tiles of rows that share pages. n_pages: [FRIT_CUDA_SHARED_MOST_ROWS].
static int32_t find_shared(const frit_batch *batch, const frit_cuda_step *step, int32_t *n_pages,
                           frit_shared_tile *tiles)
{
    const int32_t n = step->n_single_rows;
    if (step->shared_group < 0 || n < FRIT_CUDA_SHARED_LEAST_ROWS || n > FRIT_CUDA_SHARED_MOST_ROWS ||
        n > batch->n_seqs || batch->seqs[n - 1].n_rows != 1 || batch->seqs[n - 1].first_row != n - 1)
        return 0;
    return frit_cuda_find_shared(batch, n, step->shared_group, n_pages, tiles);
}

static void list_arrays(const frit_batch *batch, const frit_cuda_step *step, int32_t n_picks, input_array *arrays)
{
    const int32_t page_stride = step->page_stride;
    const size_t n_shared_rows = step->n_shared_tiles > 0 ? (size_t)step->n_single_rows : 0;
    const size_t n_rows = (size_t)batch->n_rows, n_seqs = (size_t)batch->n_seqs, word = sizeof(int32_t);
    arrays[FRIT_CUDA_TOKENS] = (input_array){batch->tokens, n_rows * word};
    arrays[FRIT_CUDA_POSITIONS] = (input_array){NULL, n_rows * word};
    arrays[FRIT_CUDA_ANGLES] = (input_array){batch->positions, n_rows * word};
    arrays[FRIT_CUDA_OUT_ROWS] = (input_array){batch->out_rows, (size_t)batch->n_outs * word};
    arrays[FRIT_CUDA_SEQ_OF] = (input_array){NULL, n_rows * word};
    arrays[FRIT_CUDA_SEQS] = (input_array){NULL, n_seqs * sizeof(frit_gpu_seq)};
    arrays[FRIT_CUDA_PAGES] = (input_array){NULL, (size_t)batch->n_groups * n_seqs * (size_t)page_stride * word};
    arrays[FRIT_CUDA_ROW_TILES] = (input_array){NULL, (size_t)n_row_tiles_of(batch) * sizeof(frit_row_tile)};
    arrays[FRIT_CUDA_SHARED_TILES] = (input_array){NULL, (size_t)step->n_shared_tiles * sizeof(frit_shared_tile)};
    arrays[FRIT_CUDA_SHARED_PAGES] = (input_array){NULL, n_shared_rows * word};
    arrays[FRIT_CUDA_PICKS] = (input_array){NULL, (size_t)n_picks * sizeof(frit_gpu_pick)};
    arrays[FRIT_CUDA_SCALES] =
        (input_array){batch->scales, batch->scales ? n_seqs * (size_t)batch->n_adapters * sizeof *batch->scales : 0};
    arrays[FRIT_CUDA_LISTS] = (input_array){NULL, n_picks > 0 ? frit_cuda_picks_lists_bytes(batch) : 0};
}

static void write_row_tiles(const frit_batch *batch, frit_row_tile *tiles)
{
    for (int32_t i = n_single_seqs_of(batch); i < batch->n_seqs; i++) {
        const frit_seq *seq = &batch->seqs[i];
        for (int32_t k = 0; k < seq->n_rows; k += FRIT_CUDA_ROWS_OF_TILE) {
            const int32_t row = seq->first_row + k, left = seq->n_rows - k;
            *tiles++ = (frit_row_tile){.row = row,
                                       .n_rows = left < FRIT_CUDA_ROWS_OF_TILE ? left : FRIT_CUDA_ROWS_OF_TILE,
                                       .position = seq->n_past + k,
                                       .seq = i};
        }
    }
}

static void write_positions(const frit_batch *batch, int32_t *positions)
{
    for (int32_t i = 0; i < batch->n_seqs; i++) {
        const frit_seq *seq = &batch->seqs[i];
        for (int32_t k = 0; k < seq->n_rows; k++) positions[seq->first_row + k] = seq->n_past + k;
    }
}

static void write_seqs(const frit_batch *batch, int32_t *seq_of, frit_gpu_seq *seqs)
{
    for (int32_t i = 0; i < batch->n_seqs; i++) {
        const frit_seq *seq = &batch->seqs[i];
        seqs[i] = (frit_gpu_seq){.first_row = seq->first_row,
                                 .n_rows = seq->n_rows,
                                 .n_past = seq->n_past,
                                 .state = seq->state,
                                 .n_copied = seq->n_copied,
                                 .copy_state = seq->copy_state,
                                 .n_source = seq->n_source};
        for (int32_t k = 0; k < seq->n_rows; k++) seq_of[seq->first_row + k] = i;
    }
}

// Rows of the GPU's page tables have a power of two of entries, so a growing text seldom changes the arguments of
// kernels.
static void write_pages(const frit_batch *batch, int32_t page_stride, int32_t *pages)
{
    const int32_t n_tables = batch->n_groups * batch->n_seqs, stride = batch->page_stride;
    for (int32_t i = 0; i < n_tables; i++) {
        int32_t *to = pages + (size_t)i * (size_t)page_stride;
        memcpy(to, batch->pages + (size_t)i * (size_t)stride, (size_t)stride * sizeof *to);
        for (int32_t k = stride; k < page_stride; k++) to[k] = -1;
    }
}

static frit_status reserve_input(frit_cuda_device *d, frit_cuda_flight *flight, size_t n_bytes)
{
    const void *before = flight->input.host;
    FRIT_TRY(frit_cuda_buffer_reserve(d, &flight->input, n_bytes, true, true));
    if (flight->input.host != before) flight->n_sent = 0;
    if (flight->staging_room >= n_bytes) return FRIT_OK;
    for (int i = 0; i < 2; i++) {
        free(flight->staging[i]);
        flight->staging[i] = calloc(flight->input.n_bytes, 1);
    }
    flight->n_sent = 0;
    flight->staging_room = flight->staging[0] && flight->staging[1] ? flight->input.n_bytes : 0;
    return flight->staging_room > 0 ? FRIT_OK : frit_fail_memory(2 * flight->input.n_bytes, "a step's input");
}

// Copies the step's input to pinned memory, skipping cache lines that did not change since the flight's last step.
static void stage_input(frit_cuda_flight *flight, size_t n_bytes)
{
    const uint8_t *now = flight->staging[0], *before = flight->staging[1];
    uint8_t *to = flight->input.host;
    for (size_t at = 0; at < n_bytes; at += LINE)
        if (at + LINE > flight->n_sent || memcmp(now + at, before + at, LINE) != 0) memcpy(to + at, now + at, LINE);
    flight->staging[0] = flight->staging[1];
    flight->staging[1] = (uint8_t *)(uintptr_t)now;
    flight->n_sent = n_bytes;
}

// Uploads the input while the step before runs. The flight's memory is free, because its last step is done.
static frit_status upload_input(frit_cuda_device *d, const frit_cuda_flight *flight, size_t n_bytes)
{
    const frit_cuda_driver *driver = &d->driver;
    int result = driver->copy_up(flight->input.address, flight->input.host, n_bytes, d->uploads);
    if (result == 0) result = driver->event_record(flight->is_uploaded, d->uploads);
    if (result == 0) result = driver->stream_wait_event(d->stream, flight->is_uploaded, 0);
    return frit_cuda_check(driver, result, "copying a step's input to a GPU");
}

frit_status frit_cuda_step_upload(frit_cuda_device *d, frit_cuda_flight *flight, const frit_batch *batch,
                                  frit_cuda_step *step)
{
    enum { LEAST_PAGES = 8 };
    input_array arrays[FRIT_CUDA_STEP_ARRAYS];
    size_t offsets[FRIT_CUDA_STEP_ARRAYS], n_bytes = 0;
    step->page_stride = LEAST_PAGES;
    while (step->page_stride < batch->page_stride) step->page_stride *= 2;
    step->n_row_tiles = n_row_tiles_of(batch);
    step->n_single_rows = step->n_row_tiles > 0 ? n_single_seqs_of(batch) : batch->n_rows;
    int32_t n_pages[FRIT_CUDA_SHARED_MOST_ROWS];
    step->n_shared_tiles = find_shared(batch, step, n_pages, NULL);
    list_arrays(batch, step, flight->n_picks, arrays);
    for (int i = 0; i < FRIT_CUDA_STEP_ARRAYS; i++) {
        offsets[i] = n_bytes;
        n_bytes += (arrays[i].n_bytes + LINE - 1) / LINE * LINE;
    }
    FRIT_TRY(reserve_input(d, flight, n_bytes));
    uint8_t *host = flight->staging[0];
    for (int i = 0; i < FRIT_CUDA_STEP_ARRAYS; i++) {
        step->arrays[i] = flight->input.address + offsets[i];
        if (arrays[i].from) memcpy(host + offsets[i], arrays[i].from, arrays[i].n_bytes);
    }
    write_positions(batch, (int32_t *)(void *)(host + offsets[FRIT_CUDA_POSITIONS]));
    write_seqs(batch, (int32_t *)(void *)(host + offsets[FRIT_CUDA_SEQ_OF]),
               (frit_gpu_seq *)(void *)(host + offsets[FRIT_CUDA_SEQS]));
    write_pages(batch, step->page_stride, (int32_t *)(void *)(host + offsets[FRIT_CUDA_PAGES]));
    write_row_tiles(batch, (frit_row_tile *)(void *)(host + offsets[FRIT_CUDA_ROW_TILES]));
    if (step->n_shared_tiles > 0) {
        find_shared(batch, step, n_pages, (frit_shared_tile *)(void *)(host + offsets[FRIT_CUDA_SHARED_TILES]));
        memcpy(host + offsets[FRIT_CUDA_SHARED_PAGES], n_pages, arrays[FRIT_CUDA_SHARED_PAGES].n_bytes);
    }
    const frit_cuda_picks_staging staging = {.picks = (frit_gpu_pick *)(void *)(host + offsets[FRIT_CUDA_PICKS]),
                                             .lists = host + offsets[FRIT_CUDA_LISTS],
                                             .lists_address = step->arrays[FRIT_CUDA_LISTS]};
    if (flight->n_picks > 0) FRIT_TRY(frit_cuda_picks_write(d, flight, batch, &staging));
    stage_input(flight, n_bytes);
    return upload_input(d, flight, n_bytes);
}
