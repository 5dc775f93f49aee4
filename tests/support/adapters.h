// SPDX-License-Identifier: MIT
// support/adapters.h: random adapters for a model in a GGUF file, and the model with adapters merged into its weights:
// w + scale * b a, computed here.
#pragma once
#include "format/checkpoint.h"

typedef struct adapter_options {
    uint64_t seed;
    int32_t rank;          // 0: 4
    float alpha;           // 0: the file has no such key
    const char *only;      // tensors whose names contain this; NULL: all tensors that adapters may change
    const char *without;   // leaves out tensors whose names contain this
    frit_dtype type;       // of a and b: F32 (0), F16, BF16
    const char *arch;      // general.architecture; NULL: the model's
    int64_t wider;         // number of elements added to rows of a
    bool lacks_b;          // true: the first pair has no b
} adapter_options;

// Writes NAME into the test's folder. Returns the path, like temp_path; *n is the number of pairs (may be NULL).
const char *make_adapter(const char *name, const char *model, const adapter_options *options, size_t *n);
// Writes the model with adapters, each times a scale, added to its tensors, which become f32.
const char *merge_adapters(const char *name, const char *model, const char *const *adapters, const float *scales,
                           size_t n);
// Makes a control vector with directions first..last, and returns its numbers [layer * n_embd].
const char *make_vector(const char *name, const char *model, uint64_t seed, int first, int last);
// Makes the model without scales of its matrices, because adapters are added to the scaled product.
const char *without_scales(const char *name, const char *model);
