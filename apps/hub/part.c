// SPDX-License-Identifier: MIT
// Incomplete files.
#include "hub/part.h"

#include "hub/disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct trailer {
    char magic[8];
    uint64_t n_bytes, chunk_bytes, n_chunks;
    char identity[256], validator[256];
} trailer;

static const char magic[8] = {'F', 'R', 'I', 'T', 'P', 'A', 'R', '1'};

// Adds to an error about disk space how the download can be continued.
static hub_status tell_rest(hub_status status)
{
    if (!hub_error_is_full()) return status;
    return hub_fail(status, "%s; what is there is kept, and the same command continues it", hub_error());
}

static hub_status write_at(const hub_part *part, uint64_t at, const void *bytes, size_t n)
{
    const hub_status status = hub_write_at(part->file, part->path.text, at, bytes, n);
    return status == HUB_OK ? status : tell_rest(status);
}

static hub_status resize(const hub_part *part, uint64_t n_bytes)
{
    const hub_status status = hub_resize(part->file, part->path.text, n_bytes);
    return status == HUB_OK ? status : tell_rest(status);
}

hub_status hub_part_read(const hub_part *part, uint64_t at, void *bytes, size_t n)
{
    return hub_read_at(part->file, part->path.text, at, bytes, n);
}

static bool is_sized(const hub_part *part)
{
    return part->n_bytes != UINT64_MAX;
}

// A chunk size with enough chunks to keep all connections busy, but not so many that requests take time.
static uint64_t chunk_size(uint64_t n_bytes)
{
    enum { LEAST = 512 << 10, MOST = 64 << 20 };
    uint64_t size = n_bytes / 32 & ~(uint64_t)0xffff;
    if (size < LEAST) size = LEAST;
    return size > MOST ? MOST : size;
}

uint64_t hub_part_chunk_bytes(const hub_part *part, size_t chunk)
{
    if (!is_sized(part)) return UINT64_MAX;
    const uint64_t begin = chunk * part->chunk_bytes;
    return part->n_bytes - begin < part->chunk_bytes ? part->n_bytes - begin : part->chunk_bytes;
}

uint64_t hub_part_prefix(const hub_part *part)
{
    uint64_t n = 0;
    for (size_t c = 0; c < part->n_chunks; c++) {
        n += part->done[c];
        if (part->done[c] < hub_part_chunk_bytes(part, c)) break;
    }
    return n;
}

static bool read_trailer(hub_part *part, const char *identity)
{
    trailer t;
    const size_t n_table = part->n_chunks * sizeof *part->done;
    if (!identity[0] || !is_sized(part) || hub_file_bytes(part->path.text) != part->n_bytes + sizeof t + n_table)
        return false;
    if (hub_part_read(part, part->n_bytes, &t, sizeof t) != HUB_OK) return false;
    if (memcmp(t.magic, magic, sizeof magic) != 0 || t.n_bytes != part->n_bytes || t.chunk_bytes != part->chunk_bytes ||
        t.n_chunks != part->n_chunks)
        return false;
    if (strncmp(t.identity, identity, sizeof t.identity - 1) != 0 || t.validator[sizeof t.validator - 1]) return false;
    if (hub_part_read(part, part->n_bytes + sizeof t, part->done, n_table) != HUB_OK) return false;
    for (size_t c = 0; c < part->n_chunks; c++) {
        if (part->done[c] > hub_part_chunk_bytes(part, c)) return false;
        part->n_done += part->done[c];
    }
    memcpy(part->validator, t.validator, sizeof t.validator);
    return true;
}

static hub_status write_trailer(hub_part *part, const char *identity)
{
    trailer t = {.n_bytes = part->n_bytes, .chunk_bytes = part->chunk_bytes, .n_chunks = part->n_chunks};
    memset(part->done, 0, part->n_chunks * sizeof *part->done);
    part->n_done = 0;
    part->validator[0] = 0;
    const hub_status emptied = resize(part, 0);
    if (emptied != HUB_OK || !is_sized(part)) return emptied;
    memcpy(t.magic, magic, sizeof magic);
    snprintf(t.identity, sizeof t.identity, "%s", identity);
    const hub_status status = write_at(part, part->n_bytes, &t, sizeof t);
    if (status != HUB_OK) return status;
    return write_at(part, part->n_bytes + sizeof t, part->done, part->n_chunks * sizeof *part->done);
}

