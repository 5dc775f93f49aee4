// SPDX-License-Identifier: MIT
// Incomplete files.
#include "hub/partial.h"

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

static hub_status write_at(const hub_partial *partial, uint64_t at, const void *bytes, size_t n)
{
    const hub_status status = hub_write_at(partial->file, partial->path.text, at, bytes, n);
    return status == HUB_OK ? status : tell_rest(status);
}

static hub_status resize(const hub_partial *partial, uint64_t n_bytes)
{
    const hub_status status = hub_resize(partial->file, partial->path.text, n_bytes);
    return status == HUB_OK ? status : tell_rest(status);
}

hub_status hub_partial_read(const hub_partial *partial, uint64_t at, void *bytes, size_t n)
{
    return hub_read_at(partial->file, partial->path.text, at, bytes, n);
}

static bool is_sized(const hub_partial *partial)
{
    return partial->n_bytes != UINT64_MAX;
}

// A chunk size with enough chunks to keep all connections busy, but not so many that requests take time.
static uint64_t chunk_size(uint64_t n_bytes)
{
    enum { LEAST = 512 << 10, MOST = 64 << 20 };
    uint64_t size = n_bytes / 32 & ~(uint64_t)0xffff;
    if (size < LEAST) size = LEAST;
    return size > MOST ? MOST : size;
}

uint64_t hub_partial_chunk_bytes(const hub_partial *partial, size_t chunk)
{
    if (!is_sized(partial)) return UINT64_MAX;
    const uint64_t begin = chunk * partial->chunk_bytes;
    return partial->n_bytes - begin < partial->chunk_bytes ? partial->n_bytes - begin : partial->chunk_bytes;
}

uint64_t hub_partial_prefix(const hub_partial *partial)
{
    uint64_t n = 0;
    for (size_t c = 0; c < partial->n_chunks; c++) {
        n += partial->done[c];
        if (partial->done[c] < hub_partial_chunk_bytes(partial, c)) break;
    }
    return n;
}

static bool read_trailer(hub_partial *partial, const char *identity)
{
    trailer t;
    const size_t n_table = partial->n_chunks * sizeof *partial->done;
    if (!identity[0] || !is_sized(partial) ||
        hub_file_bytes(partial->path.text) != partial->n_bytes + sizeof t + n_table)
        return false;
    if (hub_partial_read(partial, partial->n_bytes, &t, sizeof t) != HUB_OK) return false;
    if (memcmp(t.magic, magic, sizeof magic) != 0 || t.n_bytes != partial->n_bytes ||
        t.chunk_bytes != partial->chunk_bytes || t.n_chunks != partial->n_chunks)
        return false;
    if (strncmp(t.identity, identity, sizeof t.identity - 1) != 0 || t.validator[sizeof t.validator - 1]) return false;
    if (hub_partial_read(partial, partial->n_bytes + sizeof t, partial->done, n_table) != HUB_OK) return false;
    for (size_t c = 0; c < partial->n_chunks; c++) {
        if (partial->done[c] > hub_partial_chunk_bytes(partial, c)) return false;
        partial->n_done += partial->done[c];
    }
    memcpy(partial->validator, t.validator, sizeof t.validator);
    return true;
}

static hub_status write_trailer(hub_partial *partial, const char *identity)
{
    trailer t = {.n_bytes = partial->n_bytes, .chunk_bytes = partial->chunk_bytes, .n_chunks = partial->n_chunks};
    memset(partial->done, 0, partial->n_chunks * sizeof *partial->done);
    partial->n_done = 0;
    partial->validator[0] = 0;
    const hub_status emptied = resize(partial, 0);
    if (emptied != HUB_OK || !is_sized(partial)) return emptied;
    memcpy(t.magic, magic, sizeof magic);
    snprintf(t.identity, sizeof t.identity, "%s", identity);
    const hub_status status = write_at(partial, partial->n_bytes, &t, sizeof t);
    if (status != HUB_OK) return status;
    return write_at(partial, partial->n_bytes + sizeof t, partial->done, partial->n_chunks * sizeof *partial->done);
}

