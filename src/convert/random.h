// SPDX-License-Identifier: MIT
// convert/random.h: models of known shapes with random weights, for measuring speed.
//
// A shape is a row of metadata (random_shapes.c). The weight rows of its architecture (arch.h) give the tensors and
// their sizes. Rows are generated when they are read (format/rows.h), always with the same values, so a model of any
// size can run or be written without being in memory as a whole.
#pragma once
#include "format/checkpoint.h"
#include "frit_tools.h"

typedef struct frit_random_row {
    frit_random_shape shape;
    const char *keys;             // of the metadata: "NAME=NUMBER ...", without the architecture's prefix
    const char *optional;         // names of the optional rows that this model has
    const char *keys_cut;         // further keys if layers are cut
    const char *optional_whole;   // further tensors if no layers are cut
} frit_random_row;

frit_status frit_random_find(const frit_random_row **out, const char *name);   // FRIT_E_INVALID: unknown name

// A checkpoint whose rows are generated. FRIT_E_INVALID for an unknown type or number of layers.
frit_status frit_random_open(frit_checkpoint **out, const frit_random_row *row, const frit_random_options *options);
frit_status frit_random_save(const frit_checkpoint *ckpt, const char *path, const frit_random_options *options);
