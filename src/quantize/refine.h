// SPDX-License-Identifier: MIT
// quantize/refine.h: frit_refine with a bound on memory.
#pragma once
#include "frit_tools.h"

// What the model's own matrices of a layer read is kept, so that the model reads the text once for each layer, where
// that takes at most `most_kept` bytes; else the model reads it again for each group of matrices. The result is the
// same.
frit_status frit_refine_within(const char *source, const char *target, const frit_refine_options *options,
                               uint64_t most_kept);
