// SPDX-License-Identifier: MIT
// convert/random.h: models of known shapes with random weights, for measuring speed.
//
// A shape is a row of metadata (random_shapes.c); which tensors that makes, and of what size, follows from the rows of
// its architecture (arch.h). Their rows are made when they are read (format/rows.h), each time the same: a model of any
// size can be run, or written, without being anywhere as a whole.
#pragma once
#include "format/checkpoint.h"
#include "frit_tools.h"

typedef struct frit_random_row {
    frit_random_shape shape;
    const char *keys;             // of the metadata: "NAME=NUMBER ...", without the architecture before them
    const char *optional;         // tensors that a file of the architecture may lack, and this one has: names of rows
    const char *keys_cut;         // further keys where layers are left out
    const char *optional_whole;   // further tensors where none are
} frit_random_row;

frit_status frit_random_find(const frit_random_row **out, const char *name);   // FRIT_E_INVALID: there is none

// A checkpoint with rows to be made. FRIT_E_INVALID for a type or number of layers that is none.
frit_status frit_random_open(frit_checkpoint **out, const frit_random_row *row, const frit_random_options *options);
frit_status frit_random_save(const frit_checkpoint *ckpt, const char *path, const frit_random_options *options);
