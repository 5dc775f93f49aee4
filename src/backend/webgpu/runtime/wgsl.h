// SPDX-License-Identifier: MIT
// backend/webgpu/runtime/wgsl.h: the preprocessor of kernels, because WGSL has none. A line that begins with # is a
// directive:
//
//     #include "tiles.wgsl"       a file of kernels/, once
//     #define NAME text           NAME is replaced by the text, NAMEu by u32(text)
//     #if A == 4 || !B            also #elif, #else, #endif; names without a definition are 0
//     #repeat i COUNT             the lines up to #end, for i from 0 to COUNT - 1; @i is replaced by the number
//
// Comments and empty lines are dropped.
#pragma once
#include "base/buf.h"

typedef struct frit_wgsl_source {
    const char *name;   // "product.wgsl"
    const char *text;
} frit_wgsl_source;

// The files of kernels/, which the build turns into strings (cmake/FritKernelSources.cmake).
extern const frit_wgsl_source frit_wgsl_sources[];
extern const size_t frit_wgsl_n_sources;

// Appends the file as WGSL. defines: "NAME=text".
frit_status frit_wgsl_make(const char *file, const char *const *defines, size_t n, frit_buf *out);
// Appends a text that is not one of the files.
frit_status frit_wgsl_make_text(const char *text, const char *const *defines, size_t n, frit_buf *out);
