// SPDX-License-Identifier: MIT
// quantize/refine.h: frit_refine with a bound on memory.
#pragma once
#include "frit_tools.h"

// Inputs of the model's matrices in a layer are stored if that takes at most `most_kept` bytes, so that the model reads
// the text once per layer. Otherwise it reads the text again for each group of matrices. The result is the same.
frit_status frit_refine_within(const char *source, const char *target, const frit_refine_options *options,
                               uint64_t most_kept);
