// SPDX-License-Identifier: MIT
// Checks all weight types: tiles made on the GPU equal those of plain C, bit for bit, and products and decoded numbers
// agree with src/quant. Also measures the speed of making tiles.
#include "backend/cuda/ops/gemm_small.h"
#include "backend/cuda/ops/gemm_wgmma.h"
#include "base/time.h"
#include "base/rng.h"
#include "gpu.h"
#include "quant/half.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const frit_dtype types[] = {
#define TILE(NAME, ...) FRIT_DTYPE_##NAME,
#include "backend/cuda/kernels/include/tiles.def"
#undef TILE
};

enum { N_ROWS = 80, MAX_K = 576, MAX_ROWS = 16 };

typedef struct matrix {
    frit_dtype dtype;
    int k;
    uint8_t *blocks;
    float *numbers;   // [N_ROWS, k]
    uint64_t tiles;
} matrix;

static void *take(size_t n)
{
    void *p = calloc(n, 1);
    if (!p) must(frit_fail_memory(n, "a matrix"));
    return p;
}

static void make_matrix(bench *b, matrix *m, frit_dtype dtype, frit_rng *rng)
{
    const frit_dtype_info *type = frit_dtype_get(dtype);
    *m = (matrix){.dtype = dtype, .k = type->block_elems <= 32 ? MAX_K : 512};
    const size_t n = (size_t)(N_ROWS * m->k);
    m->blocks = take((size_t)frit_dtype_row_bytes(dtype, m->k) * N_ROWS);
    m->numbers = take(n * sizeof *m->numbers);
    for (size_t i = 0; i < n; i++) m->numbers[i] = (float)(frit_rng_double(rng) * 2 - 1) * 0.1f;
    type->encode(m->numbers, m->blocks, (int64_t)n, NULL);
    type->decode(m->blocks, m->numbers, (int64_t)n);
    m->tiles = device_alloc(b, N_ROWS * 1024 * 4);
}

// Index of the first byte that differs from plain C, in any order of rows; -1: none.
static int compare_tiles(bench *b, const matrix *m)
{
    const frit_tile_format *format = frit_tile_format_of(m->dtype);
    for (frit_cuda_row_order order = FRIT_CUDA_ORDER_NATURAL; order <= FRIT_CUDA_ORDER_GATED; order++) {
        // Rows that do not fill the last tile, and two matrices.
        const int n_rows = order == FRIT_CUDA_ORDER_GATED     ? N_ROWS / 2
                           : order == FRIT_CUDA_ORDER_NATURAL ? N_ROWS - 9
                                                              : N_ROWS;
        const uint8_t *second = m->blocks + (size_t)frit_dtype_row_bytes(m->dtype, m->k) * (N_ROWS / 2);
        const frit_tile_source source = {.blocks = m->blocks,
                                         .second = second,
                                         .n_rows = n_rows,
                                         .n_columns = m->k,
                                         .order = order,
                                         .head_size = 16};
        const int64_t n = frit_tile_count(&source);
        const size_t n_bytes = (size_t)(frit_tile_bytes(format, &source) * (uint64_t)n);
        uint8_t *expected = take(n_bytes), *found = take(n_bytes);
        int wrong = -1;
        frit_tile_pack(format, &source, 0, n, expected);
        must(frit_cuda_load_tiles(&b->loader, m->dtype, &source, m->tiles));
        must(frit_cuda_loader_wait(&b->loader));
        download(b, found, m->tiles, n_bytes);
        for (size_t i = 0; i < n_bytes && wrong < 0; i++)
            if (found[i] != expected[i]) wrong = (int)i;
        free(expected);
        free(found);
        if (wrong >= 0) return wrong;
    }
    const frit_tile_source whole = {.blocks = m->blocks, .n_rows = N_ROWS, .n_columns = m->k};
    must(frit_cuda_load_tiles(&b->loader, m->dtype, &whole, m->tiles));
    must(frit_cuda_loader_wait(&b->loader));
    return -1;
}

