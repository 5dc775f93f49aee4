// SPDX-License-Identifier: MIT
// Sums of x x^T and x z^T in tiles of bfloat16.
//
// Of H the lower triangle is computed, and copied to the upper one. Both factors are the same rounded numbers, so H is
// what it is for inputs that are a little different: no less positive. What rounding adds has no direction, and cancels
// over the rows that are added up; the model's products round what they read as coarsely.
#include "engine/covariance.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 512, COLUMNS = 128, SQUARE = 16 };   // of a block; what is copied at once

typedef struct adding {
    const frit_covariance_columns *columns;
    const frit_dense *dense;
    frit_dense_forms x, z;
    uint8_t *own;   // of each thread: own_bytes
    size_t own_bytes;
} adding;

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void make_part(void *ctx, int part, int parts)
{
    const adding *a = ctx;
    const frit_covariance_columns *c = a->columns;
    const size_t n_zeros = (size_t)(a->x.width - c->n) * sizeof(float);
    for (int64_t i = c->width * part / parts; i < c->width * (part + 1) / parts; i++) {
        float *x = c->x + i * c->stride, *z = c->z ? c->z + i * c->stride : NULL;
        memset(x + c->n, 0, n_zeros);
        frit_dense_make_tiled(a->dense, a->x, i, x);
        frit_dense_make_plain(a->x, i, x);
        if (!z) continue;
        memset(z + c->n, 0, n_zeros);
        frit_dense_make_plain(a->z, i, z);
    }
}

// What the lower triangle has of rows [r, r_end) and columns [c, c_end), to the upper one.
static void mirror(float *sums, int64_t width, int64_t r, int64_t r_end, int64_t c, int64_t c_end)
{
    for (int64_t j = c; j < c_end; j++)
        for (int64_t i = r > j ? r : j + 1; i < r_end; i++) sums[j * width + i] = sums[i * width + j];
}

// Rows that lie above the triangle have no part in it.
static void add_own(const adding *a, frit_dense_block rows, frit_dense_block columns, float *y, uint8_t *scratch)
{
    const int64_t width = a->columns->width, row_end = rows.first + rows.n, end = columns.first + columns.n;
    float *sums = a->columns->sums;
    frit_dense_tile_dots(a->dense, a->x, rows, a->x, columns, y, COLUMNS, scratch);
    for (int64_t i = rows.first; i < row_end; i++) {
        const int64_t n = min(columns.n, i + 1 - columns.first);
        const float *own = y + (i - rows.first) * COLUMNS;
        for (int64_t j = 0; j < n; j++) sums[i * width + columns.first + j] += own[j];
    }
    for (int64_t r = rows.first; r < row_end; r += SQUARE)
        for (int64_t c = columns.first; c < end && c < r + SQUARE; c += SQUARE)
            mirror(sums, width, r, min(r + SQUARE, row_end), c, min(c + SQUARE, end));
}

static void add_cross(const adding *a, frit_dense_block rows, frit_dense_block columns, float *y, uint8_t *scratch)
{
    const int64_t width = a->columns->width;
    frit_dense_tile_dots(a->dense, a->x, rows, a->z, columns, y, COLUMNS, scratch);
    for (int64_t i = 0; i < rows.n; i++)
        for (int64_t j = 0; j < columns.n; j++)
            a->columns->cross[(rows.first + i) * width + columns.first + j] += y[i * COLUMNS + j];
}

static void add_part(void *ctx, int part, int parts)
{
    const adding *a = ctx;
    const int64_t width = a->columns->width;
    uint8_t *scratch = a->own + (size_t)part * a->own_bytes;
    float *y = (float *)(void *)(scratch + frit_dense_tile_scratch_bytes());
    int64_t n = 0;
    for (int64_t i = 0; i < width; i += ROWS)
        for (int64_t j = 0; j < width; j += COLUMNS) {
            const frit_dense_block rows = {i, min(ROWS, width - i)}, columns = {j, min(COLUMNS, width - j)};
            if (j < i + rows.n && n++ % parts == part) add_own(a, rows, columns, y, scratch);
            if (a->columns->z && n++ % parts == part) add_cross(a, rows, columns, y, scratch);
        }
}

static uint8_t *aligned(uint8_t *at)
{
    return at + (64 - (uintptr_t)at % 64) % 64;
}

frit_status frit_covariance_add_tiles(frit_covariance *covariance, const frit_covariance_columns *columns,
                                      frit_pool *pool)
{
    const frit_dense *dense = &covariance->dense;
    const int64_t width = columns->width, n = (columns->n + 31) / 32 * 32;
    const size_t tiled = frit_dense_tiled_bytes(dense, width, n), plain = frit_dense_plain_bytes(width, n),
                 own = frit_dense_tile_scratch_bytes() + ROWS * COLUMNS * sizeof(float),
                 n_bytes = tiled + 2 * plain + (size_t)frit_pool_size(pool) * own + 64;
    if (n_bytes > covariance->tiles_bytes) {
        free(covariance->tiles);
        covariance->tiles_bytes = 0;
        covariance->tiles = malloc(n_bytes);
        if (!covariance->tiles) return frit_fail_memory(n_bytes, "rows of products");
        covariance->tiles_bytes = n_bytes;
    }
    uint8_t *at = aligned(covariance->tiles);
    adding a = {.columns = columns,
                .dense = dense,
                .x = {.tiled = at, .plain = at + tiled, .width = n},
                .z = {.plain = at + tiled + plain, .width = n},
                .own = at + tiled + 2 * plain,
                .own_bytes = own};
    frit_pool_run(pool, make_part, &a);
    frit_pool_run(pool, add_part, &a);
    return FRIT_OK;
}
