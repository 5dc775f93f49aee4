// SPDX-License-Identifier: MIT
// quantize/refine_state.h: the progress of refining in a file beside its target, so that a stopped run can continue.
//
// TARGET.refine.part has a key that covers everything that refining reads, and a record for each group of matrices with
// the same input: the progress after it and the group's blocks. Records are appended with their SHA-256, so a record
// that was cut off is ignored.
#pragma once
#include "base/file/partial_file.h"
#include "base/sha256.h"

// Progress after a group.
typedef struct frit_refine_progress {
    int64_t layer;
    int64_t n_matrices, n_refined, n_worse, n_few;   // so far
} frit_refine_progress;

typedef struct frit_refine_blocks {
    const char *name;   // of the tensor; not terminated
    uint64_t name_bytes;
    const void *blocks;
    uint64_t n_bytes;
} frit_refine_blocks;

typedef struct frit_refine_state {
    frit_file_writer *writer;   // NULL: nothing is saved
} frit_refine_state;

// Receives the blocks of a record; returns false if they do not fit.
typedef bool (*frit_refine_take_fn)(void *ctx, const frit_refine_progress *progress, const frit_refine_blocks *blocks);

// Passes the blocks of all records with this key to `take`, and appends after them. Without a file, or with another
// key, the state begins anew. Nothing is saved while another process has the file open.
frit_status frit_refine_state_open(frit_refine_state *state, const char *target, const uint8_t key[FRIT_SHA256_BYTES],
                                   frit_refine_take_fn take, void *ctx);
frit_status frit_refine_state_add(frit_refine_state *state, const frit_refine_progress *progress,
                                  const frit_refine_blocks *tensors, size_t n);
// With `keeps` the file stays for another run.
void frit_refine_state_close(frit_refine_state *state, bool keeps);
