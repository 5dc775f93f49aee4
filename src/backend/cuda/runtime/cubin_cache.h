// SPDX-License-Identifier: MIT
// backend/cuda/runtime/cubin_cache.h: compiled kernels kept in a folder, so that the next start loads them.
//
// One file each, named by the key, a hash of what is compiled: sources, defines, kind of GPU. A file begins with a head
// of 56 bytes (magic, layout, key, maker, number of bytes, hash of all that and of the code). The maker is compiler and
// driver: where they are others, kernels are compiled again; without a compiler any maker's are taken, so a folder can
// be filled on one machine for others. A file is written under another name and renamed when it is whole, so readers
// never see a part, and of several writers the last one stays. A damaged file costs a warning and is compiled again,
// and so does a folder that cannot be used.
#pragma once
#include "base/buf.h"
#include "base/log.h"

typedef struct frit_cubin_key {
    uint64_t words[2];
} frit_cubin_key;

typedef struct frit_cubin_cache {
    const char *folder;
    uint64_t maker;   // 0: any
    const frit_log *log;
} frit_cubin_cache;

frit_cubin_key frit_cubin_key_of(frit_str description);
// The code, malloc'd; NULL: none is kept, it is damaged, or another maker's.
uint8_t *frit_cubin_cache_read(const frit_cubin_cache *cache, frit_cubin_key key, size_t *n_bytes);
void frit_cubin_cache_write(const frit_cubin_cache *cache, frit_cubin_key key, const uint8_t *code, size_t n);
// What is wrong with the bytes of a file; NULL: nothing. *code_at: where the code begins.
const char *frit_cubin_file_check(const uint8_t *bytes, size_t n, frit_cubin_key key, size_t *code_at);
