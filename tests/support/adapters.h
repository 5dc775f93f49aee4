// SPDX-License-Identifier: MIT
// support/adapters.h: random adapters for a model in a GGUF file, and the same model with them merged into its weights:
// w + scale * b a, computed here.
#pragma once
#include "format/checkpoint.h"

typedef struct adapter_options {
    uint64_t seed;
    int32_t rank;          // 0: 4
    float alpha;           // 0: no such key
    const char *only;      // tensors whose names contain this; NULL: all that adapters may have
    const char *without;   // not those
    frit_dtype type;       // of a and b: F32 (0), F16, BF16
    const char *arch;      // general.architecture; NULL: the model's
    int64_t wider;         // a has rows longer by this
    bool lacks_b;          // of the first pair
} adapter_options;

// Writes NAME into the test's folder. Returns the path, as temp_path does; *n: how many pairs (may be NULL).
const char *make_adapter(const char *name, const char *model, const adapter_options *options, size_t *n);
// Writes the model with adapters, each times a scale, added to its tensors, which become f32.
const char *merge_adapters(const char *name, const char *model, const char *const *adapters, const float *scales,
                           size_t n);
// A control vector with directions first..last, and its numbers [layer * n_embd].
const char *make_vector(const char *name, const char *model, uint64_t seed, int first, int last);
// The model without the scales that may stand beside its matrices: adapters add to what these make of a product.
const char *without_scales(const char *name, const char *model);
