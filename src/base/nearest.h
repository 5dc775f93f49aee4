// SPDX-License-Identifier: MIT
// base/nearest.h: suggestions for a mistyped name.
#pragma once
#include "base/buf.h"

typedef const char *(*frit_nearest_name_fn)(const void *ctx, size_t i);   // NULL beyond the end

// Appends the known names that need the fewest edits, at most three, nearest first: "llama, plamo, llama4".
void frit_nearest_print(frit_buf *out, const char *name, frit_nearest_name_fn known, const void *ctx);
