// SPDX-License-Identifier: MIT
// Factors H = U D U^T in blocks of columns, from the last to the first.
//
// With R = U sqrt(D), column k of R is (H[:, k] - sum of R[:, j] R[k, j] over j > k) / R[k, k]. The sum over later
// blocks is a product of rows; within a block it is computed column by column.
#include "quantize/refine_rows.h"
#include "backend/cpu/pack/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 128, ROWS = 32 };   // columns of a block; rows that a thread claims at a time

typedef struct factoring {
    const frit_refine_input *input;
    float *r;   // [width, width]
    int64_t begin, end;
} factoring;

static void divide_rows(int64_t n, int thread, int n_threads, int64_t *begin, int64_t *end)
{
    *begin = n * thread / n_threads;
    *end = n * (thread + 1) / n_threads;
}

// Subtracts the part of later blocks from columns [begin, end) of rows [first, last).
static void subtract_later_rows(const factoring *f, int64_t first, int64_t last)
{
    const frit_refine_input *in = f->input;
    const int64_t n = in->width, n_columns = f->end - f->begin, n_after = n - f->end;
    float sums[ROWS][COLUMNS] = {{0}};
    const frit_dense_rows own = {f->r + first * n + f->end, last - first, n};
    const frit_dense_rows others = {f->r + f->begin * n + f->end, n_columns, n};
    if (n_after > 0) frit_dense_dots(&in->dense, own, others, n_after, sums[0], COLUMNS);
    for (int64_t i = first; i < last; i++) {
        float *row = f->r + i * n;
        for (int64_t k = f->begin; k < f->end; k++) row[k] = in->sums[i * n + k] - sums[i - first][k - f->begin];
        if (i >= f->begin) row[i] += in->damping;
    }
}

static void subtract_later_part(void *ctx, int thread, int n_threads)
{
    const factoring *f = ctx;
    for (int64_t first = (int64_t)thread * ROWS; first < f->end; first += (int64_t)n_threads * ROWS)
        subtract_later_rows(f, first, first + ROWS < f->end ? first + ROWS : f->end);
}

// Finishes row i of the block's columns, after the block's own rows.
static void finish_row(const factoring *f, int64_t i)
{
    const int64_t n = f->input->width, n_columns = f->end - f->begin;
    float *row = f->r + i * n + f->begin;
    for (int64_t k = n_columns; k-- > 0;) {
        const float *column = f->r + (f->begin + k) * n + f->begin;   // stored as rows (finish_block)
        row[k] /= column[k];
        for (int64_t j = 0; j < k; j++) row[j] -= row[k] * column[j];
    }
}

// Computes R of the block's own rows. Its columns are stored as rows in the lower triangle.
static void finish_block(const factoring *f)
{
    const int64_t n = f->input->width, n_columns = f->end - f->begin;
    float *block = f->r + f->begin * n + f->begin;
    for (int64_t k = n_columns; k-- > 0;) {
        float *own = block + k * n;
        const float pivot = own[k] > f->input->damping ? own[k] : f->input->damping;   // a lower bound
        own[k] = sqrtf(pivot);
        for (int64_t i = 0; i < k; i++) own[i] = block[i * n + k] /= own[k];
        for (int64_t i = 0; i < k; i++)
            for (int64_t j = 0; j <= i; j++) block[j * n + i] -= own[i] * own[j];
    }
}

static void finish_rows(void *ctx, int thread, int n_threads)
{
    const factoring *f = ctx;
    int64_t first, last;
    divide_rows(f->begin, thread, n_threads, &first, &last);
    for (int64_t i = first; i < last; i++) finish_row(f, i);
}

// Copies U from the upper triangle to the lower one.
static void mirror_rows(void *ctx, int thread, int n_threads)
{
    const factoring *f = ctx;
    const int64_t n = f->input->width;
    int64_t first, last;
    divide_rows(n, thread, n_threads, &first, &last);
    for (int64_t i = first; i < last; i++)
        for (int64_t j = 0; j < i; j++) f->r[i * n + j] = f->r[j * n + i];
}

static void scale_rows(void *ctx, int thread, int n_threads)
{
    const factoring *f = ctx;
    const int64_t n = f->input->width;
    int64_t first, last;
    divide_rows(n, thread, n_threads, &first, &last);
    for (int64_t i = first; i < last; i++)
        for (int64_t j = i + 1; j < n; j++) f->r[i * n + j] /= f->input->diagonal[j];
}

