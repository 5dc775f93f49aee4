// SPDX-License-Identifier: MIT
// Times products of warpgroups (gemm_wgmma.cu), each alone, in the shapes of blocks that are fastest by estimate.
#include "backend/cuda/ops/gemm_wgmma.h"
#include "gpu_gemm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int row_counts[] = {32, 64, 96, 128, 192, 256, 320, 512, 2048};

enum { MAX_CASES = 1024, MAX_LAUNCHES = 32, VARIANTS = 8, MAX_ROWS = 2048 };

typedef struct test_case {
    char text[160];
    frit_cuda_kernel kernel;
    int rows;
    uint64_t matrix_bytes;
    double flops;
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
        must(frit_cuda_kernel_launch(&b->gpu, &j->c->kernel, b->stream, &args, FRIT_CUDA_OVERLAPPING));
    }
}

// Adds the variants of a product that are fastest by estimate, if the filter selects them.
static size_t add_cases(bench *b, const struct shape *shape, frit_dtype dtype, int rows, const char *filter,
                        test_case *cases, size_t n)
{
    const frit_tile_source source = {.n_rows = shape->n_rows, .n_columns = shape->k};
    const frit_cuda_gemm_wgmma wanted = {.n_rows = rows, .k = shape->k, .segments = {{dtype, shape->n_rows / 16}}};
    frit_cuda_gemm_wgmma found[VARIANTS];
    const int n_found = frit_cuda_gemm_wgmma_candidates(&wanted, &b->gpu, found, VARIANTS);
    for (int i = 0; i < n_found && n < MAX_CASES; i++) {
        test_case *c = &cases[n];
        frit_cuda_gemm_wgmma *s = &found[i];
        must(frit_cuda_gemm_wgmma_kernel(s, &b->gpu, &c->kernel));
        c->rows = rows;
        c->matrix_bytes = frit_tile_bytes(frit_tile_format_of(dtype), &source) * (uint64_t)frit_tile_count(&source);
        c->flops = 2.0 * shape->n_rows * shape->k * rows;
        snprintf(c->text, sizeof c->text,
                 "%s | %s | %d | %d: blocks of %d rows, %d x %d tiles, %d parts, %d stages, %d at once",
                 frit_dtype_get(dtype)->name, shape->name, rows, i, s->rows, s->warps, s->tiles, s->splits, s->stages,
                 s->at_once);
        n += strcmp(filter, ".") == 0 || strstr(c->text, filter);
    }
    return n;
}

static void run_type(bench *b, frit_dtype dtype, const char *filter, test_case *cases)
{
    size_t n = 0;
    for (size_t s = 0; s < FRIT_COUNT(shapes); s++)
        for (size_t r = 0; r < FRIT_COUNT(row_counts); r++)
            n = add_cases(b, &shapes[s], dtype, row_counts[r], filter, cases, n);
    if (n == 0) return;
    frit_cuda_kernel **kernels = calloc(n, sizeof *kernels);
    if (!kernels) must(frit_fail_memory(n * sizeof *kernels, "kernels"));
    for (size_t i = 0; i < n; i++) kernels[i] = &cases[i].kernel;
    make_kernels(b, kernels, n);
    const uint64_t tile = (uint64_t)frit_tile_format_of(dtype)->tile_bytes, room = 3000000000ull / tile * tile;
    const uint64_t x_bytes = MAX_ROWS * 14336 * 2;
    job j = {.weights = device_alloc(b, room), .x = device_alloc(b, x_bytes)};
    j.out = device_alloc(b, 128256ull * MAX_ROWS * 4 + 8ull * 28672 * 512 * 4);
    fill_tiles(b, dtype, j.weights, room, 0.02f, 1);
    fill_16_bits(b, j.x, x_bytes, 1, true, 2);
    for (size_t i = 0; i < n; i++) {
        j.c = &cases[i];
        j.n_launches = (int)(room / cases[i].matrix_bytes);
        if (j.n_launches > MAX_LAUNCHES) j.n_launches = MAX_LAUNCHES;
        const double us = time_graph(b, record, &j, 5) / j.n_launches;
        printf("| %s | %.1f | %.0f | %.0f |\n", cases[i].text, us, (double)cases[i].matrix_bytes / us / 1000,
               cases[i].flops / us / 1e6);
    }
    device_free(b, j.weights);
    device_free(b, j.x);
    device_free(b, j.out);
    frit_cuda_kernels_free(&b->gpu, kernels, n);
    free(kernels);
    fflush(stdout);
}

void bench_gemm_wgmma(bench *b, const char *filter)
{
    if (!frit_cuda_has_wgmma(&b->gpu)) return;
    test_case *cases = calloc(MAX_CASES, sizeof *cases);
    if (!cases) must(frit_fail_memory(MAX_CASES * sizeof *cases, "the table"));
    printf("| type | product | rows | variant | us | GB/s | TFLOP/s |\n|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < FRIT_COUNT(types); i++) run_type(b, types[i], filter, cases);
    printf("\n");
    free(cases);
}
