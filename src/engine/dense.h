// SPDX-License-Identifier: MIT
// engine/dense.h: products of f32 matrices, with the kernels of this processor.
//
// All are sums over neighbouring numbers of rows, as products with weights are. Results do not depend on how many rows
// are computed at once.
#pragma once
#include <stdint.h>

struct frit_product;   // backend/cpu/kernels.h

typedef struct frit_dense {
    void (*run)(const struct frit_product *product);
} frit_dense;

void frit_dense_init(frit_dense *dense);

typedef struct frit_dense_rows {
    const float *at;
    int64_t n, stride;   // numbers from a row to the next
} frit_dense_rows;

// y[i * y_stride + j] = dot(a row i, b row j) over `width` numbers.
void frit_dense_dots(const frit_dense *dense, frit_dense_rows a, frit_dense_rows b, int64_t width, float *y,
                     int64_t y_stride);
