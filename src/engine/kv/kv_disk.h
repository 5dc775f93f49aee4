// SPDX-License-Identifier: MIT
// engine/kv/kv_disk.h: files of the prefix cache's pages (kv_disk_file.c), and what kv_disk.c asks of them.
//
// A file holds one whole page: of each group that it was kept of, the parts of all devices. Its name is its key, a
// SHA-256 of the key before it and the page's tokens; the first key is of all that pages depend on beside tokens: the
// model, types and layout of the cache, kernels, the salt. So equal names are equal texts, in all processes.
//
//     head (magic, version, key, key before, tokens, groups, bytes, checksum of all) | bytes of each group
//
// A file is written under another name and renamed when it is whole, so processes may share the folder. Damaged files
// are removed. Where all are more than may be, those that were used least lately go; of those used in the same minute
// the ones that are further from the beginning of their text.
#pragma once
#include "base/log.h"
#include "base/sha256.h"
#include "engine/kv/kv_layout.h"

typedef struct frit_kv_key {
    uint8_t bytes[FRIT_SHA256_BYTES];
} frit_kv_key;

typedef struct frit_kv_disk_page {   // on its way to a file or from one
    frit_kv_key key, parent;
    int32_t tokens[FRIT_PAGE_TOKENS];
    int32_t depth;     // pages before it in its text
    uint32_t groups;   // those that it has
    uint8_t *bytes;    // [page_bytes]
} frit_kv_disk_page;

typedef struct frit_kv_disk_files {
    char *folder;
    frit_log log;
    uint64_t max_bytes, n_bytes, n_unseen;   // of all files: at most, when they were counted, written since then
    uint64_t page_bytes, group_at[FRIT_MAX_GROUPS], group_bytes[FRIT_MAX_GROUPS];
    bool fails;   // to write: has been said
} frit_kv_disk_files;

// The key of a page.
frit_kv_key frit_kv_key_after(const frit_kv_key *parent, const int32_t tokens[FRIT_PAGE_TOKENS]);
// What fails costs a warning.
void frit_kv_disk_write(frit_kv_disk_files *files, const frit_kv_disk_page *page);
// Fills groups and bytes in; false if there is no such page.
bool frit_kv_disk_read(frit_kv_disk_files *files, frit_kv_disk_page *page);
// Removes files until the others are within max_bytes.
void frit_kv_disk_trim(frit_kv_disk_files *files);
