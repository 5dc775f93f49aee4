// SPDX-License-Identifier: MIT
// quantize/dense.h: products of f32 matrices, with the kernels of this processor.
//
// Results are dot products of rows and do not depend on the number of rows computed at once.
//
// Tiles of bfloat16 (AMX) multiply several times as fast, with 8 bits of precision. That is enough for sums over many
// rows, whose errors cancel. Computations on the sums use f32.
#pragma once
#include <stddef.h>
#include <stdint.h>

struct frit_product;   // backend/cpu/kernels.h

typedef struct frit_dense {
    void (*run)(const struct frit_product *product);
    void (*run_tiles)(const struct frit_product *product);   // NULL: no tiles
    // One row of the tiled factor; NULL: plain bfloat16.
    void (*make_tiled)(const float *x, uint8_t *out, int64_t n);
    int tiled_form;   // frit_form
} frit_dense;

void frit_dense_init(frit_dense *dense);

typedef struct frit_dense_rows {
    const float *at;
    int64_t n, stride;   // stride in floats
} frit_dense_rows;

// y[i * y_stride + j] = dot(a row i, b row j) over `width` numbers.
void frit_dense_dots(const frit_dense *dense, frit_dense_rows a, frit_dense_rows b, int64_t width, float *y,
                     int64_t y_stride);

// ------------------------------------------------------------------------------------- tiles

enum { FRIT_DENSE_TILE_ROWS = 16 };   // tiled rows come in multiples of it, and products begin at a multiple

// For tests: if the processor has no tiles, vectors multiply the same numbers.
void frit_dense_use_tiles(frit_dense *dense);

// Rows of `width` numbers, a multiple of 32, in the two forms of factors.
typedef struct frit_dense_forms {
    uint8_t *tiled, *plain;   // of frit_dense_tiled_bytes and frit_dense_plain_bytes bytes, aligned to 64
    int64_t width;
    int64_t n;   // numbers of each row that products sum, a multiple of 32; 0: all
} frit_dense_forms;

size_t frit_dense_tiled_bytes(const frit_dense *dense, int64_t n_rows, int64_t width);
size_t frit_dense_plain_bytes(int64_t n_rows, int64_t width);
size_t frit_dense_tile_scratch_bytes(void);   // a multiple of 64

// Fills columns [first, first + n) of row i; both are multiples of 32.
void frit_dense_make_tiled(const frit_dense *dense, frit_dense_forms forms, int64_t i, const float *row, int64_t first,
                           int64_t n);
void frit_dense_make_plain(frit_dense_forms forms, int64_t i, const float *row, int64_t first, int64_t n);

typedef struct frit_dense_block {
    int64_t first, n;
} frit_dense_block;

// y[i * y_stride + j] = dot(tiled row a.first + i of x, plain row b.first + j of z). `scratch` is aligned to 64.
void frit_dense_tile_dots(const frit_dense *dense, frit_dense_forms x, frit_dense_block a, frit_dense_forms z,
                          frit_dense_block b, float *y, int64_t y_stride, uint8_t *scratch);