static void find_damping(frit_refine_input *input)
{
    double sum = 0;
    for (int64_t i = 0; i < input->width; i++) sum += (double)input->sums[i * input->width + i];
    input->damping = (float)(0.01 * sum / (double)input->width);
}

// ------------------------------------------------------------------------------------- tiles

typedef struct tiling {
    const frit_refine_input *input;
    const float *from;
    uint8_t *to;
} tiling;

static void make_tiles(void *ctx, int thread, int n_threads)
{
    const tiling *t = ctx;
    const int64_t n = t->input->width;
    const frit_dense_forms forms = {.tiled = t->to, .width = n};
    int64_t first, last;
    divide_rows(n, thread, n_threads, &first, &last);
    for (int64_t i = first; i < last; i++) frit_dense_make_tiled(&t->input->dense, forms, i, t->from + i * n, 0, n);
}

static frit_status add_tiles_of(frit_refine_input *input, const float *from, uint8_t **to, frit_pool *pool)
{
    if (!from) return FRIT_OK;
    *to = frit_cpu_memory_new(input->tiles.n_bytes);
    if (!*to) return frit_fail_memory((size_t)input->tiles.n_bytes, "covariance in tiles");
    frit_pool_run(pool, make_tiles, &(tiling){input, from, *to});
    return FRIT_OK;
}

static frit_status add_tiles(frit_refine_input *input, frit_pool *pool)
{
    frit_refine_tiles *tiles = &input->tiles;
    const int64_t from = input->tiles_from > 0 ? input->tiles_from : FRIT_REFINE_TILES_FROM;
    const struct {
        const float **from;
        uint8_t **to;
    } all[] = {{&input->cross, &tiles->cross}, {&input->held, &tiles->held}, {&input->held_cross, &tiles->held_cross}};
    if (!input->dense.run_tiles || input->width < from || input->width % 32 != 0) return FRIT_OK;
    tiles->n_bytes = frit_dense_tiled_bytes(&input->dense, input->width, input->width);
    for (size_t i = 0; i < FRIT_COUNT(all); i++) {
        FRIT_TRY(add_tiles_of(input, *all[i].from, all[i].to, pool));
        if (!input->drop || !*all[i].from) continue;
        input->drop(input->drop_ctx, *all[i].from);
        *all[i].from = NULL;
    }
    return add_tiles_of(input, input->sums, &tiles->sums, pool);
}

frit_status frit_refine_factor(frit_refine_input *input, frit_pool *pool)
{
    const int64_t n = input->width;
    find_damping(input);
    if (!(input->damping > 0) || !isfinite(input->damping))
        return frit_fail(FRIT_E_INVALID, "a covariance has a mean diagonal of %g, expected a positive number",
                         100 * (double)input->damping);
    FRIT_TRY(add_tiles(input, pool));   // before the factor: dropped matrices make room for it
    input->factor = frit_cpu_memory_new((uint64_t)(n * n) * sizeof(float));
    input->diagonal = malloc((size_t)n * sizeof(float));
    if (!input->factor || !input->diagonal) return frit_fail_memory((size_t)(n * n) * sizeof(float), "a factor");
    factoring f = {.input = input, .r = input->factor, .end = n};
    for (; f.end > 0; f.end = f.begin) {
        f.begin = f.end > COLUMNS ? f.end - COLUMNS : 0;
        frit_pool_run(pool, subtract_later_part, &f);
        finish_block(&f);
        frit_pool_run(pool, finish_rows, &f);
    }
    for (int64_t i = 0; i < n; i++) input->diagonal[i] = f.r[i * n + i];
    frit_pool_run(pool, scale_rows, &f);
    frit_pool_run(pool, mirror_rows, &f);
    for (int64_t i = 0; i < n; i++) input->diagonal[i] *= input->diagonal[i];
    return FRIT_OK;
}

void frit_refine_input_free(frit_refine_input *input)
{
    frit_cpu_memory_free(input->factor, (uint64_t)(input->width * input->width) * sizeof(float));
    free(input->diagonal);
    input->factor = input->diagonal = NULL;
    uint8_t *const tiles[] = {input->tiles.sums, input->tiles.cross, input->tiles.held, input->tiles.held_cross};
    for (size_t i = 0; i < FRIT_COUNT(tiles); i++) frit_cpu_memory_free(tiles[i], input->tiles.n_bytes);
    input->tiles = (frit_refine_tiles){0};
}
