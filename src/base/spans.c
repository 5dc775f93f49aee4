// SPDX-License-Identifier: MIT
// Sorted lists of ranges.
#include "base/spans.h"

#include "base/grow.h"

#include <stdlib.h>

void frit_spans_push(frit_spans *spans, size_t begin, size_t end)
{
    if (begin >= end || spans->failed) return;
    if (spans->n > 0 && spans->items[spans->n - 1].end == begin) {
        spans->items[spans->n - 1].end = end;
        return;
    }
    if (FRIT_GROW(spans->items, spans->capacity, spans->n + 1, "a list of ranges") != FRIT_OK) {
        spans->failed = true;
        return;
    }
    spans->items[spans->n++] = (frit_span){begin, end};
}

void frit_spans_cut(frit_spans *spans, size_t end)
{
    while (spans->n > 0 && spans->items[spans->n - 1].begin >= end) spans->n--;
    if (spans->n > 0 && spans->items[spans->n - 1].end > end) spans->items[spans->n - 1].end = end;
}

size_t frit_spans_find(const frit_spans *spans, size_t at)
{
    size_t low = 0, high = spans->n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (spans->items[middle].end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void frit_spans_free(frit_spans *spans)
{
    free(spans->items);
    *spans = (frit_spans){0};
}
