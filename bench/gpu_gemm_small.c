// SPDX-License-Identifier: MIT
// Times small gemms (gemm_small.cu), each alone, and the conversion of weights to f16 for cuBLASLt.
#include "backend/cuda/ops/gemm_cublas.h"
#include "backend/cuda/ops/gemm_small.h"
#include "gpu_gemm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
// The first variant is the backend's choice.
static const struct variant { const char *name; int tiles, warps, splits, stages; bool is_exact; } variants[] = {
    {"chosen",               0, 0,  0, 0, false},
    {"scales not rounded",   0, 0,  0, 0, true},
    {"1 x 12",               1, 12, 0, 0, false},
    {"1 x 14",               1, 14, 0, 0, false},
    {"1 x 16",               1, 16, 0, 0, false},
    {"1 x 16, two stages",   1, 16, 0, 2, false},
    {"2 x 8",                2, 8,  0, 0, false},
    {"2 x 12",               2, 12, 0, 0, false},
};
// clang-format on

static const int row_counts[] = {8, 16, 32, 64, 128};

enum { MAX_CASES = 256, MAX_LAUNCHES = 48 };

typedef struct test_case {
    char text[128];
    frit_cuda_kernel kernel;
    int rows;   // 0: converts tiles to f16
    uint64_t matrix_bytes;
} test_case;

typedef struct job {
    const test_case *c;
    uint64_t weights, x, out;
    int n_launches;
} job;

static void record(bench *b, void *ctx)
{
    const job *j = ctx;
    for (int i = 0; i < j->n_launches; i++) {
        const uint64_t weights = j->weights + (uint64_t)i * j->c->matrix_bytes;
        const frit_gemm_args args = {.weights = {weights}, .x = j->x, .out = j->out, .n_rows = j->c->rows};
        const frit_dequantize_args dequantize = {.tiles = weights, .out = j->out};
        must(frit_cuda_kernel_launch(&b->gpu, &j->c->kernel, b->stream,
                                     j->c->rows ? (const void *)&args : (const void *)&dequantize, FRIT_CUDA_IN_ORDER));
    }
}

// Describes the case. Returns false if it is not selected, or does not fit.
static bool describe(bench *b, const struct shape *shape, frit_dtype dtype, int rows, const struct variant *v,
                     const char *filter, test_case *c)
{
    const frit_tile_source source = {.n_rows = shape->n_rows, .n_columns = shape->k};
    const char *name = frit_dtype_get(dtype)->name;
    frit_cuda_gemm_small some = {.rows = rows,
                                 .k = shape->k,
                                 .segments = {{dtype, shape->n_rows / 16}},
                                 .tiles = v->tiles,
                                 .warps = v->warps,
                                 .splits = v->splits,
                                 .stages = v->stages,
                                 .is_exact = v->is_exact};
    frit_cuda_matmul matmul = {.k = shape->k, .in = FRIT_CUDA_F16, .segments = {{dtype, shape->n_rows / 16}}};
    c->rows = rows;
    c->matrix_bytes = frit_tile_bytes(frit_tile_format_of(dtype), &source) * (uint64_t)frit_tile_count(&source);
    if (rows) {
        if (frit_cuda_gemm_small_kernel(&some, &b->gpu, &c->kernel) != FRIT_OK) return false;
        snprintf(c->text, sizeof c->text, "%s | %s | %d | %s: %d tiles, %d warps, %d parts, %d stages", name,
                 shape->name, rows, v->name, some.tiles, some.warps, some.splits, some.stages);
    } else {
        must(frit_cuda_matmul_describe(&matmul));
        c->kernel = matmul.dequantize[0];
        snprintf(c->text, sizeof c->text, "%s | %s | | to f16", name, shape->name);
    }
    return strcmp(filter, ".") == 0 || strstr(c->text, filter);
}

static size_t list_cases(bench *b, frit_dtype dtype, const char *filter, test_case *cases)
{
    size_t n = 0;
    for (size_t s = 0; s < FRIT_COUNT(shapes); s++) {
        for (size_t r = 0; r < FRIT_COUNT(row_counts); r++)
            for (size_t v = 0; v < FRIT_COUNT(variants) && n < MAX_CASES; v++)
                if (v == 0 || dtype == FRIT_DTYPE_Q4_K || dtype == FRIT_DTYPE_Q6_K)
                    n += describe(b, &shapes[s], dtype, row_counts[r], &variants[v], filter, &cases[n]);
        if (n < MAX_CASES) n += describe(b, &shapes[s], dtype, 0, &variants[0], filter, &cases[n]);
    }
    return n;
}

static void run_type(bench *b, frit_dtype dtype, const char *filter, test_case *cases)
{
    const size_t n = list_cases(b, dtype, filter, cases);
    if (n == 0) return;
    frit_cuda_kernel *kernels[MAX_CASES];
    for (size_t i = 0; i < n; i++) kernels[i] = &cases[i].kernel;
    make_kernels(b, kernels, n);
    const uint64_t tile = (uint64_t)frit_tile_format_of(dtype)->tile_bytes, room = 6000000000ull / tile * tile;
    const uint64_t x_bytes = FRIT_CUDA_GEMM_SMALL_ROWS * 14336 * 2;
    job j = {.weights = device_alloc(b, room), .x = device_alloc(b, x_bytes)};
    j.out = device_alloc(b, 128256ull * 4096 * 2);   // of f16 matrices; results take less
    fill_tiles(b, dtype, j.weights, room, 0.02f, 1);
    fill_16_bits(b, j.x, x_bytes, 1, true, 2);
    for (size_t i = 0; i < n; i++) {
        j.c = &cases[i];
        j.n_launches = (int)(room / cases[i].matrix_bytes);
        if (j.n_launches > MAX_LAUNCHES) j.n_launches = MAX_LAUNCHES;
        const double us = time_graph(b, record, &j, 7) / j.n_launches;
        const double gbs = (double)cases[i].matrix_bytes / us / 1000;
        printf("| %s | %.1f | %.0f | %.1f %% |\n", cases[i].text, us, gbs, 100 * gbs / b->read_gbs);
    }
    device_free(b, j.weights);
    device_free(b, j.x);
    device_free(b, j.out);
    frit_cuda_kernels_free(&b->gpu, kernels, n);
    fflush(stdout);
}

void bench_gemm_small(bench *b, const char *filter)
{
    test_case *cases = calloc(MAX_CASES, sizeof *cases);
    if (!cases) must(frit_fail_memory(MAX_CASES * sizeof *cases, "the table"));
    bench_probe(b);
    printf("| type | product | rows | variant | us | GB/s | of the probe |\n|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < FRIT_COUNT(types); i++) run_type(b, types[i], filter, cases);
    printf("\n");
    free(cases);
}
