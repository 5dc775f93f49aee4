// SPDX-License-Identifier: MIT
// arch/hparams_reader.h: reading hyperparameters (hparams.c), of which those of RoPE have a file (hparams_rope.c).
#pragma once
#include "arch/arch.h"

typedef struct frit_hparams_reader {
    frit_hparams *hp;
    const frit_arch *arch;
    const frit_checkpoint *ckpt;
    char key[160];   // of the current row
} frit_hparams_reader;

// Makes the metadata key of a suffix, "ARCH.SUFFIX". It is valid until the next call.
const char *frit_hparams_key(frit_hparams_reader *r, const char *suffix);
// Reads the style, scaling and sections of RoPE, and completes its numbers, also of layers with a window.
frit_status frit_hparams_complete_rope(frit_hparams_reader *r);