// Sum of squared differences over sum of squares.
static double compare_product(bench *b, const matrix *m, int rows, frit_rng *rng)
{
    static float x[MAX_ROWS * MAX_K], y[MAX_ROWS * N_ROWS];
    frit_cuda_kernel kernel, *all[] = {&kernel};
    const frit_cuda_product product = {.rows = rows, .k = m->k, .segments = {{m->dtype, N_ROWS / 16}}};
    must(frit_cuda_product_kernel(&product, &b->gpu, &kernel));
    make_kernels(b, all, 1);
    for (int i = 0; i < rows * m->k; i++) x[i] = (float)(frit_rng_double(rng) * 2 - 1);
    const uint64_t from = device_alloc(b, sizeof x), to = device_alloc(b, sizeof y);
    upload(b, from, x, sizeof x);
    const frit_product_args args = {.weights = {m->tiles}, .x = from, .out = to, .n_rows = rows};
    must(frit_cuda_kernel_launch(&b->gpu, &kernel, b->stream, &args, FRIT_CUDA_IN_ORDER));
    download(b, y, to, sizeof y);
    double error = 0, squares = 0;
    for (int i = 0; i < rows * N_ROWS; i++) {
        double sum = 0;
        for (int k = 0; k < m->k; k++) sum += (double)x[i / N_ROWS * m->k + k] * m->numbers[i % N_ROWS * m->k + k];
        error += pow(y[i] - sum, 2);
        squares += sum * sum;
    }
    frit_cuda_kernels_free(&b->gpu, all, 1);
    device_free(b, from);
    device_free(b, to);
    return error / squares;
}

// Rows in slabs, as slabs.cuh has them.
static uint16_t *slabs_of(const uint16_t *x, int rows, int k)
{
    const int slab_rows = (rows + 7) / 8 * 8;
    uint16_t *to = take((size_t)slab_rows * (size_t)k * sizeof *to);
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < k; column++) {
            const int pair = column % 16 / 2, unit = column % 64 / 16 * 2 + pair % 2,
                      at = (column / 64 * slab_rows + row) * 64 + (unit ^ row % 8) * 8 + pair / 2 * 2 + column % 2;
            to[at] = x[row * k + column];
        }
    return to;
}

// The error of gemm_small.cu or, in_slabs, of gemm_wgmma.cu. Results are in n_parts parts.
static double compare_gemm(bench *b, const matrix *m, frit_cuda_kernel *kernel, int rows, int n_parts, bool in_slabs,
                           frit_rng *rng)
{
    frit_cuda_kernel *all[] = {kernel};
    make_kernels(b, all, 1);
    const size_t n_x = (size_t)(rows * m->k), n_y = (size_t)(rows * N_ROWS);
    uint16_t *x = take(sizeof *x * n_x);
    float *y = take((size_t)n_parts * n_y * sizeof *y);
    for (size_t i = 0; i < n_x; i++) x[i] = frit_float_to_half((float)(frit_rng_double(rng) * 2 - 1));
    uint16_t *const slabs = in_slabs ? slabs_of(x, rows, m->k) : NULL;
    const size_t x_bytes = sizeof *x * (size_t)((in_slabs ? (rows + 7) / 8 * 8 : rows) * m->k);
    const uint64_t from = device_alloc(b, x_bytes), to = device_alloc(b, (size_t)n_parts * n_y * sizeof *y);
    upload(b, from, slabs ? slabs : x, x_bytes);
    free(slabs);
    const frit_gemm_args args = {.weights = {m->tiles}, .x = from, .out = to, .n_rows = rows};
    must(frit_cuda_kernel_launch(&b->gpu, kernel, b->stream, &args, FRIT_CUDA_IN_ORDER));
    download(b, y, to, (size_t)n_parts * n_y * sizeof *y);
    double error = 0, squares = 0;
    for (size_t i = 0; i < n_y; i++) {
        const uint16_t *row = x + i / N_ROWS * (size_t)m->k;
        const float *numbers = m->numbers + i % N_ROWS * (size_t)m->k;
        double sum = 0, found = 0;
        for (int k = 0; k < m->k; k++) sum += (double)frit_half_to_float(row[k]) * numbers[k];
        for (int part = 0; part < n_parts; part++) found += y[(size_t)part * n_y + i];
        error += pow(found - sum, 2);
        squares += sum * sum;
    }
    if (!(error / squares < 1e-6)) {
        printf("%s:", kernel->file);
        for (int i = 0; i < kernel->n_defines; i++) printf(" %s", kernel->defines[i]);
        printf(": %d rows, error %.2e\n", rows, error / squares);
    }
    frit_cuda_kernels_free(&b->gpu, all, 1);
    device_free(b, from);
    device_free(b, to);
    free(x);
    free(y);
    return error / squares;
}

