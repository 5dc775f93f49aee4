// SPDX-License-Identifier: MIT
// backend/cuda/runtime/cubin_cache.h: a folder of compiled kernels, so that the next start need not compile.
//
// Each kernel has a file, named by its key: a hash of sources, defines and kind of GPU. A file begins with a header of
// 56 bytes (magic, layout, key, maker, number of bytes, hash of header and code). The maker is the version of compiler
// and driver: a kernel of another maker is compiled again. Without a compiler kernels of any maker are used, so a
// folder can be filled on one machine for others. Files are written under a temporary name and renamed, so readers
// never see part of one; of several writers the last one wins. A damaged file, or a folder that cannot be used, costs a
// warning and a compilation.
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
// The code, malloc'd; NULL: there is no file, it is damaged, or it has another maker.
uint8_t *frit_cubin_cache_read(const frit_cubin_cache *cache, frit_cubin_key key, size_t *n_bytes);
void frit_cubin_cache_write(const frit_cubin_cache *cache, frit_cubin_key key, const uint8_t *code, size_t n);
// Checks the bytes of a file. Returns a description of the damage, or NULL. *code_at: offset of the code.
const char *frit_cubin_file_check(const uint8_t *bytes, size_t n, frit_cubin_key key, size_t *code_at);
