// SPDX-License-Identifier: MIT
// Sums of x x^T and x z^T in tiles of bfloat16.
//
// Only the lower triangle of H is computed; it is copied to the upper one at the end. Both factors are the same rounded
// numbers, so H is the exact covariance of slightly different inputs and stays positive. Rounding errors cancel in the
// sum over rows. The model's own products round their inputs as coarsely.
//
// The sums of a wide matrix do not fit a cache, so rows are rounded when they arrive and added when there are many.
#include "quantize/covariance.h"
#include "base/minmax.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 512, COLUMNS = 128, SQUARE = 16 };   // of a block of sums; of a square that is copied at once
enum { MOST = 4096, FEW = 512 };                   // rows that are added at once: gathered, and otherwise

typedef struct adding {
    const frit_covariance_columns *columns;
    const frit_dense *dense;
    frit_dense_forms x, z;
    int64_t first, n;   // columns of the forms that the rows become
    uint8_t *own;       // own_bytes for each thread
    size_t own_bytes;
    _Atomic int64_t next;   // next block that no thread has claimed
} adding;

static uint8_t *aligned(uint8_t *at)
{
    return at + (64 - (uintptr_t)at % 64) % 64;
}

// Sets where rows and results lie in the reserved memory.
static frit_status prepare_forms(frit_covariance *covariance, const frit_covariance_columns *columns, frit_pool *pool,
                                 adding *a)
{
    const frit_dense *dense = &covariance->dense;
    const int64_t width = columns->width, most = covariance->gathers ? MOST : FEW;
    const size_t tiled = frit_dense_tiled_bytes(dense, width, most), plain = frit_dense_plain_bytes(width, most),
                 own = frit_dense_tile_scratch_bytes() + ROWS * COLUMNS * sizeof(float),
                 n_bytes = tiled + 2 * plain + (size_t)frit_pool_size(pool) * own + 64;
    if (n_bytes > covariance->tiles_bytes) {   // first call only
        free(covariance->tiles);
        covariance->tiles_bytes = 0;
        covariance->tiles = malloc(n_bytes);
        if (!covariance->tiles) return frit_fail_memory(n_bytes, "rows of products");
        covariance->tiles_bytes = n_bytes;
    }
    uint8_t *at = aligned(covariance->tiles);
    *a = (adding){.columns = columns,
                  .dense = dense,
                  .x = {.tiled = at, .plain = at + tiled, .width = most},
                  .z = {.plain = at + tiled + plain, .width = most},
                  .own = at + tiled + 2 * plain,
                  .own_bytes = own};
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- rows

static void form_part(void *ctx, int thread, int n_threads)
{
    const adding *a = ctx;
    const frit_covariance_columns *c = a->columns;
    const size_t n_zeros = (size_t)(a->n - c->n) * sizeof(float);
    for (int64_t i = c->width * thread / n_threads; i < c->width * (thread + 1) / n_threads; i++) {
        float *x = c->x + i * c->stride, *z = c->z ? c->z + i * c->stride : NULL;
        memset(x + c->n, 0, n_zeros);
        frit_dense_make_tiled(a->dense, a->x, i, x, a->first, a->n);
        frit_dense_make_plain(a->x, i, x, a->first, a->n);
        if (!z) continue;
        memset(z + c->n, 0, n_zeros);
        frit_dense_make_plain(a->z, i, z, a->first, a->n);
    }
}

frit_status frit_covariance_form_tiles(frit_covariance *covariance, const frit_covariance_columns *columns,
                                       frit_pool *pool)
{
    const int64_t n = (columns->n + 31) / 32 * 32;
    adding a;
    if (covariance->n_formed + n > (covariance->gathers ? MOST : FEW))
        frit_covariance_add_tiles(covariance, columns, pool);
    FRIT_TRY(prepare_forms(covariance, columns, pool, &a));
    a.first = covariance->n_formed;
    a.n = n;
    frit_pool_run(pool, form_part, &a);
    covariance->n_formed += n;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- sums

// Adds a block to the lower triangle. Parts above the diagonal are left out.
static void add_own(const adding *a, frit_dense_block rows, frit_dense_block columns, float *y, uint8_t *scratch)
{
    const int64_t width = a->columns->width;
    frit_dense_tile_dots(a->dense, a->x, rows, a->x, columns, y, COLUMNS, scratch);
    for (int64_t i = rows.first; i < rows.first + rows.n; i++) {
        const int64_t n = frit_min_i64(columns.n, i + 1 - columns.first);
        float *sums = a->columns->sums + i * width + columns.first;
        const float *own = y + (i - rows.first) * COLUMNS;
        for (int64_t j = 0; j < n; j++) sums[j] += own[j];
    }
}

static void add_cross(const adding *a, frit_dense_block rows, frit_dense_block columns, float *y, uint8_t *scratch)
{
    const int64_t width = a->columns->width;
    frit_dense_tile_dots(a->dense, a->x, rows, a->z, columns, y, COLUMNS, scratch);
    for (int64_t i = 0; i < rows.n; i++)
        for (int64_t j = 0; j < columns.n; j++)
            a->columns->cross[(rows.first + i) * width + columns.first + j] += y[i * COLUMNS + j];
}

// Threads claim blocks one by one, so that none waits long for a slow core.
static void add_part(void *ctx, int thread, int n_threads)
{
    (void)n_threads;
    adding *a = ctx;
    const int64_t width = a->columns->width, n_columns = (width + COLUMNS - 1) / COLUMNS;
    const int64_t n_blocks = (width + ROWS - 1) / ROWS * n_columns;
    uint8_t *scratch = a->own + (size_t)thread * a->own_bytes;
    float *y = (float *)(void *)(scratch + frit_dense_tile_scratch_bytes());
    for (int64_t n; (n = atomic_fetch_add(&a->next, 1)) < n_blocks;) {
        const int64_t i = n / n_columns * ROWS, j = n % n_columns * COLUMNS;
        const frit_dense_block rows = {i, frit_min_i64(ROWS, width - i)},
                               columns = {j, frit_min_i64(COLUMNS, width - j)};
        if (j < i + rows.n) add_own(a, rows, columns, y, scratch);
        if (a->columns->z) add_cross(a, rows, columns, y, scratch);
    }
}

void frit_covariance_add_tiles(frit_covariance *covariance, const frit_covariance_columns *columns, frit_pool *pool)
{
    adding a;
    // Memory was reserved before.
    if (covariance->n_formed == 0 || prepare_forms(covariance, columns, pool, &a) != FRIT_OK) return;
    a.x.n = a.z.n = covariance->n_formed;
    frit_pool_run(pool, add_part, &a);
    covariance->n_formed = 0;
}

// ------------------------------------------------------------------------------------- the upper triangle

typedef struct mirroring {
    float *sums;
    int64_t width;
    _Atomic int64_t next;
} mirroring;

// Copies squares, so that writes stay in the cache.
static void mirror_part(void *ctx, int thread, int n_threads)
{
    (void)thread, (void)n_threads;
    mirroring *m = ctx;
    for (int64_t r; (r = SQUARE * atomic_fetch_add(&m->next, 1)) < m->width;)
        for (int64_t c = 0; c <= r; c += SQUARE)
            for (int64_t j = c; j < frit_min_i64(c + SQUARE, m->width); j++)
                for (int64_t i = r > j ? r : j + 1; i < frit_min_i64(r + SQUARE, m->width); i++)
                    m->sums[j * m->width + i] = m->sums[i * m->width + j];
}

void frit_covariance_mirror(float *sums, int64_t width, frit_pool *pool)
{
    mirroring m = {.sums = sums, .width = width};
    frit_pool_run(pool, mirror_part, &m);
}
