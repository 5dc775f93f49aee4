// SPDX-License-Identifier: MIT
// base/spans.h: ranges of bytes in a text: ascending, apart, never empty.
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

// Adds a range that begins at or after the end of the last one; joins it to that one where they touch.
void frit_spans_push(frit_spans *spans, size_t begin, size_t end);
// Keeps what lies before `end`.
void frit_spans_cut(frit_spans *spans, size_t end);
// The first range that ends after `at`; otherwise spans->n.
size_t frit_spans_find(const frit_spans *spans, size_t at);
void frit_spans_free(frit_spans *spans);
