// SPDX-License-Identifier: MIT
// backend/store_cache.h: stored weights kept in a folder, so that the next start maps them instead of packing.
//
// What is loaded together lies in one file, as it lies in memory, so processes share its pages:
//
//     head       magic, layout, key, bytes of weights, number of sections, hash of head and hashes
//     hashes     of each section of 4 MiB of weights
//     weights    from a multiple of 4096 on
//
// The name is the key: a hash of the layout, of the size and time of change of the model's files, and of what the store
// says of its weights: each matrix's name, type, shape and three samples of its bytes. So neither path nor folder of
// the model matter, and a changed file has another key. Another choice of matrices is another list.
//
// A file is written under another name and renamed when it is whole: readers never see half of one, and of two
// writers the last one stays. All hashes are checked whenever a file is opened. Whatever is wrong with it or with
// the folder costs a warning, and weights are packed as without a cache. Files that are no longer used stay.
#pragma once
#include "base/buf.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/thread/thread.h"

enum { FRIT_STORE_LAYOUT = 2 };   // changes whenever a store makes other bytes of the same files

typedef struct frit_store_cache {
    char *folder;      // NULL: nothing is kept
    uint64_t source;   // what the engine knows of the model's files
    frit_log log;
} frit_store_cache;

typedef struct frit_store_key {
    uint64_t words[2];
} frit_store_key;

// Of a description of all that the stored bytes depend on.
frit_store_key frit_store_key_of(const frit_store_cache *cache, frit_str description);
// The weights with this key, n_bytes, in a mapped file that is the caller's. NULL: there are none, or damaged ones.
const uint8_t *frit_store_cache_read(const frit_store_cache *cache, frit_pool *pool, frit_store_key key,
                                     uint64_t n_bytes, frit_file **file);
void frit_store_cache_write(const frit_store_cache *cache, frit_pool *pool, frit_store_key key, const uint8_t *weights,
                            uint64_t n_bytes);
// What is wrong with the head or the size of a file; NULL: nothing. *weights_at: where they begin.
const char *frit_store_file_check(const uint8_t *bytes, uint64_t n_file, frit_store_key key, uint64_t n_bytes,
                                  uint64_t *weights_at);
