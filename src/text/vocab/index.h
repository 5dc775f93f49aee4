// SPDX-License-Identifier: MIT
// text/vocab/index.h: from the bytes of a piece to its id, fast enough for a million look-ups per vocabulary and text.
//
//     bucket   | word: the bytes themselves, or a hash if there are more than 8 | length | id |
//
// Short pieces are compared in their bucket, longer ones with the piece. The hash is seeded, so a file cannot choose
// pieces that collide.
#pragma once
#include "base/buf.h"

typedef struct frit_index {
    struct frit_index_bucket *buckets;
    size_t n_buckets, n;
    uint64_t seed;
    const char *pieces;   // frit_str i lies at pieces + i * stride
    size_t stride;
} frit_index;

// Makes an index with space for n pieces, which are borrowed. False: out of memory.
bool frit_index_init(frit_index *index, size_t n, const frit_str *pieces, size_t stride);
// Adds piece `id` unless an equal piece exists. Returns the id of the existing or new piece. At most n pieces may be
// added.
int32_t frit_index_add(frit_index *index, int32_t id);
// Adds pieces 0 to n - 1 except empty ones and those for which `skip` (may be NULL) returns true. Returns the number of
// pieces that existed already.
size_t frit_index_add_all(frit_index *index, int32_t n, bool (*skip)(const void *ctx, int32_t id), const void *ctx,
                          int32_t *first_equal);
int32_t frit_index_find(const frit_index *index, frit_str key);   // -1: absent
// Looks up many keys at once, which is faster because the memory accesses overlap.
void frit_index_find_all(const frit_index *index, const frit_str *keys, size_t n, int32_t *ids);
void frit_index_deinit(frit_index *index);
uint64_t frit_hash_bytes(uint64_t seed, frit_str key);
