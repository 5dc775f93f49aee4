// SPDX-License-Identifier: MIT
// format/ranges.h: tensors in files that a function of the caller reads, a range at a time.
//
// Small tensors and vectors are read at once, because ops read them in memory. Rows of other tensors are read when they
// are packed. Only threads that call the library call the function: in a browser, a file belongs to one worker.
#pragma once
#include "format/rows.h"

typedef struct frit_range_file {
    const char *path;   // for errors
    uint64_t n_bytes;
    size_t index;   // passed to `read`
    bool (*read)(void *ctx, size_t file, uint64_t at, void *bytes, size_t n);
    void *ctx;
} frit_range_file;

// FRIT_E_IO if the function cannot read the bytes.
frit_status frit_range_read(const frit_range_file *file, uint64_t at, void *bytes, size_t n);
// Gives a tensor, whose name, type and shape are set, its bytes from `at` on: data in the arena, or a recipe. The range
// lies inside the file, which lives as long as the arena.
frit_status frit_range_tensor(frit_arena *arena, frit_tensor *tensor, const frit_range_file *file, uint64_t at);
