// SPDX-License-Identifier: MIT
// quantize/refine_file.h: what a refined file says about itself.
//
//     quantize.kl.mean          the KL divergence of its predictions from the model's, over windows that are held out
//     quantize.kl.windows       how many of these were measured
//     quantize.refine.sha256    of the tokens that it was refined with; they have no other name
//     quantize.refine.tokens    how many these are
//     quantize.refine.matrices  that were rounded again; 0: none, as that did not help
#pragma once
#include "base/map.h"
#include "base/sha256.h"
#include "base/status.h"

enum { FRIT_REFINE_LABEL_BYTES = 300 };   // that a file grows by at most

typedef struct frit_refine_labels {
    double kl;
    uint64_t n_windows, n_tokens, n_matrices;
    uint8_t sha256[FRIT_SHA256_BYTES];
} frit_refine_labels;

// Writes the GGUF file `bytes` under `path`, with these pairs in place of those that it has. changed: names of tensors
// that are no longer what they were encoded to, which its origins (convert/reuse.c) forget; NULL: none.
frit_status frit_refine_write(const char *path, const char *bytes, size_t n, const frit_refine_labels *labels,
                              const frit_map *changed);
