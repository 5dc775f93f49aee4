// SPDX-License-Identifier: MIT
// base/spans.h: ranges of bytes in a text: ascending, disjoint, never empty.
#pragma once
#include "base/status.h"

typedef struct frit_span {
    size_t begin, end;
} frit_span;

typedef struct frit_spans {
    frit_span *items;
    size_t n, capacity;
    bool failed;   // out of memory: ranges are missing
} frit_spans;

// Adds a range that begins at or after the end of the last one. Adjacent ranges are joined.
void frit_spans_push(frit_spans *spans, size_t begin, size_t end);
// Removes everything from `end` on.
void frit_spans_cut(frit_spans *spans, size_t end);
// Index of the first range that ends after `at`; spans->n without one.
size_t frit_spans_find(const frit_spans *spans, size_t at);
void frit_spans_free(frit_spans *spans);
