// SPDX-License-Identifier: MIT
// Writing a step's input.
#include "backend/webgpu/step_input.h"
#include "backend/webgpu/picks.h"
#include "base/grow.h"

#include <string.h>

enum { HEADER = 16, SEQ_WORDS = 8 };
_Static_assert(sizeof(frit_seq) == SEQ_WORDS * 4, "kernels read sequences as eight words");

int64_t frit_webgpu_longest(const frit_batch *batch)
{
    int64_t longest = 1;
    for (int32_t i = 0; i < batch->n_seqs; i++) {
        const frit_seq *seq = &batch->seqs[i];
        const int64_t own = (int64_t)seq->n_past + seq->n_rows, n = own > seq->n_source ? own : seq->n_source;
        if (n > longest) longest = n;
    }
    return longest;
}

static size_t put(uint32_t *to, size_t at, const void *from, size_t n)
{
    if (n > 0) memcpy(to + at, from, n * 4);
    return at + n;
}

static void write_rows(const frit_batch *batch, uint32_t *seq_of, uint32_t *positions)
{
    for (int32_t i = 0; i < batch->n_seqs; i++) {
        const frit_seq *seq = &batch->seqs[i];
        for (int32_t k = 0; k < seq->n_rows; k++) {
            seq_of[seq->first_row + k] = (uint32_t)i;
            positions[seq->first_row + k] = (uint32_t)(seq->n_past + k);
        }
    }
}

// Blocks of consecutive rows of a sequence (kernels/attend_rows.wgsl): first row, number of rows.
static size_t put_blocks(const frit_batch *batch, uint32_t *to)
{
    size_t n = 0;
    for (int32_t i = 0; i < batch->n_seqs; i++) {
        const frit_seq *seq = &batch->seqs[i];
        for (int32_t k = 0; k < seq->n_rows; k += FRIT_WEBGPU_BLOCK_ROWS) {
            const int32_t left = seq->n_rows - k;
            to[n++] = (uint32_t)(seq->first_row + k);
            to[n++] = (uint32_t)(left < FRIT_WEBGPU_BLOCK_ROWS ? left : FRIT_WEBGPU_BLOCK_ROWS);
        }
    }
    return n;
}

frit_status frit_webgpu_step_upload(frit_webgpu_device *d, const frit_webgpu_step *step)
{
    const frit_batch *batch = step->batch;
    const size_t n_rows = (size_t)batch->n_rows, n_seqs = (size_t)batch->n_seqs, n_outs = (size_t)batch->n_outs;
    const size_t n_scales = batch->scales ? n_seqs * (size_t)batch->n_adapters : 0;
    const size_t n_pages = (size_t)batch->n_groups * n_seqs * (size_t)batch->page_stride;
    const size_t n = HEADER + 4 * n_rows + n_outs + SEQ_WORDS * n_seqs + n_pages + 2 * (size_t)step->n_blocks +
                     n_scales + frit_webgpu_picks_words(step);
    FRIT_TRY(FRIT_GROW(d->input, d->input_capacity, n, "the input of a step"));
    FRIT_TRY(frit_webgpu_reserve(d, FRIT_WEBGPU_STEP, n * 4));
    uint32_t *to = d->input, header[HEADER] = {(uint32_t)batch->n_rows, (uint32_t)batch->n_outs,
                                               (uint32_t)batch->n_seqs, (uint32_t)batch->page_stride};
    size_t at = HEADER;
    header[4] = (uint32_t)at, at = put(to, at, batch->tokens, n_rows);
    header[5] = (uint32_t)at, at = put(to, at, batch->positions, n_rows);
    header[6] = (uint32_t)at, at = put(to, at, batch->out_rows, n_outs);
    header[7] = (uint32_t)at;
    header[10] = (uint32_t)(at + n_rows);
    write_rows(batch, to + at, to + at + n_rows);
    at += 2 * n_rows;
    header[8] = (uint32_t)at, at = put(to, at, batch->seqs, SEQ_WORDS * n_seqs);
    header[9] = (uint32_t)at, at = put(to, at, batch->pages, n_pages);
    header[11] = (uint32_t)step->n_parts;
    header[12] = (uint32_t)at;
    if (step->n_blocks > 0) at += put_blocks(batch, to + at);
    header[13] = (uint32_t)at, at = put(to, at, batch->scales, n_scales);
    header[14] = n_scales > 0 ? (uint32_t)batch->n_adapters : 0;
    header[15] = (uint32_t)at;
    at = frit_webgpu_picks_put(step, to, at);
    put(to, 0, header, HEADER);
    return frit_gpu_write(&d->gpu, &d->shared[FRIT_WEBGPU_STEP].buffer, 0, to, at * 4);
}