// Checks gemm_small.cu from 9 rows on, with splits if there are several blocks of columns.
static double compare_some(bench *b, const matrix *m, int rows, frit_rng *rng)
{
    frit_cuda_kernel kernel;
    frit_cuda_gemm_small some = {
        .rows = (rows + 7) / 8 * 8, .k = m->k, .segments = {{m->dtype, N_ROWS / 16}}, .splits = 2};
    must(frit_cuda_gemm_small_kernel(&some, &b->gpu, &kernel));
    return compare_gemm(b, m, &kernel, rows, some.splits, false, rng);
}

// Checks gemm_wgmma.cu in a shape that depends on the number of rows.
static double compare_wgmma(bench *b, const matrix *m, int rows, frit_rng *rng)
{
    frit_cuda_kernel kernel;
    if (!frit_cuda_gemm_is_wgmma(&b->gpu, m->k)) return 0;
    frit_cuda_gemm_wgmma some = {.n_rows = rows,
                                 .rows = rows < 128   ? (rows + 31) / 32 * 32
                                         : rows > 200 ? 256
                                                      : 64,
                                 .k = m->k,
                                 .segments = {{m->dtype, N_ROWS / 16}},
                                 .tiles = rows > 200 ? 1 : 1 + rows % 2,
                                 .splits = 1 + rows % 3 % 2};
    must(frit_cuda_gemm_wgmma_kernel(&some, &b->gpu, &kernel));
    return compare_gemm(b, m, &kernel, rows, some.splits, true, rng);
}

// Number of f16 or bf16 numbers that differ from plain C.
static int compare_numbers(bench *b, const matrix *m, bool is_f16)
{
    const size_t n = (size_t)(N_ROWS * m->k);
    uint16_t *found = take(n * 2);
    const uint64_t to = device_alloc(b, n * 2);
    frit_cuda_kernel kernel = {.file = "dequantize.cu",
                               .name = "dequantize",
                               .grid = {(unsigned)(N_ROWS / 16 * ((m->k + 255) / 256)), 1, 1},
                               .threads = 256},
                     *all[] = {&kernel};
    frit_cuda_define(&kernel, "TYPE0", frit_dtype_get(m->dtype)->gguf_id);
    frit_cuda_define(&kernel, "K", m->k);
    frit_cuda_define(&kernel, "IS_F16", is_f16);
    make_kernels(b, all, 1);
    const frit_dequantize_args args = {.tiles = m->tiles, .out = to};
    must(frit_cuda_kernel_launch(&b->gpu, &kernel, b->stream, &args, FRIT_CUDA_IN_ORDER));
    download(b, found, to, n * 2);
    int n_wrong = 0;
    for (size_t i = 0; i < n; i++) {   // half a unit, and a little for fused operations
        const float value = is_f16 ? frit_half_to_float(found[i]) : frit_bf16_to_float(found[i]);
        n_wrong += !(fabsf(value - m->numbers[i]) <= fabsf(m->numbers[i]) * (is_f16 ? 0.0005f : 0.0040f) + 1e-6f);
    }
    free(found);
    frit_cuda_kernels_free(&b->gpu, all, 1);
    device_free(b, to);
    return n_wrong;
}

