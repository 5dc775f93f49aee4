// SPDX-License-Identifier: MIT
// quantize/refine_file.h: metadata of a refined file.
//
//     quantize.kl.mean          KL divergence of its predictions from the model's, over held-out windows
//     quantize.kl.windows       number of held-out windows that were measured
//     quantize.refine.sha256    of the tokens that it was refined with
//     quantize.refine.tokens    number of these tokens
//     quantize.refine.matrices  number of matrices that were rounded again; 0 if that did not help
#pragma once
#include "base/map.h"
#include "base/sha256.h"
#include "base/status.h"

enum { FRIT_REFINE_LABEL_BYTES = 300 };   // upper bound of the metadata's bytes

typedef struct frit_refine_labels {
    double kl;
    uint64_t n_windows, n_tokens, n_matrices;
    uint8_t sha256[FRIT_SHA256_BYTES];
} frit_refine_labels;

// Writes the GGUF file `bytes` to `path` with these labels instead of its own. `changed` has the names of tensors whose
// blocks changed; their origins (convert/reuse.c) are dropped. NULL: none.
frit_status frit_refine_write(const char *path, const char *bytes, size_t n, const frit_refine_labels *labels,
                              const frit_map *changed);
