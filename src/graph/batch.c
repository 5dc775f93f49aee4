// SPDX-License-Identifier: MIT
// The input of a step as one block: the batch without its pointers, then its arrays.
#include "graph/batch.h"

#include <string.h>

enum { TOKENS, POSITIONS, OUT_ROWS, SEQS, PAGES, SCALES, PICKS, BIASES, COUNTS, MASKS, SAVED, N_ARRAYS };

typedef struct array {
    const void *at;
    uint64_t n_bytes;
} array;

static void list_arrays(const frit_batch *b, array arrays[N_ARRAYS])
{
    const frit_pick_lists *l = &b->lists;
    const uint64_t n_rows = (uint64_t)b->n_rows, n_seqs = (uint64_t)b->n_seqs;
    const uint64_t n_pages = (uint64_t)b->n_groups * n_seqs * (uint64_t)b->page_stride;
    const uint64_t n_masks = (uint64_t)l->n_masks * (uint64_t)frit_pick_mask_words(l->n_vocab);
    arrays[TOKENS] = (array){b->tokens, n_rows * sizeof *b->tokens};
    arrays[POSITIONS] = (array){b->positions, n_rows * sizeof *b->positions};
    arrays[OUT_ROWS] = (array){b->out_rows, (uint64_t)b->n_outs * sizeof *b->out_rows};
    arrays[SEQS] = (array){b->seqs, n_seqs * sizeof *b->seqs};
    arrays[PAGES] = (array){b->pages, n_pages * sizeof *b->pages};
    arrays[SCALES] = (array){b->scales, b->scales ? n_seqs * (uint64_t)b->n_adapters * sizeof *b->scales : 0};
    arrays[PICKS] = (array){b->picks, (uint64_t)b->n_picks * sizeof *b->picks};
    arrays[BIASES] = (array){l->biases, (uint64_t)l->n_biases * sizeof *l->biases};
    arrays[COUNTS] = (array){l->counts, (uint64_t)l->n_counts * sizeof *l->counts};
    arrays[MASKS] = (array){l->masks, n_masks * sizeof *l->masks};
    arrays[SAVED] =
        (array){NULL, ((uint64_t)l->n_biases + (uint64_t)l->n_counts) * sizeof *l->saved};   // scratch, not copied
}

static uint64_t align_array(uint64_t n_bytes)
{
    return (n_bytes + FRIT_BATCH_ALIGN - 1) / FRIT_BATCH_ALIGN * FRIT_BATCH_ALIGN;
}

uint64_t frit_batch_bytes(const frit_batch *batch)
{
    array arrays[N_ARRAYS];
    uint64_t n_bytes = align_array(sizeof *batch);
    list_arrays(batch, arrays);
    for (int i = 0; i < N_ARRAYS; i++) n_bytes += align_array(arrays[i].n_bytes);
    return n_bytes;
}

void frit_batch_pack(void *block, const frit_batch *batch)
{
    array arrays[N_ARRAYS];
    uint8_t *at = block;
    frit_batch header = *batch;
    if (!batch->scales) header.n_adapters = 0;
    header.tokens = header.positions = header.out_rows = header.pages = NULL;
    header.seqs = NULL;
    header.scales = NULL;
    header.picks = NULL;
    header.lists = (frit_pick_lists){.n_vocab = batch->lists.n_vocab,
                                     .n_biases = batch->lists.n_biases,
                                     .n_counts = batch->lists.n_counts,
                                     .n_masks = batch->lists.n_masks,
                                     .n_tops = batch->lists.n_tops};
    memcpy(at, &header, sizeof header);
    at += align_array(sizeof header);
    list_arrays(batch, arrays);
    for (int i = 0; i < N_ARRAYS; at += align_array(arrays[i++].n_bytes))
        if (arrays[i].at && arrays[i].n_bytes > 0) memcpy(at, arrays[i].at, (size_t)arrays[i].n_bytes);
}

frit_batch frit_batch_view(void *block)
{
    array arrays[N_ARRAYS];
    void *found[N_ARRAYS];
    frit_batch b;
    memcpy(&b, block, sizeof b);
    uint8_t *at = (uint8_t *)block + align_array(sizeof b);
    const bool has_scales = b.n_adapters > 0;
    b.scales = has_scales ? block : NULL;   // any pointer that is not NULL: list_arrays needs the size only
    list_arrays(&b, arrays);
    for (int i = 0; i < N_ARRAYS; at += align_array(arrays[i++].n_bytes)) found[i] = at;
    b.tokens = found[TOKENS];
    b.positions = found[POSITIONS];
    b.out_rows = found[OUT_ROWS];
    b.seqs = found[SEQS];
    b.pages = found[PAGES];
    b.scales = has_scales ? found[SCALES] : NULL;
    b.picks = found[PICKS];
    b.lists.biases = found[BIASES];
    b.lists.counts = found[COUNTS];
    b.lists.masks = found[MASKS];
    b.lists.saved = found[SAVED];
    return b;
}
