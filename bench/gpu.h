// SPDX-License-Identifier: MIT
// gpu.h: declarations that the measurements of frit's GPU kernels share. A failure ends the program with its error.
#pragma once
#include "backend/cuda/weights/load.h"
#include "backend/cuda/ops/product.h"

typedef struct bench {
    frit_cuda_driver driver;
    frit_cuda_gpu gpu;
    frit_nvrtc nvrtc;
    frit_cuda_compiler compiler;
    frit_pool *pool;
    frit_cuda_stream stream;
    frit_cuda_loader loader;
    double read_gbs;   // speed of a kernel that only reads, in 1e9 bytes per second
} bench;

void must(frit_status status);   // ends the program after a failure
void must_cuda(bench *b, int result, const char *what);
void make_kernels(bench *b, frit_cuda_kernel **kernels, size_t n);
uint64_t device_alloc(bench *b, uint64_t n_bytes);
void device_free(bench *b, uint64_t address);
void upload(bench *b, uint64_t to, const void *from, size_t n_bytes);
void download(bench *b, void *to, uint64_t from, size_t n_bytes);

// Fills memory with random numbers on the GPU.
void fill_floats(bench *b, uint64_t at, uint64_t n_bytes, float scale, unsigned seed);
void fill_16_bits(bench *b, uint64_t at, uint64_t n_bytes, float scale, bool is_f16, unsigned seed);
// Makes random tiles of the type; their numbers have about this standard deviation.
void fill_tiles(bench *b, frit_dtype dtype, uint64_t at, uint64_t n_bytes, float deviation, unsigned seed);

// Captures what `record` launches as a graph. Returns the median time of launching the graph, in microseconds.
typedef void (*record_fn)(bench *b, void *ctx);
double time_graph(bench *b, record_fn record, void *ctx, int n_repeats);

void bench_probe(bench *b);   // sets read_gbs and prints it, once
void bench_products(bench *b, const char *filter);
void bench_steps(bench *b, const char *filter);
void bench_gemm_small(bench *b, const char *filter);
void bench_gemm_wgmma(bench *b, const char *filter);
void bench_prefill(bench *b, const char *folder);   // folder: of NVIDIA's libraries; NULL: the loader's
int check_prefill(bench *b, const char *folder);
void bench_prompts(bench *b, const char *folder, const char *filter);
void bench_engine(const bench *b, const char *path);   // measures the host's part of decode steps of a model file
int check_types(bench *b, const char *filter);         // checks tiles and products of all weight types, or of one
void bench_load(bench *b);
void bench_exchange(const bench *b, int32_t n_ranks);   // measures sums over a group of n_ranks GPUs
// Compares small models with a reference in plain C. Returns the number of faults.
int bench_check(bench *b, const char *folder, const char *filter);