int check_types(bench *b, const char *filter)
{
    static const int row_counts[] = {1, 5, 8, 9, 16};
    frit_rng rng;
    int n_faults = 0;
    frit_rng_init(&rng, 11);
    must(frit_cuda_loader_prepare(&b->loader, types, FRIT_COUNT(types)));
    for (size_t i = 0; i < FRIT_COUNT(types); i++) {
        matrix m;
        if (strcmp(filter, ".") != 0 && strcmp(filter, frit_dtype_get(types[i])->name) != 0) continue;
        make_matrix(b, &m, types[i], &rng);
        const int wrong = compare_tiles(b, &m), n_wrong = compare_numbers(b, &m, true) + compare_numbers(b, &m, false);
        double worst = 0;
        for (size_t r = 0; r < FRIT_COUNT(row_counts); r++) {
            const double error = compare_product(b, &m, row_counts[r], &rng);
            if (!(error <= worst)) worst = error;
        }
        static const int some_counts[] = {12, 43, 100};
        double some = 0;
        for (size_t r = 0; r < FRIT_COUNT(some_counts) && types[i] != FRIT_DTYPE_F32; r++) {
            const double error = compare_some(b, &m, some_counts[r], &rng);
            if (!(error <= some)) some = error;
        }
        static const int wgmma_counts[] = {17, 43, 64, 100, 127, 200, 300, 302};
        for (size_t r = 0; r < FRIT_COUNT(wgmma_counts) && types[i] != FRIT_DTYPE_F32; r++) {
            const double error = compare_wgmma(b, &m, wgmma_counts[r], &rng);
            if (!(error <= some)) some = error;
        }
        const bool is_good = wrong < 0 && n_wrong == 0 && worst < 1e-7 && some < 3e-7;
        printf("check %s: tiles differ at %d, %d wrong numbers, error of products %.2e, of 12 to 200 rows %.2e: %s\n",
               frit_dtype_get(types[i])->name, wrong, n_wrong, worst, some, is_good ? "good" : "WRONG");
        fflush(stdout);
        n_faults += !is_good;
        device_free(b, m.tiles);
        free(m.blocks);
        free(m.numbers);
    }
    printf("\n");
    return n_faults;
}

// ------------------------------------------------------------------------------- speed

typedef struct load_job {
    frit_cuda_kernel kernel;
    frit_repack_args args;
} load_job;

static void record_repack(bench *b, void *ctx)
{
    const load_job *job = ctx;
    for (int i = 0; i < 8; i++)
        must(frit_cuda_kernel_launch(&b->gpu, &job->kernel, b->stream, &job->args, FRIT_CUDA_IN_ORDER));
}

void bench_load(bench *b)
{
    enum { K = 4096, ROWS = 65536 };
    const uint64_t most = (uint64_t)ROWS * K * 2;
    uint8_t *blocks = take((size_t)most);
    const uint64_t to = device_alloc(b, (uint64_t)ROWS * K * 4), raw = device_alloc(b, most);
    memset(blocks, 0x5a, (size_t)most);
    printf("| weights to tiles | the kernel, GB/s of blocks | from host memory, GB/s |\n|---|---|---|\n");
    for (size_t i = 0; i < FRIT_COUNT(types); i++) {
        const frit_dtype_info *type = frit_dtype_get(types[i]);
        if (types[i] == FRIT_DTYPE_F32) continue;
        const uint64_t row_bytes = frit_dtype_row_bytes(types[i], K), n_bytes = row_bytes * ROWS;
        const frit_tile_source source = {.blocks = blocks, .n_rows = ROWS, .n_columns = K};
        must(frit_cuda_load_tiles(&b->loader, types[i], &source, to));
        must(frit_cuda_loader_wait(&b->loader));
        const double begin = (double)frit_time_ns() / 1e9;
        must(frit_cuda_load_tiles(&b->loader, types[i], &source, to));
        must(frit_cuda_loader_wait(&b->loader));
        const double seconds = (double)frit_time_ns() / 1e9 - begin;
        load_job job = {.kernel = *b->loader.kernels[types[i]],
                        .args = {.blocks = raw,
                                 .grid = b->loader.grids[types[i]],
                                 .out = to,
                                 .n_rows = ROWS,
                                 .n_tiles = ROWS / 16,
                                 .row_bytes = (int64_t)row_bytes,
                                 .n_columns = K,
                                 .bytes_of_256 = (int)(256 / type->block_elems * type->block_bytes),
                                 .head_pairs = 64}};
        const uint64_t n_units = ROWS / 16 * frit_tile_bytes(frit_tile_format_of(types[i]), &source) / 16;
        job.kernel.grid[0] = (unsigned)((n_units + 255) / 256);
        const double us = time_graph(b, record_repack, &job, 5) / 8;
        printf("| %s | %.0f | %.1f |\n", type->name, (double)n_bytes / us / 1000, (double)n_bytes / seconds / 1e9);
    }
    printf("\n");
    device_free(b, to);
    device_free(b, raw);
    free(blocks);
}