hub_status hub_part_open(hub_part *part, const char *path, const char *identity, uint64_t n_bytes)
{
    *part = (hub_part){.file = HUB_CLOSED, .n_bytes = n_bytes, .n_chunks = 1, .chunk_bytes = UINT64_MAX};
    hub_status status = hub_path_set(&part->path, "%s", path);
    if (status == HUB_OK) status = hub_make_parents(path);
    if (status != HUB_OK) return status;
    if (is_sized(part)) {
        if (n_bytes > (uint64_t)1 << 50)
            return hub_fail(HUB_E_DATA, "%s: the server says that it has %llu bytes, which no file has", path,
                            (unsigned long long)n_bytes);
        part->chunk_bytes = chunk_size(n_bytes);
        part->n_chunks = (size_t)(n_bytes / part->chunk_bytes + (n_bytes % part->chunk_bytes != 0));
        if (part->n_chunks == 0) part->n_chunks = 1;
    }
    part->done = calloc(part->n_chunks, sizeof *part->done);
    if (!part->done) return hub_fail(HUB_E_MEMORY, "out of memory");
    status = hub_open(path, true, &part->file);
    if (status == HUB_OK && !read_trailer(part, identity)) status = write_trailer(part, identity);
    if (status != HUB_OK) hub_part_close(part);
    return status;
}

hub_status hub_part_set_validator(hub_part *part, const char *validator)
{
    snprintf(part->validator, sizeof part->validator, "%s", validator);
    if (!is_sized(part)) return HUB_OK;
    return write_at(part, part->n_bytes + offsetof(trailer, validator), part->validator, sizeof part->validator);
}

hub_status hub_part_restart(hub_part *part)
{
    memset(part->done, 0, part->n_chunks * sizeof *part->done);
    part->n_done = 0;
    if (!is_sized(part)) return resize(part, 0);
    const hub_status status = hub_part_set_validator(part, "");
    if (status != HUB_OK) return status;
    return write_at(part, part->n_bytes + sizeof(trailer), part->done, part->n_chunks * sizeof *part->done);
}

hub_status hub_part_write(hub_part *part, uint64_t at, const void *bytes, size_t n)
{
    const char *from = bytes;
    hub_status status = HUB_OK;
    while (n > 0 && status == HUB_OK) {
        const size_t chunk = is_sized(part) ? (size_t)(at / part->chunk_bytes) : 0;
        if (chunk >= part->n_chunks || part->done[chunk] != at - (is_sized(part) ? chunk * part->chunk_bytes : 0))
            return hub_fail(HUB_E_DATA, "%s: bytes come for a place that is filled, or not next", part->path.text);
        const uint64_t room = hub_part_chunk_bytes(part, chunk) - part->done[chunk];
        const size_t n_now = n < room ? n : (size_t)room;
        if (n_now == 0) return hub_fail(HUB_E_DATA, "%s: more bytes come than the file has", part->path.text);
        status = write_at(part, at, from, n_now);
        if (status != HUB_OK) break;
        part->done[chunk] += n_now;
        part->n_done += n_now;
        if (is_sized(part))
            status = write_at(part, part->n_bytes + sizeof(trailer) + chunk * sizeof *part->done, &part->done[chunk],
                              sizeof *part->done);
        from += n_now;
        at += n_now;
        n -= n_now;
    }
    return status;
}

hub_status hub_part_finish(hub_part *part, const char *target)
{
    hub_status status = is_sized(part) ? resize(part, part->n_bytes) : HUB_OK;
    if (status == HUB_OK) status = hub_sync(part->file, part->path.text);
    hub_part_close(part);
    return status == HUB_OK ? hub_rename(part->path.text, target) : status;
}

void hub_part_close(hub_part *part)
{
    hub_close(part->file);
    free(part->done);
    part->file = HUB_CLOSED;
    part->done = NULL;
}

// Keeps the last error.
void hub_part_remove(hub_part *part)
{
    hub_part_close(part);
    hub_try_remove(part->path.text);
}
