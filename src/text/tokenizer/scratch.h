// SPDX-License-Identifier: MIT
// text/tokenizer/scratch.h: the scratch memory of one call of the encoder.
//
// The cache has the output positions of the tokens of earlier words. A cache belongs to one text, because its words are
// borrowed from the text.
#pragma once
#include "text/tokenizer/merge.h"
#include "text/tokenizer/tokenizer.h"

typedef struct frit_cached_word {
    uint64_t hash;
    const char *word;   // NULL: empty
    uint32_t len;
    uint32_t n_ids;
    size_t ids;   // index in the output
} frit_cached_word;

struct frit_scratch {
    frit_halt halt;
    frit_flow flow;
    frit_merger merger;
    void *cells;   // memory of the tokenizer's kind, grown by frit_scratch_cells
    size_t n_cell_bytes;
    frit_cached_word *cache;
    size_t cache_mask;
};

// `how` must outlive the scratch.
frit_status frit_scratch_init(frit_scratch *scratch, const frit_encoding *how);
void frit_scratch_deinit(frit_scratch *scratch);
// At least n_bytes of memory, not zeroed; NULL if memory is short.
void *frit_scratch_cells(frit_scratch *scratch, size_t n_bytes);

// Encodes the words of one text.
frit_status frit_scratch_encode(frit_scratch *scratch, const frit_tokenizer *tokenizer, const frit_words *words,
                                frit_ids *out);