hub_status hub_partial_open(hub_partial *partial, const char *path, const char *identity, uint64_t n_bytes)
{
    *partial = (hub_partial){.file = HUB_CLOSED, .n_bytes = n_bytes, .n_chunks = 1, .chunk_bytes = UINT64_MAX};
    hub_status status = hub_path_set(&partial->path, "%s", path);
    if (status == HUB_OK) status = hub_make_parents(path);
    if (status != HUB_OK) return status;
    if (is_sized(partial)) {
        if (n_bytes > (uint64_t)1 << 50)
            return hub_fail(HUB_E_DATA, "%s: the server says that it has %llu bytes, which no file has", path,
                            (unsigned long long)n_bytes);
        partial->chunk_bytes = chunk_size(n_bytes);
        partial->n_chunks = (size_t)(n_bytes / partial->chunk_bytes + (n_bytes % partial->chunk_bytes != 0));
        if (partial->n_chunks == 0) partial->n_chunks = 1;
    }
    partial->done = calloc(partial->n_chunks, sizeof *partial->done);
    if (!partial->done) return hub_fail(HUB_E_MEMORY, "out of memory");
    status = hub_open(path, true, &partial->file);
    if (status == HUB_OK && !read_trailer(partial, identity)) status = write_trailer(partial, identity);
    if (status != HUB_OK) hub_partial_close(partial);
    return status;
}

hub_status hub_partial_set_validator(hub_partial *partial, const char *validator)
{
    snprintf(partial->validator, sizeof partial->validator, "%s", validator);
    if (!is_sized(partial)) return HUB_OK;
    return write_at(partial, partial->n_bytes + offsetof(trailer, validator), partial->validator,
                    sizeof partial->validator);
}

hub_status hub_partial_restart(hub_partial *partial)
{
    memset(partial->done, 0, partial->n_chunks * sizeof *partial->done);
    partial->n_done = 0;
    if (!is_sized(partial)) return resize(partial, 0);
    const hub_status status = hub_partial_set_validator(partial, "");
    if (status != HUB_OK) return status;
    return write_at(partial, partial->n_bytes + sizeof(trailer), partial->done,
                    partial->n_chunks * sizeof *partial->done);
}

hub_status hub_partial_write(hub_partial *partial, uint64_t at, const void *bytes, size_t n)
{
    const char *from = bytes;
    hub_status status = HUB_OK;
    while (n > 0 && status == HUB_OK) {
        const size_t chunk = is_sized(partial) ? (size_t)(at / partial->chunk_bytes) : 0;
        if (chunk >= partial->n_chunks ||
            partial->done[chunk] != at - (is_sized(partial) ? chunk * partial->chunk_bytes : 0))
            return hub_fail(HUB_E_DATA, "%s: bytes come for a place that is filled, or not next", partial->path.text);
        const uint64_t room = hub_partial_chunk_bytes(partial, chunk) - partial->done[chunk];
        const size_t n_now = n < room ? n : (size_t)room;
        if (n_now == 0) return hub_fail(HUB_E_DATA, "%s: more bytes come than the file has", partial->path.text);
        status = write_at(partial, at, from, n_now);
        if (status != HUB_OK) break;
        partial->done[chunk] += n_now;
        partial->n_done += n_now;
        if (is_sized(partial))
            status = write_at(partial, partial->n_bytes + sizeof(trailer) + chunk * sizeof *partial->done,
                              &partial->done[chunk], sizeof *partial->done);
        from += n_now;
        at += n_now;
        n -= n_now;
    }
    return status;
}

hub_status hub_partial_finish(hub_partial *partial, const char *target)
{
    hub_status status = is_sized(partial) ? resize(partial, partial->n_bytes) : HUB_OK;
    if (status == HUB_OK) status = hub_sync(partial->file, partial->path.text);
    hub_partial_close(partial);
    return status == HUB_OK ? hub_rename(partial->path.text, target) : status;
}

void hub_partial_close(hub_partial *partial)
{
    hub_close(partial->file);
    free(partial->done);
    partial->file = HUB_CLOSED;
    partial->done = NULL;
}

// Keeps the last error.
void hub_partial_remove(hub_partial *partial)
{
    hub_partial_close(partial);
    hub_try_remove(partial->path.text);
}
