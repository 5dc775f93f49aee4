// SPDX-License-Identifier: MIT
// text/pretok.h: cuts text into words before byte-level BPE. Merges never cross the border of a word.
//
// A pre-tokenizer is a row of pretok_rows.c: names, and regexes that are applied one after the other. Each regex cuts
// every piece so far into its matches and what lies between them. The regexes are those that the models publish.
#pragma once
#include "base/buf.h"

enum {
    FRIT_PRETOK_IGNORE_MERGES = 1,   // a word that is a token as a whole is not merged
    FRIT_PRETOK_ADD_BOS = 2,         // a BOS is added unless the file says otherwise
    FRIT_PRETOK_ADD_SEP = 4,
    FRIT_PRETOK_RAW = 8,              // merges start from characters, not from byte letters
    FRIT_PRETOK_ESCAPE_SPACES = 16,   // spaces become U+2581 first
    FRIT_PRETOK_NO_BOS = 32,          // no BOS unless the file names one
    FRIT_PRETOK_NEWLINES = 64,        // a run of newlines that is a token is not merged
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

typedef struct frit_pretok {
    struct pcre2_real_code_8 *codes[FRIT_PRETOK_MAX_REGEXES];
    int n;
} frit_pretok;

frit_status frit_pretok_init(frit_pretok *pretok, const frit_pretok_row *row);
void frit_pretok_deinit(frit_pretok *pretok);

typedef struct frit_words {   // word i is text[ends[i - 1], ends[i])
    size_t *ends;
    size_t n, capacity;
    bool failed;
} frit_words;

// `text` must be valid UTF-8. FRIT_E_LIMIT if a regex gives up.
frit_status frit_pretok_split(const frit_pretok *pretok, frit_str text, frit_words *out);
void frit_words_free(frit_words *words);
