// SPDX-License-Identifier: MIT
// backend/cpu/pack_cache.h: packed weights kept in a folder, so that the next start maps them instead of packing.
//
// What is packed together lies in one file, as it lies in memory, so processes share its pages:
//
//     head       magic, layout, key, bytes of panels, number of sections, hash of head and hashes
//     hashes     of each section of 4 MiB of panels
//     panels     from a multiple of 4096 on
//
// The name is the key: a hash of the layout, of the size and time of change of the model's files, and of each matrix's
// name, type, shape and three samples of its bytes. So neither path nor folder of the model matter, and a changed file
// has another key. No instruction set is part of it: panels are the same for all, and another choice of matrices is
// another list.
//
// A file is written under another name and renamed when it is whole: readers never see half of one, and of two
// writers the last one stays. All hashes are looked at whenever a file is opened. Whatever is wrong with it or with
// the folder costs a warning, and weights are packed as without a cache. Nobody removes files that are no longer used.
#pragma once
#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"
#include "base/thread.h"

enum { FRIT_PACK_LAYOUT = 1 };   // changes whenever panels of the same weights do

typedef struct frit_pack_cache {
    char *folder;      // NULL: nothing is kept
    uint64_t source;   // what the engine knows of the model's files
    frit_log log;
} frit_pack_cache;

typedef struct frit_pack_key {
    uint64_t words[2];
} frit_pack_key;

// Of a description of all that panels depend on.
frit_pack_key frit_pack_key_of(const frit_pack_cache *cache, frit_str description);
// The panels with this key, n_bytes, in a mapped file that is the caller's. NULL: there are none, or damaged ones.
const uint8_t *frit_pack_cache_read(const frit_pack_cache *cache, frit_pool *pool, frit_pack_key key, uint64_t n_bytes,
                                    frit_file **file);
void frit_pack_cache_write(const frit_pack_cache *cache, frit_pool *pool, frit_pack_key key, const uint8_t *panels,
                           uint64_t n_bytes);
// What is wrong with the head or the size of a file; NULL: nothing. *panels_at: where they begin.
const char *frit_pack_file_check(const uint8_t *bytes, uint64_t n_file, frit_pack_key key, uint64_t n_bytes,
                                 uint64_t *panels_at);
