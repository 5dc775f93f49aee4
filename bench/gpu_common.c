// SPDX-License-Identifier: MIT
// Memory, random weights, timing of graphs, and the read speed to which figures are compared.
#include "backend/cuda/runtime/sources.h"
#include "gpu.h"
#include "probe_args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void make_kernels(bench *b, frit_cuda_kernel **kernels, size_t n)
{
    must(frit_cuda_kernels_make(&b->gpu, &b->compiler, b->pool, kernels, n));
}

uint64_t device_alloc(bench *b, uint64_t n_bytes)
{
    uint64_t address = 0;
    must_cuda(b, b->driver.memory_alloc(&address, n_bytes), "allocating memory of the GPU");
    must_cuda(b, b->driver.memory_set(address, 0, n_bytes, b->stream), "clearing memory of the GPU");
    return address;
}

void device_free(bench *b, uint64_t address)
{
    must_cuda(b, b->driver.stream_wait(b->stream), "waiting");
    must_cuda(b, b->driver.memory_free(address), "freeing memory of the GPU");
}

void upload(bench *b, uint64_t to, const void *from, size_t n_bytes)
{
    must_cuda(b, b->driver.copy_up(to, from, n_bytes, b->stream), "copying to the GPU");
    must_cuda(b, b->driver.stream_wait(b->stream), "copying to the GPU");
}

void download(bench *b, void *to, uint64_t from, size_t n_bytes)
{
    must_cuda(b, b->driver.copy_down(to, from, n_bytes, b->stream), "copying from the GPU");
    must_cuda(b, b->driver.stream_wait(b->stream), "copying from the GPU");
}

// ------------------------------------------------------------------------------- bench/kernels

// The files of bench/kernels, which the build turns into strings (cmake/FritKernelSources.cmake).
extern const frit_cuda_source bench_sources[];
extern const size_t bench_n_sources;

// Compiles and loads a kernel of bench/kernels. Its files may include those of src/backend/cuda/kernels.
static void make_own_kernel(bench *b, frit_cuda_kernel *kernel)
{
    enum { MAX_SOURCES = 80, MAX_OPTIONS = 8 };
    const char *names[MAX_SOURCES], *texts[MAX_SOURCES], *text = NULL, *options[MAX_OPTIONS];
    char arch[40], defines[MAX_OPTIONS][48];
    int n_sources = 0, n_options = 0;
    for (size_t i = 0; i < bench_n_sources; i++) {
        if (strcmp(bench_sources[i].name, kernel->file) == 0) text = bench_sources[i].text;
        names[n_sources] = bench_sources[i].name;
        texts[n_sources++] = bench_sources[i].text;
    }
    for (size_t i = 0; i < frit_cuda_n_sources && n_sources < MAX_SOURCES; i++) {
        names[n_sources] = frit_cuda_sources[i].name;
        texts[n_sources++] = frit_cuda_sources[i].text;
    }
    snprintf(arch, sizeof arch, "--gpu-architecture=sm_%d", b->gpu.arch);
    options[n_options++] = arch;
    options[n_options++] = "--std=c++17";
    options[n_options++] = "--device-as-default-execution-space";
    for (int i = 0; i < kernel->n_defines && n_options < MAX_OPTIONS; i++) {
        snprintf(defines[i], sizeof defines[i], "-D%s", kernel->defines[i]);
        options[n_options++] = defines[i];
    }
    frit_nvrtc_program program = NULL;
    size_t n_bytes = 0;
    char *cubin = NULL;
    bool is_made = b->nvrtc.create(&program, text, kernel->file, n_sources, texts, names) == 0 &&
                   b->nvrtc.compile(program, n_options, options) == 0 && b->nvrtc.cubin_bytes(program, &n_bytes) == 0;
    if (is_made) cubin = malloc(n_bytes);
    is_made = cubin && b->nvrtc.cubin(program, cubin) == 0;
    if (!is_made) must(frit_fail(FRIT_E_UNSUPPORTED, "bench/kernels/%s does not compile", kernel->file));
    must_cuda(b, b->driver.module_load(&kernel->module, cubin), "loading a kernel");
    must_cuda(b, b->driver.module_function(&kernel->function, kernel->module, kernel->name), kernel->name);
    b->nvrtc.destroy(&program);
    free(cubin);
}

// ------------------------------------------------------------------------------- random weights

static void run_probe_kernel(bench *b, const char *name, const bench_probe_args *args, const int *scales)
{
    frit_cuda_kernel kernel = {.file = "probe.cu",
                               .name = name,
                               .grid = {(unsigned)b->gpu.n_multiprocessors * 8, 1, 1},
                               .threads = scales ? 256 : 512};
    static const char *const names[] = {"TILE", "FIRST", "COUNT", "STEP"};
    for (int i = 0; scales && i < 4; i++) frit_cuda_define(&kernel, names[i], scales[i]);
    frit_cuda_kernel *all[] = {&kernel};
    make_own_kernel(b, &kernel);
    must(frit_cuda_kernel_launch(&b->gpu, &kernel, b->stream, args, FRIT_CUDA_IN_ORDER));
    must_cuda(b, b->driver.stream_wait(b->stream), name);
    frit_cuda_kernels_free(&b->gpu, all, 1);
}

