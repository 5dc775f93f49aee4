// SPDX-License-Identifier: MIT
// support/kept_rows.h: stores the logits of all rows of a text that a row function receives.
#pragma once
#include "support/support.h"

#include <string.h>

typedef struct kept_rows {
    float *logits;   // [n_tokens, n_vocab]
    size_t n_vocab, n_rows;
} kept_rows;

// A row function whose ctx is a kept_rows. The caller adds the rows of each push to n_rows.
static inline void keep_row(void *ctx, size_t i, const float *values, size_t n)
{
    kept_rows *r = ctx;
    assert_int_equal(n, r->n_vocab);
    memcpy(r->logits + (r->n_rows + i) * n, values, n * sizeof *values);
}
