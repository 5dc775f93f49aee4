// SPDX-License-Identifier: MIT
// Products of prompts by cuBLASLt, with the time of converting weights to bf16.
#include "backend/cuda/runtime/cublaslt.h"
#include "gpu.h"
#include "base/rng.h"
#include "quant/half.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
static const struct { const char *name; int n_rows, k; } shapes[] = {
    {"8b qkv",      6144,  4096}, {"8b o",    4096,  4096},
    {"8b gate-up", 28672,  4096}, {"8b down", 4096, 14336},
    {"1b qkv",      3072,  2048}, {"1b o",    2048,  2048},
    {"1b gate-up", 16384,  2048}, {"1b down", 2048,  8192},
};
// clang-format on
static const frit_dtype types[] = {FRIT_DTYPE_Q4_K, FRIT_DTYPE_Q6_K, FRIT_DTYPE_Q8_0, FRIT_DTYPE_Q4_0};
static const int token_counts[] = {512, 2048, 8192};

enum { N_MATRICES = 8, MAX_ELEMENTS = 28672 * 4096 };

typedef struct job {
    frit_cublaslt_product product;
    frit_cuda_kernel dequantize;
    uint64_t x, weights, tiles, y, workspace;   // weights: N_MATRICES of them, more than the L2 cache holds
    uint64_t weight_bytes, tile_bytes;
} job;

static void record_products(bench *b, void *ctx)
{
    const job *j = ctx;
    for (int i = 0; i < N_MATRICES; i++)
        must(frit_cublaslt_run(&j->product, j->x, j->weights + (uint64_t)i * j->weight_bytes, j->y, j->workspace,
                               b->stream));
}

static void record_dequantize(bench *b, void *ctx)
{
    const job *j = ctx;
    for (int i = 0; i < N_MATRICES; i++) {
        const frit_dequantize_args args = {.tiles = j->tiles + (uint64_t)i * j->tile_bytes,
                                           .out = j->weights + (uint64_t)i * j->weight_bytes};
        must(frit_cuda_kernel_launch(&b->gpu, &j->dequantize, b->stream, &args, FRIT_CUDA_IN_ORDER));
    }
}

static void describe_dequantize(job *j, frit_dtype dtype, int n_rows, int k)
{
    const frit_tile_source source = {.n_rows = n_rows, .n_columns = k};
    const unsigned n_tiles = (unsigned)(frit_tile_count(&source) * ((k + 255) / 256));
    j->tile_bytes = frit_tile_bytes(frit_tile_format_of(dtype), &source) * (uint64_t)frit_tile_count(&source);
    j->dequantize =
        (frit_cuda_kernel){.file = "dequantize.cu", .name = "dequantize", .grid = {n_tiles, 1, 1}, .threads = 256};
    frit_cuda_define(&j->dequantize, "TYPE0", frit_dtype_get(dtype)->gguf_id);
    frit_cuda_define(&j->dequantize, "K", k);
    frit_cuda_define(&j->dequantize, "IS_F16", 0);
}

// Time of converting a matrix of the type and shape to bf16, in microseconds.
static double time_dequantize(bench *b, job *j, frit_dtype dtype, int n_rows, int k)
{
    describe_dequantize(j, dtype, n_rows, k);
    frit_cuda_kernel *all[] = {&j->dequantize};
    make_kernels(b, all, 1);
    const double us = time_graph(b, record_dequantize, j, 5) / N_MATRICES;
    frit_cuda_kernels_free(&b->gpu, all, 1);
    return us;
}

static bool open_blas(frit_cublaslt *blas, const char *folder)
{
    if (frit_cublaslt_open(blas, folder) == FRIT_OK || frit_cublaslt_open(blas, NULL) == FRIT_OK) return true;
    printf("prefill: %s\n", frit_error());
    return false;
}

static void open_job(bench *b, job *j, uint64_t weight_bytes, uint64_t x_bytes, uint64_t y_bytes)
{
    *j = (job){.x = device_alloc(b, x_bytes),
               .weights = device_alloc(b, weight_bytes),
               .tiles = device_alloc(b, weight_bytes),
               .y = device_alloc(b, y_bytes),
               .workspace = device_alloc(b, FRIT_CUBLASLT_WORKSPACE_BYTES)};
}

static void close_job(bench *b, const job *j)
{
    const uint64_t all[] = {j->x, j->weights, j->tiles, j->y, j->workspace};
    for (size_t i = 0; i < FRIT_COUNT(all); i++) device_free(b, all[i]);
}

static void run_shape(bench *b, const frit_cublaslt *blas, job *j, size_t shape)
{
    const int n_rows = shapes[shape].n_rows, k = shapes[shape].k;
    j->weight_bytes = (uint64_t)n_rows * (uint64_t)k * 2;
    printf("| %s |", shapes[shape].name);
    for (size_t i = 0; i < FRIT_COUNT(token_counts); i++) {
        must(frit_cublaslt_prepare(blas, &(frit_cublaslt_shape){.n_tokens = token_counts[i], .n_rows = n_rows, .k = k},
                                   &j->product));
        const double us = time_graph(b, record_products, j, 5) / N_MATRICES;
        printf(" %.0f us, %.0f |", us, 2.0 * token_counts[i] * n_rows * k / us / 1e6);
        frit_cublaslt_product_free(&j->product);
    }
    for (size_t i = 0; i < FRIT_COUNT(types); i++) printf(" %.1f |", time_dequantize(b, j, types[i], n_rows, k));
    printf("\n");
    fflush(stdout);
}

