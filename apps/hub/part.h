// SPDX-License-Identifier: MIT
// hub/part.h: an incomplete file. Bytes are written at their final positions. A trailer after the last byte has the
// number of bytes present in each chunk. Bytes are written before the trailer counts them, so if a process is killed at
// any time, another process can complete the file.
#pragma once
#include "hub/disk.h"

typedef struct hub_part {
    hub_handle file;
    hub_path path;
    uint64_t n_bytes;   // UINT64_MAX: unknown; the file then has no trailer and cannot be continued
    uint64_t chunk_bytes;
    size_t n_chunks;
    uint64_t *done;        // [n_chunks] bytes at the start of each chunk
    uint64_t n_done;       // their sum
    char validator[256];   // value for If-Range; "": unknown yet
} hub_part;

// Continues an existing part with this identity (such as an etag) and size; otherwise begins anew. An empty identity is
// never continued.
hub_status hub_part_open(hub_part *part, const char *path, const char *identity, uint64_t n_bytes);
hub_status hub_part_set_validator(hub_part *part, const char *validator);
hub_status hub_part_restart(hub_part *part);   // discards all bytes
// Writes bytes after those of this chunk that are present. With `spans` they may continue into the next chunks.
hub_status hub_part_write(hub_part *part, uint64_t at, const void *bytes, size_t n);
hub_status hub_part_read(const hub_part *part, uint64_t at, void *bytes, size_t n);
uint64_t hub_part_chunk_bytes(const hub_part *part, size_t chunk);
uint64_t hub_part_prefix(const hub_part *part);   // length of the complete prefix of the file
// Removes the trailer and renames the file.
hub_status hub_part_finish(hub_part *part, const char *target);
void hub_part_close(hub_part *part);    // keeps the file
void hub_part_remove(hub_part *part);   // removes it
