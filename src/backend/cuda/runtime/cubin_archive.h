// SPDX-License-Identifier: MIT
// backend/cuda/runtime/cubin_archive.h: a file with compiled kernels of one architecture, sm_90.kernels.
//
// A file has a head, an index and the code of the kernels. The index is sorted by key, and the key of a kernel is a
// hash of sources, defines and architecture (compile.h), so an archive of another version of frit has no kernel that
// this version looks for: the head names the version of the sources, for a clear sentence. The head has a checksum of
// head and index, each entry one of its code. Nothing of a file is trusted.
//
//     FRIT_TRY(frit_cubin_archive_open(&archive, "kernels/sm_90.kernels", &wanted));
//     const uint8_t *code = frit_cubin_archive_find(archive, key, &n_bytes);          // NULL: it has no such kernel
//     frit_cubin_archive_close(archive);
#pragma once
#include "backend/cuda/runtime/cubin_cache.h"

enum { FRIT_CUBIN_GPUS = 16 };

typedef struct frit_cubin_archive_info {   // as in the head
    frit_cubin_key sources;                // of all kernels
    uint32_t arch;
    uint32_t nvrtc_major, nvrtc_minor;           // the newest compiler of a kernel
    uint32_t multiprocessors[FRIT_CUBIN_GPUS];   // ascending: kernels are made for GPUs with these numbers; 0: no more
    uint32_t zero;
} frit_cubin_archive_info;

typedef struct frit_cubin_entry {
    frit_cubin_key key;
    uint64_t offset, n_bytes, checksum;   // of the code in the file
} frit_cubin_entry;

typedef struct frit_cubin_archive frit_cubin_archive;

// Checks head and index of a file. Returns a description of the damage, or NULL. *n: number of entries, which begin at
// bytes + *index_at.
const char *frit_cubin_archive_check(const uint8_t *bytes, uint64_t n_bytes, frit_cubin_archive_info *info, uint64_t *n,
                                     uint64_t *index_at);
// FRIT_E_NOT_FOUND: there is no file; FRIT_E_FORMAT: it is damaged.
frit_status frit_cubin_archive_open(frit_cubin_archive **out, const char *path);
void frit_cubin_archive_close(frit_cubin_archive *archive);   // NULL is fine
const frit_cubin_archive_info *frit_cubin_archive_get_info(const frit_cubin_archive *archive);
const char *frit_cubin_archive_path(const frit_cubin_archive *archive);
// The code of a kernel in the archive's memory. NULL: the archive lacks it, or *is_damaged.
const uint8_t *frit_cubin_archive_find(const frit_cubin_archive *archive, frit_cubin_key key, size_t *n_bytes,
                                       bool *is_damaged);

// Kernels that an archive is written of.
typedef struct frit_cubin_item {
    frit_cubin_key key;
    uint8_t *code;
    size_t n_bytes;
} frit_cubin_item;

typedef struct frit_cubin_list {
    frit_cubin_item *items;   // [n]
    size_t n, capacity;
    uint32_t nvrtc_major, nvrtc_minor;   // the newest compiler of an item
} frit_cubin_list;

// Copies the code. A key that the list has is skipped.
frit_status frit_cubin_list_add(frit_cubin_list *list, frit_cubin_key key, const uint8_t *code, size_t n_bytes);
frit_status frit_cubin_list_add_archive(frit_cubin_list *list, const frit_cubin_archive *archive);
void frit_cubin_list_free(frit_cubin_list *list);
// Sorts the list. The file is complete or unchanged. *n_bytes: its size.
frit_status frit_cubin_archive_write(const char *path, const frit_cubin_archive_info *info, frit_cubin_list *list,
                                     uint64_t *n_bytes);
