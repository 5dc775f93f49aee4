// SPDX-License-Identifier: MIT
// convert/importance.h: importance files ("imatrix"). For each column of each matrix they have the sum of squares of
// its inputs over a text, and the number of tokens. Encoders weight errors by the mean.
//
// There are two formats of llama.cpp:
//
//     GGUF      NAME.in_sum2 f32 [counts, values / counts], NAME.counts f32 [counts, 1]; imatrix.chunk_count and
//               imatrix.chunk_size
//     legacy    i32 entries, then each: i32 length, name, i32 calls, i32 n, f32 [n] means times calls; i32 chunks, text
//
// A matrix of experts has a count for each expert, which shows experts that no token reached. Matrices of latent
// attention have one count for all heads.
#pragma once
#include "base/arena.h"
#include "base/map.h"
#include "format/meta.h"
#include "frit_tools.h"

typedef struct frit_importance_entry {
    const char *name;   // of the matrix: "blk.0.attn_q.weight"
    size_t n_values, n_counts;
    double *sums;      // [n_values]; legacy: means times calls
    int64_t *counts;   // [n_counts]; legacy: calls
} frit_importance_entry;

struct frit_importance {
    frit_importance_entry *entries;
    size_t n, capacity;
    frit_map index;   // name -> index in `entries`
    bool is_legacy;
    int64_t n_chunks, chunk_size;   // chunk_size 0: the file does not say
    const char *dataset;            // name of the text, without folders; NULL: none
    frit_arena arena;
};

// Reads an importance file. FRIT_E_FORMAT for files that are cut or have numbers that are not sums of squares.
frit_status frit_importance_open(frit_importance *importance, const char *path);   // fills a struct of zeros
frit_status frit_importance_parse(frit_importance *importance, const char *path, const void *bytes, size_t n_bytes);
void frit_importance_deinit(frit_importance *importance);
frit_importance_entry *frit_importance_find(const frit_importance *importance, const char *name);   // NULL: none
// Adds an entry of zeros. FRIT_E_FORMAT for a name that exists.
frit_status frit_importance_add(frit_importance *importance, const char *name, size_t n_values, size_t n_counts,
                                frit_importance_entry **out);
// Like frit_importance_write as GGUF, with additional metadata `more`; NULL: none. Allows importance without entries.
frit_status frit_importance_write_with(const frit_importance *importance, const char *path,
                                       const frit_importance_file *options, const frit_meta *more);
// Returns the name of a file without its folders.
const char *frit_importance_file_name(const char *path);
// Computes the means [n_values]. An expert that no token reached gets 1.
void frit_importance_means(const frit_importance *importance, const frit_importance_entry *entry, float *means);