void fill_floats(bench *b, uint64_t at, uint64_t n_bytes, float scale, unsigned seed)
{
    const bench_probe_args args = {.out = at, .n_bytes = n_bytes, .scale = scale, .seed = seed};
    run_probe_kernel(b, "fill_floats", &args, NULL);
}

void fill_16_bits(bench *b, uint64_t at, uint64_t n_bytes, float scale, bool is_f16, unsigned seed)
{
    const bench_probe_args args = {.in = is_f16, .out = at, .n_bytes = n_bytes, .scale = scale, .seed = seed};
    run_probe_kernel(b, "fill_16_bits", &args, NULL);
}

void fill_tiles(bench *b, frit_dtype dtype, uint64_t at, uint64_t n_bytes, float deviation, unsigned seed)
{
    // Where the f16 scales of a tile are (repack.h), and the deviation of numbers that have scale 1.
    static const struct {
        frit_dtype dtype;
        int first, count, step;
        float unit;
    } rows[] = {
        {FRIT_DTYPE_Q4_K, 2048, 16, 16, 190},       {FRIT_DTYPE_Q4_K, 2050, 16, 16, 190 / 7.5f},
        {FRIT_DTYPE_Q4_0, 2048, 128, 2, 4.6f},      {FRIT_DTYPE_Q8_0, 4096, 128, 2, 74},
        {FRIT_DTYPE_Q6_K, 3072 + 256, 16, 2, 1370},
    };
    if (dtype == FRIT_DTYPE_F16 || dtype == FRIT_DTYPE_BF16) {
        fill_16_bits(b, at, n_bytes, deviation * 1.7f, dtype == FRIT_DTYPE_F16, seed);
        return;
    }
    bench_probe_args args = {.out = at, .n_bytes = n_bytes, .seed = seed};
    run_probe_kernel(b, "fill_bytes", &args, NULL);
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        if (rows[i].dtype != dtype) continue;
        args.scale = deviation / rows[i].unit;
        const int scales[] = {frit_tile_format_of(dtype)->tile_bytes, rows[i].first, rows[i].count, rows[i].step};
        run_probe_kernel(b, "fill_scales", &args, scales);
    }
}

// ------------------------------------------------------------------------------- time

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double time_graph(bench *b, record_fn record, void *ctx, int n_repeats)
{
    enum { MAX_REPEATS = 64, WARMUP = 2 };
    const frit_cuda_driver *d = &b->driver;
    frit_cuda_graph graph;
    frit_cuda_graph_exec exec;
    frit_cuda_event begin, end;
    double times[MAX_REPEATS];
    if (n_repeats > MAX_REPEATS) n_repeats = MAX_REPEATS;
    must_cuda(b, d->capture_begin(b->stream, FRIT_CUDA_CAPTURE_THREAD), "capturing a graph");
    record(b, ctx);
    must_cuda(b, d->capture_end(b->stream, &graph), "capturing a graph");
    must_cuda(b, d->graph_prepare(&exec, graph, 0), "preparing a graph");
    must_cuda(b, d->event_new(&begin, 0), "making an event");
    must_cuda(b, d->event_new(&end, 0), "making an event");
    for (int i = -WARMUP; i < n_repeats; i++) {
        float ms = 0;
        must_cuda(b, d->event_record(begin, b->stream), "timing");
        must_cuda(b, d->graph_launch(exec, b->stream), "launching a graph");
        must_cuda(b, d->event_record(end, b->stream), "timing");
        must_cuda(b, d->event_wait(end), "running a graph");
        must_cuda(b, d->event_elapsed(&ms, begin, end), "timing");
        if (i >= 0) times[i] = ms * 1000;
    }
    d->event_free(begin);
    d->event_free(end);
    d->graph_exec_free(exec);
    d->graph_free(graph);
    qsort(times, (size_t)n_repeats, sizeof *times, by_value);
    return times[n_repeats / 2];
}

// ------------------------------------------------------------------------------- the probe

typedef struct read_job {
    frit_cuda_kernel kernel;
    bench_probe_args args;
} read_job;

static void record_read(bench *b, void *ctx)
{
    const read_job *job = ctx;
    must(frit_cuda_kernel_launch(&b->gpu, &job->kernel, b->stream, &job->args, FRIT_CUDA_IN_ORDER));
}

void bench_probe(bench *b)
{
    if (b->read_gbs > 0) return;
    const uint64_t n_bytes = 8ull << 30;
    const uint64_t at = device_alloc(b, n_bytes);
    fill_floats(b, at, n_bytes, 1, 1);
    double best = 0;
    for (int blocks = 2; blocks <= 32; blocks *= 2) {
        read_job job = {.args = {.in = at, .out = at, .n_bytes = n_bytes},
                        .kernel = {.file = "probe.cu",
                                   .name = "read_all",
                                   .grid = {(unsigned)(b->gpu.n_multiprocessors * blocks), 1, 1},
                                   .threads = 512}};
        frit_cuda_kernel *all[] = {&job.kernel};
        make_own_kernel(b, &job.kernel);
        const double gbs = (double)n_bytes / time_graph(b, record_read, &job, 5) / 1000;
        if (gbs > best) best = gbs;
        frit_cuda_kernels_free(&b->gpu, all, 1);
    }
    device_free(b, at);
    b->read_gbs = best;
    printf("read-only probe: %.0f GB/s over 8 GiB\n\n", best);
}
