// SPDX-License-Identifier: MIT
// hub/partial.h: an incomplete file. Bytes are written at their final positions. A trailer after the last byte has the
// number of bytes present in each chunk. Bytes are written before the trailer counts them, so if a process is killed at
// any time, another process can complete the file.
#pragma once
#include "hub/disk.h"

typedef struct hub_partial {
    hub_handle file;
    hub_path path;
    uint64_t n_bytes;   // UINT64_MAX: unknown; the file then has no trailer and cannot be continued
    uint64_t chunk_bytes;
    size_t n_chunks;
    uint64_t *done;        // [n_chunks] bytes at the start of each chunk
    uint64_t n_done;       // their sum
    char validator[256];   // value for If-Range; "": unknown yet
} hub_partial;

// Continues an existing partial file with this identity (such as an etag) and size; otherwise begins anew. An empty
// identity is never continued.
hub_status hub_partial_open(hub_partial *partial, const char *path, const char *identity, uint64_t n_bytes);
hub_status hub_partial_set_validator(hub_partial *partial, const char *validator);
hub_status hub_partial_restart(hub_partial *partial);   // discards all bytes
// Writes bytes after those of this chunk that are present. With `spans` they may continue into the next chunks.
hub_status hub_partial_write(hub_partial *partial, uint64_t at, const void *bytes, size_t n);
hub_status hub_partial_read(const hub_partial *partial, uint64_t at, void *bytes, size_t n);
uint64_t hub_partial_chunk_bytes(const hub_partial *partial, size_t chunk);
uint64_t hub_partial_prefix(const hub_partial *partial);   // length of the complete prefix of the file
// Removes the trailer and renames the file.
hub_status hub_partial_finish(hub_partial *partial, const char *target);
void hub_partial_close(hub_partial *partial);    // keeps the file
void hub_partial_remove(hub_partial *partial);   // removes it
