// SPDX-License-Identifier: MIT
// quantize/refine_state.h: what refining has done, in a file beside its target, so that a run that is stopped or killed
// goes on.
//
// TARGET.refine.part is a key, which everything follows from that refining reads, and a record for each group of
// matrices that read the same: where refining stands after it, and the group's blocks. Records are appended, each with
// its SHA-256: what was cut off is not taken.
#pragma once
#include "base/file/file_part.h"
#include "base/sha256.h"

// After a group.
typedef struct frit_refine_progress {
    int64_t layer;
    int64_t n_matrices, n_refined, n_worse, n_few;   // so far
} frit_refine_progress;

typedef struct frit_refine_blocks {
    const char *name;   // of the tensor, name_bytes without an end
    uint64_t name_bytes;
    const void *blocks;
    uint64_t n_bytes;
} frit_refine_blocks;

typedef struct frit_refine_state {
    frit_file_writer *writer;   // NULL: nothing is kept
} frit_refine_state;

// Takes the blocks of a record; false: they are of something else.
typedef bool (*frit_refine_take_fn)(void *ctx, const frit_refine_progress *progress, const frit_refine_blocks *blocks);

// Gives `take` the blocks of all records with this key, and goes on after them. Without a file, or with one of
// another key, the state begins anew. Nothing is kept while another process has the file.
frit_status frit_refine_state_open(frit_refine_state *state, const char *target, const uint8_t key[FRIT_SHA256_BYTES],
                                   frit_refine_take_fn take, void *ctx);
frit_status frit_refine_state_add(frit_refine_state *state, const frit_refine_progress *progress,
                                  const frit_refine_blocks *tensors, size_t n);
// keeps: the file stays for another run.
void frit_refine_state_close(frit_refine_state *state, bool keeps);
