// SPDX-License-Identifier: MIT
// backend/store_cache.h: caches stored weights in a folder, so that the next start maps them instead of packing.
//
// Weights that are loaded together are one file with the layout of memory, so processes share its pages:
//
//     head       magic, layout, key, bytes of weights, number of sections, hash of head and hashes
//     hashes     of each section of 4 MiB of weights
//     weights    at a multiple of 4096
//
// The name of a file is its key: a hash of the layout, of the size and modification time of the model's files, and of
// the store's description of its weights: name, type, shape and three samples of the bytes of each matrix. The path of
// the model does not matter, and a changed file or another choice of matrices has another key.
//
// A file is written under a temporary name and renamed when it is complete: readers never see an incomplete file, and
// the last of two writers wins. All hashes are checked whenever a file is opened. An invalid file or folder costs a
// warning, and weights are packed as without a cache. Unused files are not deleted.
#pragma once
#include "base/buf.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/thread/thread.h"

enum { FRIT_STORE_LAYOUT = 2 };   // increase it whenever a store makes different bytes of the same files

typedef struct frit_store_cache {
    char *folder;      // NULL: no cache
    uint64_t source;   // frit_device_options.weights_source
    frit_log log;
} frit_store_cache;

typedef struct frit_store_key {
    uint64_t words[2];
} frit_store_key;

// The key of a description of everything that the stored bytes depend on.
frit_store_key frit_store_key_of(const frit_store_cache *cache, frit_str description);
// Returns the n_bytes weights with this key in a mapped file, which the caller closes. NULL: no file, or a damaged one.
const uint8_t *frit_store_cache_read(const frit_store_cache *cache, frit_pool *pool, frit_store_key key,
                                     uint64_t n_bytes, frit_file **file);
void frit_store_cache_write(const frit_store_cache *cache, frit_pool *pool, frit_store_key key, const uint8_t *weights,
                            uint64_t n_bytes);
// Returns the error in the head or the size of a file, or NULL. Sets *weights_at to the offset of the weights.
const char *frit_store_file_check(const uint8_t *bytes, uint64_t n_file, frit_store_key key, uint64_t n_bytes,
                                  uint64_t *weights_at);