void bench_prefill(bench *b, const char *folder)
{
    const uint64_t weight_bytes = (uint64_t)MAX_ELEMENTS * 2 * N_MATRICES, x_bytes = 8192ull * 14336 * 2;
    frit_cublaslt blas;
    job j;
    if (!open_blas(&blas, folder)) return;
    open_job(b, &j, weight_bytes, x_bytes, 8192ull * 28672 * 2);
    fill_16_bits(b, j.x, x_bytes, 1, false, 1);
    fill_16_bits(b, j.weights, weight_bytes, 0.02f, false, 2);
    printf("| product | 512 tokens: TFLOP/s | 2048 | 8192 | to bf16, us: q4_k | q6_k | q8_0 | q4_0 |\n"
           "|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < FRIT_COUNT(shapes); i++) run_shape(b, &blas, &j, i);
    printf("\n");
    close_job(b, &j);
    frit_cublaslt_close(&blas);
}

// ------------------------------------------------------------------------------- against plain C

enum { N_ROWS = 64, K = 512, N_TOKENS = 16 };

static void random_numbers(float *values, int n, float scale, frit_rng *rng)
{
    for (int i = 0; i < n; i++) values[i] = (float)(frit_rng_double(rng) * 2 - 1) * scale;
}

// Number of bf16 weights at j->weights that differ from those of plain C.
static int compare_weights(bench *b, job *j, frit_dtype dtype, float *weights)
{
    static uint8_t blocks[N_ROWS * K * 2], tiles[N_ROWS * K * 2];
    static uint16_t rows[N_ROWS * K];
    const frit_dtype_info *type = frit_dtype_get(dtype);
    type->encode(weights, blocks, N_ROWS * K, NULL);
    type->decode(blocks, weights, N_ROWS * K);
    const frit_tile_source source = {.blocks = blocks, .n_rows = N_ROWS, .n_columns = K};
    frit_tile_pack(frit_tile_format_of(dtype), &source, 0, N_ROWS / 16, tiles);
    upload(b, j->tiles, tiles, sizeof tiles);
    describe_dequantize(j, dtype, N_ROWS, K);
    frit_cuda_kernel *all[] = {&j->dequantize};
    make_kernels(b, all, 1);
    const frit_dequantize_args args = {.tiles = j->tiles, .out = j->weights};
    must(frit_cuda_kernel_launch(&b->gpu, &j->dequantize, b->stream, &args, FRIT_CUDA_IN_ORDER));
    download(b, rows, j->weights, sizeof rows);
    frit_cuda_kernels_free(&b->gpu, all, 1);
    int n_wrong = 0;
    for (int i = 0; i < N_ROWS * K; i++)   // half a unit, and a little for fused operations
        n_wrong += !(fabsf(frit_bf16_to_float(rows[i]) - weights[i]) <= fabsf(weights[i]) * 0.0040f + 1e-6f);
    return n_wrong;
}

// Returns the sum of squared differences over the sum of squares, for x times the weights at j->weights.
static double compare_product(bench *b, const frit_cublaslt *blas, job *j, const float *weights, frit_rng *rng)
{
    static float x[N_TOKENS * K];
    static uint16_t x16[N_TOKENS * K], y16[N_TOKENS * N_ROWS];
    double error = 0, squares = 0;
    random_numbers(x, N_TOKENS * K, 1, rng);
    frit_encode_bf16(x, x16, N_TOKENS * K, NULL);
    frit_decode_bf16(x16, x, N_TOKENS * K);
    upload(b, j->x, x16, sizeof x16);
    must(frit_cublaslt_prepare(blas, &(frit_cublaslt_shape){.n_tokens = N_TOKENS, .n_rows = N_ROWS, .k = K},
                               &j->product));
    must(frit_cublaslt_run(&j->product, j->x, j->weights, j->y, j->workspace, b->stream));
    download(b, y16, j->y, sizeof y16);
    for (int i = 0; i < N_TOKENS * N_ROWS; i++) {
        double sum = 0;
        for (int k = 0; k < K; k++) sum += (double)x[i / N_ROWS * K + k] * weights[i % N_ROWS * K + k];
        error += pow(frit_bf16_to_float(y16[i]) - sum, 2);
        squares += sum * sum;
    }
    frit_cublaslt_product_free(&j->product);
    return error / squares;
}

int check_prefill(bench *b, const char *folder)
{
    static float weights[N_ROWS * K];
    frit_cublaslt blas;
    frit_rng rng;
    int n_faults = 0;
    const bool has_blas = open_blas(&blas, folder);
    job j;
    frit_rng_init(&rng, 7);
    open_job(b, &j, N_ROWS * K * 2, N_TOKENS * K * 2, N_TOKENS * N_ROWS * 2);
    for (size_t i = 0; i < FRIT_COUNT(types); i++) {
        random_numbers(weights, N_ROWS * K, 0.1f, &rng);
        const int n_wrong = compare_weights(b, &j, types[i], weights);
        const double error = has_blas ? compare_product(b, &blas, &j, weights, &rng) : 0;
        const bool is_good = n_wrong == 0 && error < 2e-5;
        printf("check %s as bf16: %d wrong, error of a product %.2e: %s\n", frit_dtype_get(types[i])->name, n_wrong,
               error, is_good ? "good" : "WRONG");
        n_faults += !is_good;
    }
    printf("\n");
    close_job(b, &j);
    if (has_blas) frit_cublaslt_close(&blas);
    return n_faults;
}
