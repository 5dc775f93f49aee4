// SPDX-License-Identifier: MIT
// text/tokenizer/pretok.h: the pre-tokenizers that GGUF files name. A row has names, and regexes that are applied in
// sequence: each splits every word into its matches and the text between them. The regexes are those that the models
// publish.
#pragma once
#include "text/tokenizer/pipeline.h"

enum {
    FRIT_PRETOK_IGNORE_MERGES = 1,   // a word that is a token as a whole is not merged
    FRIT_PRETOK_ADD_BOS = 2,         // a BOS is added unless the file says otherwise
    FRIT_PRETOK_ADD_SEP = 4,
    FRIT_PRETOK_RAW = 8,              // merges start from characters, not from byte letters
    FRIT_PRETOK_ESCAPE_SPACES = 16,   // spaces become U+2581 first
    FRIT_PRETOK_NO_BOS = 32,          // no BOS unless the file names one
    FRIT_PRETOK_NEWLINES = 64,        // a sequence of newlines that is a token is not merged
};

enum { FRIT_PRETOK_MAX_REGEXES = 6 };

typedef struct frit_pretok_row {
    const char *names;   // separated by spaces
    unsigned flags;
    const char *regexes[FRIT_PRETOK_MAX_REGEXES];
} frit_pretok_row;

extern const frit_pretok_row frit_pretok_rows[];
extern const size_t frit_pretok_n_rows;

const frit_pretok_row *frit_pretok_find(const char *name);   // NULL if unknown
// Adds the row's cuts to pipeline->cuts, which must have space for them.
frit_status frit_pretok_add(const frit_pretok_row *row, frit_pipeline *pipeline);
// The regex of the pre-tokenizer "gpt-2".
const char *frit_pretok_gpt2(void);
