// SPDX-License-Identifier: MIT
// engine/kv/kv_disk.h: files with pages of the prefix cache (kv_disk_file.c), for kv_disk.c.
//
// A file holds one whole page: the storage of all devices, for each group that was saved. Its name is its key: a
// SHA-256 of the previous page's key and the page's tokens. The first key is a hash of all that pages depend on beside
// tokens: model, types and layout of the cache, kernels, salt. Equal names mean equal texts, in all processes.
//
//     head (magic, version, key, previous key, tokens, groups, bytes, checksum of all) | bytes of each group
//
// A file is written under another name and then renamed, so processes may share the folder. Damaged files are removed.
// If all files together exceed the limit, the least recently used ones are removed. Among files used in the same
// minute, the ones further from the beginning of their text go first.
#pragma once
#include "base/log.h"
#include "base/sha256.h"
#include "engine/kv/kv_layout.h"

typedef struct frit_kv_key {
    uint8_t bytes[FRIT_SHA256_BYTES];
} frit_kv_key;

typedef struct frit_kv_disk_page {   // a page on its way to or from a file
    frit_kv_key key, parent;
    int32_t tokens[FRIT_PAGE_TOKENS];
    int32_t depth;     // number of pages before it in its text
    uint32_t groups;   // bit set of groups that the page has
    uint8_t *bytes;    // [page_bytes]
} frit_kv_disk_page;

typedef struct frit_kv_disk_files {
    char *folder;
    frit_log log;
    uint64_t max_bytes, n_bytes, n_unseen;   // bytes of all files: limit, at the last count, written since
    uint64_t page_bytes, group_at[FRIT_MAX_GROUPS], group_bytes[FRIT_MAX_GROUPS];
    bool fails;   // the last write failed, and a warning was given
} frit_kv_disk_files;

// Returns the key of a page after the page with key `parent`.
frit_kv_key frit_kv_key_after(const frit_kv_key *parent, const int32_t tokens[FRIT_PAGE_TOKENS]);
// Failures are only logged.
void frit_kv_disk_write(frit_kv_disk_files *files, const frit_kv_disk_page *page);
// Sets the page's groups and bytes. False if there is no such file.
bool frit_kv_disk_read(frit_kv_disk_files *files, frit_kv_disk_page *page);
// Removes files until the rest is within max_bytes.
void frit_kv_disk_trim(frit_kv_disk_files *files);
