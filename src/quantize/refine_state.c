// SPDX-License-Identifier: MIT
// The state file of refining: records of groups of matrices.
#include "quantize/refine_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Head of a record: size and hash of what follows. A frit_refine_progress follows, and for each tensor the sizes of its
// name and blocks, its name and its blocks.
typedef struct record_head {
    uint64_t n_bytes;
    uint8_t sha256[FRIT_SHA256_BYTES];
} record_head;

static char *path_of(const char *target, const char *suffix)
{
    const size_t n = strlen(target) + strlen(suffix) + 1;
    char *path = malloc(n);
    if (path) snprintf(path, n, "%s%s", target, suffix);
    return path;
}

static void make_key(const uint8_t hash[FRIT_SHA256_BYTES], uint8_t key[FRIT_PARTIAL_KEY_BYTES])
{
    static const char magic[] = "fritfine";
    memcpy(key, magic, FRIT_PARTIAL_KEY_BYTES - FRIT_SHA256_BYTES);
    memcpy(key + FRIT_PARTIAL_KEY_BYTES - FRIT_SHA256_BYTES, hash, FRIT_SHA256_BYTES);
}

// ------------------------------------------------------------------------------------- reading

typedef struct reading {
    const uint8_t *at, *end;
} reading;

// Returns the next n bytes; NULL: there are fewer.
static const uint8_t *next_bytes(reading *r, uint64_t n)
{
    if (n > (uint64_t)(r->end - r->at)) return NULL;
    r->at += n;
    return r->at - n;
}

static bool next_blocks(reading *r, frit_refine_blocks *out)
{
    uint64_t sizes[2];
    const uint8_t *at = next_bytes(r, sizeof sizes);
    if (!at) return false;
    memcpy(sizes, at, sizeof sizes);
    out->name = (const char *)next_bytes(r, sizes[0]);
    out->name_bytes = sizes[0];
    out->blocks = out->name ? next_bytes(r, sizes[1]) : NULL;
    out->n_bytes = sizes[1];
    return out->blocks != NULL;
}

static bool read_record(reading *all, frit_refine_take_fn take, void *ctx)
{
    record_head head;
    frit_refine_progress progress;
    frit_refine_blocks blocks;
    frit_sha256 sum;
    uint8_t hash[FRIT_SHA256_BYTES];
    const uint8_t *at = next_bytes(all, sizeof head);
    if (!at) return false;
    memcpy(&head, at, sizeof head);
    const uint8_t *bytes = next_bytes(all, head.n_bytes);
    if (!bytes || head.n_bytes < sizeof progress) return false;
    frit_sha256_init(&sum);
    frit_sha256_add(&sum, bytes, (size_t)head.n_bytes);
    frit_sha256_end(&sum, hash);
    if (memcmp(hash, head.sha256, sizeof hash) != 0) return false;
    reading record = {bytes + sizeof progress, bytes + head.n_bytes};
    memcpy(&progress, bytes, sizeof progress);
    while (record.at < record.end)
        if (!next_blocks(&record, &blocks) || !take(ctx, &progress, &blocks)) return false;
    return true;
}

// *n_kept: bytes of valid records.
static frit_status read_records(const char *path, const uint8_t key[FRIT_PARTIAL_KEY_BYTES], frit_refine_take_fn take,
                                void *ctx, uint64_t *n_kept)
{
    frit_file *file;
    *n_kept = FRIT_PARTIAL_KEY_BYTES;
    if (frit_path_get_kind(path) != FRIT_PATH_FILE) return FRIT_OK;
    FRIT_TRY(frit_file_open(&file, path, true));
    const uint8_t *bytes = frit_file_data(file);
    reading all = {bytes, bytes + frit_file_size(file)};
    const uint8_t *found = next_bytes(&all, FRIT_PARTIAL_KEY_BYTES);
    const bool is_same = found && memcmp(found, key, FRIT_PARTIAL_KEY_BYTES) == 0;
    while (is_same && read_record(&all, take, ctx)) *n_kept = (uint64_t)(all.at - bytes);
    frit_file_close(file);
    return FRIT_OK;
}

frit_status frit_refine_state_open(frit_refine_state *state, const char *target, const uint8_t key[FRIT_SHA256_BYTES],
                                   frit_refine_take_fn take, void *ctx)
{
    uint8_t first[FRIT_PARTIAL_KEY_BYTES];
    uint64_t n_read, n_kept;
    char *path = path_of(target, ".refine"), *part = path_of(target, ".refine.part");
    frit_status status = path && part ? FRIT_OK : frit_fail_memory(strlen(target), "a path");
    make_key(key, first);
    if (status == FRIT_OK) status = read_records(part, first, take, ctx, &n_read);
    if (status == FRIT_OK) status = frit_partial_file_open(&state->writer, path, first, &n_kept);
    if (status == FRIT_OK && n_kept > 0) status = frit_partial_file_keep(state->writer, n_read);
    free(path);
    free(part);
    return status;
}

// ------------------------------------------------------------------------------------- writing

// Passes each piece of the record to `put`.
static frit_status each_piece(const frit_refine_progress *progress, const frit_refine_blocks *tensors, size_t n,
                              frit_status (*put)(void *ctx, const void *bytes, size_t n), void *ctx)
{
    FRIT_TRY(put(ctx, progress, sizeof *progress));
    for (size_t i = 0; i < n; i++) {
        const uint64_t sizes[2] = {tensors[i].name_bytes, tensors[i].n_bytes};
        FRIT_TRY(put(ctx, sizes, sizeof sizes));
        FRIT_TRY(put(ctx, tensors[i].name, (size_t)sizes[0]));
        FRIT_TRY(put(ctx, tensors[i].blocks, (size_t)sizes[1]));
    }
    return FRIT_OK;
}

static frit_status hash_piece(void *ctx, const void *bytes, size_t n)
{
    frit_sha256_add(ctx, bytes, n);
    return FRIT_OK;
}

static frit_status write_piece(void *ctx, const void *bytes, size_t n)
{
    return frit_file_writer_write(ctx, bytes, n);
}

frit_status frit_refine_state_add(frit_refine_state *state, const frit_refine_progress *progress,
                                  const frit_refine_blocks *tensors, size_t n)
{
    frit_sha256 sum;
    record_head head;
    if (!state->writer) return FRIT_OK;
    frit_sha256_init(&sum);
    FRIT_TRY(each_piece(progress, tensors, n, hash_piece, &sum));
    head.n_bytes = sum.n_bytes;
    frit_sha256_end(&sum, head.sha256);
    FRIT_TRY(frit_file_writer_write(state->writer, &head, sizeof head));
    FRIT_TRY(each_piece(progress, tensors, n, write_piece, state->writer));
    return frit_partial_file_flush(state->writer);
}

void frit_refine_state_close(frit_refine_state *state, bool keeps)
{
    if (keeps)
        frit_partial_file_leave(state->writer);
    else
        frit_file_writer_abort(state->writer);
    state->writer = NULL;
}
