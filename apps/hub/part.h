// SPDX-License-Identifier: MIT
// hub/part.h: a file that is not whole yet. The bytes lie at their places; a trailer after the last one says how much
// of each chunk is there, so that a process that is killed at any byte leaves a file that another one can finish: bytes
// are written before the trailer counts them.
#pragma once
#include "hub/disk.h"

typedef struct hub_part {
    hub_handle file;
    hub_path path;
    uint64_t n_bytes;   // UINT64_MAX: unknown; it cannot be continued then, and has no trailer
    uint64_t chunk_bytes;
    size_t n_chunks;
    uint64_t *done;        // [n_chunks] bytes at the start of each chunk
    uint64_t n_done;       // their sum
    char validator[256];   // what If-Range gets; "": nothing was said yet
} hub_part;

// Continues what is there if it is a part of that identity (such as an etag; "": of none, which is never continued)
// and size, or begins anew.
hub_status hub_part_open(hub_part *part, const char *path, const char *identity, uint64_t n_bytes);
hub_status hub_part_set_validator(hub_part *part, const char *validator);
hub_status hub_part_restart(hub_part *part);   // nothing is there any more
// Bytes that follow those of this chunk that are there; they may go on into the next ones, if `spans`.
hub_status hub_part_write(hub_part *part, uint64_t at, const void *bytes, size_t n);
hub_status hub_part_read(const hub_part *part, uint64_t at, void *bytes, size_t n);
uint64_t hub_part_chunk_bytes(const hub_part *part, size_t chunk);
uint64_t hub_part_prefix(const hub_part *part);   // bytes from the start that are all there
// Cuts the trailer off and gives the file its name.
hub_status hub_part_finish(hub_part *part, const char *target);
void hub_part_close(hub_part *part);     // keeps the file
void hub_part_discard(hub_part *part);   // removes it
