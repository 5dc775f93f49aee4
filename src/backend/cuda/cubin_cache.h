// SPDX-License-Identifier: MIT
// backend/cuda/cubin_cache.h: compiled kernels kept in a folder, so that the next start loads them.
//
// One file each, named by the key, a hash of all that the code depends on: sources, defines, kind of GPU, compiler
// and driver. A file begins with a head of 48 bytes (magic, layout, key, number of bytes, hash of all that and of
// the code); it is written under another name and renamed when it is whole, so readers never see a part, and of
// several writers the last one stays. A damaged file costs a warning and is compiled again, and so does a folder
// that cannot be used.
#pragma once
#include "base/buf.h"
#include "base/log.h"

typedef struct frit_cubin_key {
    uint64_t words[2];
} frit_cubin_key;

frit_cubin_key frit_cubin_key_of(frit_str description);
// The code, malloc'd; NULL: none is kept, or it is damaged.
uint8_t *frit_cubin_cache_read(const char *folder, const frit_log *log, frit_cubin_key key, size_t *n_bytes);
void frit_cubin_cache_write(const char *folder, const frit_log *log, frit_cubin_key key, const uint8_t *code, size_t n);
// What is wrong with the bytes of a file; NULL: nothing. *code_at: where the code begins.
const char *frit_cubin_file_check(const uint8_t *bytes, size_t n, frit_cubin_key key, size_t *code_at);
