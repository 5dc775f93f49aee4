// SPDX-License-Identifier: MIT
// The products of decode steps, each alone, as a graph of launches over more matrices than the L2 holds.
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
static const struct shape { const char *name; int n_rows, k; bool is_normed; frit_cuda_epilogue epilogue; } shapes[] = {
    {"8b qkv",     6144,  4096, true,  FRIT_GPU_STORE},
    {"8b o",       4096,  4096, false, FRIT_GPU_ADD},
    {"8b gate-up", 28672, 4096, true,  FRIT_GPU_GLU},
    {"8b down",    4096, 14336, false, FRIT_GPU_ADD},
    {"8b head",  128256,  4096, true,  FRIT_GPU_STORE},
    {"1b qkv",     3072,  2048, true,  FRIT_GPU_STORE},
    {"1b o",       2048,  2048, false, FRIT_GPU_ADD},
    {"1b gate-up", 16384, 2048, true,  FRIT_GPU_GLU},
    {"1b down",    2048,  8192, false, FRIT_GPU_ADD},
    {"1b head",  128256,  2048, true,  FRIT_GPU_STORE},
};

static const frit_dtype types[] = {FRIT_DTYPE_Q4_K, FRIT_DTYPE_Q6_K, FRIT_DTYPE_Q8_0, FRIT_DTYPE_Q4_0, FRIT_DTYPE_BF16};

// The first is the choice of the backend; the others are alternatives.
static const struct variant {
    const char *name;
    int groups, warps, stages, open_stages;
    bool copies_by_thread, for_all;
} variants[] = {
    {"chosen",                  0,  0, 0, 0, false, true},
    {"all of the ring at once", 0,  0, 0, 2, false, false},
    {"three stages",            0,  0, 3, 0, false, false},
    {"one group of 16 warps",   1, 16, 2, 0, false, false},
    {"four groups of 4 warps",  4,  4, 2, 0, false, false},
    {"8 warps",                 1,  8, 2, 0, false, false},
    {"cp.async",                0,  0, 0, 0, true,  false},
};
// clang-format on

static const int row_counts[] = {1, 2, 4, 8, 16};

enum { MAX_CASES = 1024, MAX_LAUNCHES = 48 };

typedef struct test_case {
    const struct shape *shape;
    const struct variant *variant;
    frit_dtype dtype;
    int rows;
    char text[96];
    frit_cuda_kernel kernel;
    uint64_t matrix_bytes;
} test_case;

typedef struct job {
    const test_case *c;
    uint64_t weights, n_bytes, x, norm, out;
    int n_launches;
} job;

static void record(bench *b, void *ctx)
{
    const job *j = ctx;
    for (int i = 0; i < j->n_launches; i++) {
        const frit_product_args args = {.weights = {j->weights + (uint64_t)i * j->c->matrix_bytes},
                                        .x = j->x,
                                        .norm = j->norm,
                                        .out = j->out,
                                        .epsilon = 1e-5f,
                                        .n_rows = j->c->rows};
        must(frit_cuda_kernel_launch(&b->gpu, &j->c->kernel, b->stream, &args, FRIT_CUDA_OVERLAPPING));
    }
}

static size_t list_cases(bench *b, const char *filter, frit_dtype dtype, test_case *cases)
{
    size_t n = 0;
    for (size_t s = 0; s < FRIT_COUNT(shapes); s++)
        for (size_t r = 0; r < FRIT_COUNT(row_counts); r++)
            for (size_t v = 0; v < FRIT_COUNT(variants) && n < MAX_CASES; v++) {
                test_case *c = &cases[n];
                *c = (test_case){.shape = &shapes[s], .variant = &variants[v], .dtype = dtype, .rows = row_counts[r]};
                const frit_cuda_product product = {.rows = c->rows,
                                                   .k = c->shape->k,
                                                   .is_normed = c->shape->is_normed,
                                                   .epilogue = c->shape->epilogue,
                                                   .segments = {{dtype, c->shape->n_rows / 16}},
                                                   .groups = c->variant->groups,
                                                   .warps = c->variant->warps,
                                                   .stages = c->variant->stages,
                                                   .open_stages = c->variant->open_stages,
                                                   .copies_by_thread = c->variant->copies_by_thread};
                snprintf(c->text, sizeof c->text, "%s | %s | %d | %s", frit_dtype_get(dtype)->name, c->shape->name,
                         c->rows, c->variant->name);
                const bool is_extra = !c->variant->for_all && (c->rows > 1 || dtype == FRIT_DTYPE_BF16);
                if (is_extra || (strcmp(filter, ".") != 0 && !strstr(c->text, filter))) continue;
                if (frit_cuda_product_kernel(&product, &b->gpu, &c->kernel) != FRIT_OK) {
                    printf("%s: %s\n", c->text, frit_error());
                    continue;
                }
                const frit_tile_source source = {.n_rows = c->shape->n_rows, .n_columns = c->shape->k};
                c->matrix_bytes =
                    frit_tile_bytes(frit_tile_format_of(dtype), &source) * (uint64_t)frit_tile_count(&source);
                n++;
            }
    return n;
}

static void run_type(bench *b, const char *filter, frit_dtype dtype, test_case *cases)
{
    const size_t n = list_cases(b, filter, dtype, cases);
    if (n == 0) return;
    frit_cuda_kernel *kernels[MAX_CASES];
    for (size_t i = 0; i < n; i++) kernels[i] = &cases[i].kernel;
    make_kernels(b, kernels, n);

    job j = {.n_bytes = 6000000000ull};
    const uint64_t tile = (uint64_t)frit_tile_format_of(dtype)->tile_bytes;
    j.n_bytes -= j.n_bytes % tile;
    j.weights = device_alloc(b, j.n_bytes);
    j.x = device_alloc(b, 16 * 14336 * 4);
    j.norm = device_alloc(b, 14336 * 4);
    j.out = device_alloc(b, 16 * 128256 * 4);
    fill_tiles(b, dtype, j.weights, j.n_bytes, 0.02f, 1);
    fill_floats(b, j.x, 16 * 14336 * 4, 1, 2);
    fill_floats(b, j.norm, 14336 * 4, 1, 3);
    for (size_t i = 0; i < n; i++) {
        j.c = &cases[i];
        j.n_launches = (int)(j.n_bytes / cases[i].matrix_bytes);
        if (j.n_launches > MAX_LAUNCHES) j.n_launches = MAX_LAUNCHES;
        const double us = time_graph(b, record, &j, 7) / j.n_launches;
        const double gbs = (double)cases[i].matrix_bytes / us / 1000;
        printf("| %s | %.1f | %.0f | %.1f %% |\n", cases[i].text, us, gbs, 100 * gbs / b->read_gbs);
    }
    const uint64_t all[] = {j.weights, j.x, j.norm, j.out};
    for (size_t i = 0; i < FRIT_COUNT(all); i++) device_free(b, all[i]);
    frit_cuda_kernels_free(&b->gpu, kernels, n);
    fflush(stdout);
}

void bench_products(bench *b, const char *filter)
{
    bench_probe(b);
    test_case *cases = calloc(MAX_CASES, sizeof *cases);
    if (!cases) must(frit_fail_memory(MAX_CASES * sizeof *cases, "the table"));
    printf("| type | product | rows | variant | us | GB/s | of the probe |\n|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < FRIT_COUNT(types); i++) run_type(b, filter, types[i], cases);
    printf("\n");
    free(cases);
}
