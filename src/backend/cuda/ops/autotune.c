// SPDX-License-Identifier: MIT
// Measuring products, and the file of the fastest.
#include "backend/cuda/ops/autotune.h"
#include "backend/cuda/runtime/cubin_cache.h"
#include "backend/cuda/device.h"
#include "backend/cuda/ops/gemm_cublas.h"

#include <stdlib.h>
#include <string.h>

enum { CANDIDATES = 3, ALGORITHMS = 6, ROUNDS = 3, MOST_KNOWN = 4096 };

static bool is_same(const frit_cuda_tuned *a, const frit_cuda_tuned *b)
{
    return memcmp(a, b, offsetof(frit_cuda_tuned, by_blas)) == 0;
}

// ------------------------------------------------------------------------------- the file

// The file is named by everything but the product that times depend on.
static frit_cubin_key key_of(const frit_cuda_device *d)
{
    frit_buf text = {0};
    frit_buf_printf(&text, "products, layout %d, sources %s, %s, sm_%d, %d multiprocessors, driver %d, NVRTC %d.%d",
                    (int)sizeof(frit_cuda_tuned), frit_version(), d->gpu.name, d->gpu.arch, d->gpu.n_multiprocessors,
                    d->driver.version, d->nvrtc.major, d->nvrtc.minor);
    const frit_cubin_key key = frit_cubin_key_of((frit_str){text.data, text.failed ? 0 : text.len});
    frit_buf_free(&text);
    return key;
}

static bool is_sound(const frit_cuda_tuned *c)
{
    if (c->rows < 1 || c->k < 1 || c->nanoseconds < 0) return false;
    if (c->types[0] < 0) return c->algorithm >= 0 && c->algorithm < ALGORITHMS;
    return c->by_blas || (c->row_tiles >= 1 && c->row_tiles <= 2 && c->warps >= 1 && c->warps <= 16 && c->splits >= 1 &&
                          c->splits <= 8);
}

static void read_file(frit_cuda_device *d)
{
    frit_cuda_autotune *all = &d->autotune;
    const frit_cubin_cache cache = {d->autotune.folder, 0, &d->log};
    size_t n_bytes = 0;
    if (all->is_read) return;
    all->is_read = true;
    uint8_t *bytes = frit_cubin_cache_read(&cache, key_of(d), &n_bytes);
    const size_t n = n_bytes / sizeof *all->known;
    if (!bytes) return;
    frit_cuda_tuned *known = n > 0 && n <= MOST_KNOWN ? calloc(n, sizeof *known) : NULL;
    for (size_t i = 0; known && i < n; i++) {
        memcpy(&known[all->n_known], bytes + i * sizeof *known, sizeof *known);
        all->n_known += is_sound(&known[all->n_known]);
    }
    all->known = known;
    free(bytes);
}

static void write_file(const frit_cuda_device *d)
{
    const frit_cubin_cache cache = {d->autotune.folder, 0, &d->log};
    const frit_cuda_autotune *all = &d->autotune;
    frit_cubin_cache_write(&cache, key_of(d), (const uint8_t *)all->known, all->n_known * sizeof *all->known);
}

static const frit_cuda_tuned *find_tuned(const frit_cuda_autotune *all, const frit_cuda_tuned *wanted)
{
    for (size_t i = 0; i < all->n_known; i++)
        if (is_same(&all->known[i], wanted)) return &all->known[i];
    return NULL;
}

static void add_tuned(frit_cuda_autotune *all, const frit_cuda_tuned *tuned)
{
    frit_cuda_tuned *known = NULL;
    if (all->n_known < MOST_KNOWN) known = realloc(all->known, (all->n_known + 1) * sizeof *known);
    if (!known) return;   // it is measured again
    all->known = known;
    known[all->n_known++] = *tuned;
}

void frit_cuda_autotune_free(frit_cuda_autotune *all)
{
    free(all->known);
    free(all->requests);
    *all = (frit_cuda_autotune){0};
}

// ------------------------------------------------------------------------------- time

// Products are measured alone, not overlapping with other kernels of a step, so differences below 3 % do not count.
static bool is_faster(double ns, double than)
{
    return ns < 0.97 * than;
}

// The least time of some rounds of `launch` on the device's stream, in nanoseconds.
typedef frit_status (*launch_fn)(frit_cuda_device *device, const void *ctx);

static frit_status measure_launch(frit_cuda_device *d, launch_fn launch, const void *ctx, double *ns)
{
    const frit_cuda_driver *driver = &d->driver;
    frit_cuda_event events[2] = {0};
    frit_status status = FRIT_OK;
    *ns = 0;
    for (int i = 0; i < 2 && status == FRIT_OK; i++)
        status = frit_cuda_check(driver, driver->event_new(&events[i], 0), "making an event");
    for (int round = 0; round <= ROUNDS && status == FRIT_OK; round++) {
        float ms = 0;
        status = frit_cuda_check(driver, driver->event_record(events[0], d->stream), "recording an event");
        if (status == FRIT_OK) status = launch(d, ctx);
        if (status == FRIT_OK)
            status = frit_cuda_check(driver, driver->event_record(events[1], d->stream), "recording an event");
        if (status == FRIT_OK) status = frit_cuda_check(driver, driver->event_wait(events[1]), "measuring a product");
        if (status == FRIT_OK)
            status = frit_cuda_check(driver, driver->event_elapsed(&ms, events[0], events[1]), "reading a time");
        if (round > 0 && (round == 1 || ms * 1e6 < *ns)) *ns = ms * 1e6;   // the first warms up
    }
    for (int i = 0; i < 2; i++)
        if (events[i]) driver->event_free(events[i]);
    return status;
}

// ------------------------------------------------------------------------------- small gemms

static frit_cuda_tuned describe(const frit_cuda_gemm_small *s)
{
    frit_cuda_tuned c = {.rows = s->rows, .k = s->k, .is_gated = s->is_gated};
    for (int i = 0; i < FRIT_GPU_SEGMENTS && s->segments[i].n_tiles; i++) {
        c.types[i] = frit_dtype_get(s->segments[i].dtype)->gguf_id;
        c.tiles[i] = s->segments[i].n_tiles;
    }
    return c;
}

static frit_cuda_tuning_request *find_request(frit_cuda_autotune *all, const frit_cuda_gemm_small *small,
                                              const frit_cuda_tuned *tuned)
{
    for (size_t i = 0; i < all->n_requests; i++)
        if (is_same(&all->requests[i].tuned, tuned)) return &all->requests[i];
    frit_cuda_tuning_request *request = realloc(all->requests, (all->n_requests + 1) * sizeof *request);
    if (!request) return NULL;
    all->requests = request;
    request[all->n_requests] = (frit_cuda_tuning_request){.tuned = *tuned, .small = *small};
    return &request[all->n_requests++];
}

frit_cuda_tuned_by frit_cuda_autotune_gemm_small(frit_cuda_device *d, frit_cuda_gemm_small *small,
                                                 const uint64_t weights[FRIT_GPU_SEGMENTS])
{
    frit_cuda_autotune *all = &d->autotune;
    const frit_cuda_tuned wanted = describe(small);
    if (!all->folder) return FRIT_CUDA_BY_ESTIMATE;
    read_file(d);
    const frit_cuda_tuned *known = find_tuned(all, &wanted);
    if (known && known->by_blas) return FRIT_CUDA_BY_BLAS;
    if (known) {
        small->tiles = known->row_tiles, small->warps = known->warps, small->splits = known->splits;
        return FRIT_CUDA_BY_MEASURE;
    }
    frit_cuda_tuning_request *request = weights[0] && d->compiler.nvrtc ? find_request(all, small, &wanted) : NULL;
    if (request && request->n_matrices < FRIT_CUDA_TUNING_MATRICES) {
        memcpy(request->matrices[request->n_matrices], weights, sizeof request->matrices[0]);
        request->n_matrices++;
    }
    return FRIT_CUDA_BY_ESTIMATE;
}

typedef struct trial {
    const frit_cuda_tuning_request *request;
    frit_cuda_gemm_small small;
    frit_cuda_kernel kernel;
    uint64_t x, out;   // the input; memory for results, scales and bounds
} trial;

static frit_status run_trial(frit_cuda_device *d, const void *ctx)
{
    const trial *t = ctx;
    for (int i = 0; i < t->request->n_matrices; i++) {
        const frit_gemm_args args = {.weights = {t->request->matrices[i][0], t->request->matrices[i][1]},
                                     .x = t->x,
                                     .scales = t->small.is_gated ? t->x : 0,
                                     .out = t->out,
                                     .squares = t->x,
                                     .bounds = t->x,
                                     .out_scales = t->x,
                                     .n_rows = t->small.rows};
        FRIT_TRY(frit_cuda_kernel_launch(&d->gpu, &t->kernel, d->stream, &args, FRIT_CUDA_OVERLAPPING));
    }
    return FRIT_OK;
}

// Time of a product, with the estimated time of the kernels that follow it.
static frit_status time_trial(frit_cuda_device *d, const trial *t, double *ns)
{
    FRIT_TRY(measure_launch(d, run_trial, t, ns));
    *ns = *ns / t->request->n_matrices + frit_cuda_gemm_small_after_ns(&t->small, t->request->small.is_gated, &d->gpu);
    return FRIT_OK;
}

// A product by cuBLASLt, with the conversion of its weights to f16.
typedef struct blas_trial {
    const frit_cuda_tuning_request *request;
    const frit_cuda_matmul *matmul;
    const frit_cublaslt_product *product;
    frit_cuda_matmul_args args;
} blas_trial;

static frit_status run_blas(frit_cuda_device *d, const void *ctx)
{
    const blas_trial *t = ctx;
    for (int i = 0; i < t->request->n_matrices; i++) {
        frit_cuda_matmul_args args = t->args;
        memcpy(args.weights, t->request->matrices[i], sizeof args.weights);
        FRIT_TRY(frit_cuda_matmul_run(t->matmul, &d->gpu, t->product, &args, d->stream));
    }
    return FRIT_OK;
}

typedef struct bench {   // memory of all trials
    uint64_t x, out, weights, workspace;
    uint64_t x_bytes, out_bytes, weight_bytes;
} bench;

static frit_cuda_matmul matmul_of(const frit_cuda_tuning_request *a)
{
    frit_cuda_matmul m = {.k = a->small.k, .in = FRIT_CUDA_F16, .out = FRIT_CUDA_F32};
    memcpy(m.segments, a->small.segments, sizeof m.segments);
    return m;
}

static frit_status open_bench(frit_cuda_device *d, bench *b)
{
    for (size_t i = 0; i < d->autotune.n_requests; i++) {
        const frit_cuda_tuning_request *a = &d->autotune.requests[i];
        const frit_cuda_matmul m = matmul_of(a);
        const uint64_t n = (uint64_t)(a->small.segments[0].n_tiles + a->small.segments[1].n_tiles) * FRIT_TILE_ROWS;
        const uint64_t out = frit_cuda_gemm_small_bytes(&d->gpu, n, FRIT_CUDA_GEMM_SMALL_ROWS),
                       x = FRIT_CUDA_GEMM_SMALL_ROWS * (uint64_t)a->small.k * 2, weights = frit_cuda_matmul_scratch(&m);
        if (out > b->out_bytes) b->out_bytes = out;
        if (x > b->x_bytes) b->x_bytes = x;
        if (weights > b->weight_bytes && a->small.rows == FRIT_CUDA_GEMM_SMALL_ROWS) b->weight_bytes = weights;
    }
    FRIT_TRY(frit_cuda_alloc_bytes(d, b->x_bytes, "measuring products", &b->x));
    FRIT_TRY(frit_cuda_alloc_bytes(d, b->out_bytes, "measuring products", &b->out));
    if (b->weight_bytes > 0 && d->has_blas) {
        d->driver.memory_alloc(&b->weights, (size_t)b->weight_bytes);   // 0: cuBLASLt is not compared
        d->driver.memory_alloc(&b->workspace, FRIT_CUBLASLT_WORKSPACE_BYTES);
    }
    return frit_cuda_check(&d->driver, d->driver.memory_set(b->x, 0x3c, (size_t)b->x_bytes, d->stream),   // 1.06
                           "measuring products");
}

static void close_bench(frit_cuda_device *d, bench *b)
{
    frit_cuda_free_bytes(d, b->x);
    frit_cuda_free_bytes(d, b->out);
    frit_cuda_free_bytes(d, b->weights);
    frit_cuda_free_bytes(d, b->workspace);
}

// Tries cuBLASLt for the largest number of rows. For fewer rows it never was faster.
static frit_status compare_blas(frit_cuda_device *d, const bench *b, const frit_cuda_tuning_request *a,
                                frit_cuda_tuned *best)
{
    if (a->small.rows != FRIT_CUDA_GEMM_SMALL_ROWS || !b->weights || !b->workspace) return FRIT_OK;
    frit_cuda_matmul m = matmul_of(a);
    frit_cublaslt_product product;
    frit_cuda_kernel *kernels[FRIT_GPU_SEGMENTS];
    double ns;
    FRIT_TRY(frit_cuda_matmul_describe(&m));
    for (int i = 0; i < m.n_kernels; i++) kernels[i] = &m.dequantize[i];
    FRIT_TRY(frit_cuda_kernels_make(&d->gpu, &d->compiler, d->pool, kernels, (size_t)m.n_kernels));
    frit_status status = frit_cuda_matmul_prepare(&m, &d->blas, a->small.rows, 0, &product);
    if (status == FRIT_OK) {
        const blas_trial own = {
            a, &m, &product, {.x = b->x, .y = b->out, .scratch = b->weights, .workspace = b->workspace}};
        status = measure_launch(d, run_blas, &own, &ns);
        ns = ns / a->n_matrices + (a->small.is_gated ? frit_cuda_gates_ns : 0);
        if (status == FRIT_OK && is_faster(ns, best->nanoseconds)) best->by_blas = 1, best->nanoseconds = (int32_t)ns;
        frit_cublaslt_product_free(&product);
    }
    frit_cuda_kernels_free(&d->gpu, kernels, (size_t)m.n_kernels);
    return status;
}

// Measures the n trials of one product, the best estimate first. *differs: another one is fastest.
static frit_status choose_fastest(frit_cuda_device *d, const bench *b, trial *trials, int n, bool *differs)
{
    const frit_cuda_tuning_request *a = trials[0].request;
    frit_cuda_tuned best = a->tuned;
    int fastest = 0;
    for (int i = 0; i < n; i++) {
        double ns;
        trials[i].x = b->x, trials[i].out = b->out;
        FRIT_TRY(time_trial(d, &trials[i], &ns));
        if (i > 0 && !is_faster(ns, best.nanoseconds)) continue;
        best.row_tiles = trials[i].small.tiles, best.warps = trials[i].small.warps,
        best.splits = trials[i].small.splits;
        best.nanoseconds = (int32_t)ns;
        fastest = i;
    }
    FRIT_TRY(compare_blas(d, b, a, &best));
    *differs = fastest > 0 || best.by_blas;
    add_tuned(&d->autotune, &best);
    return FRIT_OK;
}

static size_t list_trials(const frit_cuda_device *d, trial *trials)
{
    size_t n = 0;
    for (size_t i = 0; i < d->autotune.n_requests; i++) {
        const frit_cuda_tuning_request *a = &d->autotune.requests[i];
        frit_cuda_gemm_small small[CANDIDATES];
        const int n_small = frit_cuda_gemm_small_candidates(&a->small, &d->gpu, small, CANDIDATES);
        for (int k = 0; k < n_small; k++) {
            trials[n] = (trial){.request = a, .small = small[k]};
            n += frit_cuda_gemm_small_kernel(&trials[n].small, &d->gpu, &trials[n].kernel) == FRIT_OK;
        }
    }
    return n;
}

static frit_status run_trials(frit_cuda_device *d, trial *trials, size_t n, int *n_others)
{
    bench b = {0};
    frit_cuda_kernel **kernels = calloc(n + 1, sizeof *kernels);
    if (!kernels) return frit_fail_memory(n * sizeof *kernels, "kernels to measure");
    for (size_t i = 0; i < n; i++) kernels[i] = &trials[i].kernel;
    frit_status status = frit_cuda_kernels_make(&d->gpu, &d->compiler, d->pool, kernels, n);
    if (status == FRIT_OK) {
        status = open_bench(d, &b);
        for (size_t i = 0, end; i < n && status == FRIT_OK; i = end) {
            bool differs = false;
            for (end = i; end < n && trials[end].request == trials[i].request;) end++;
            status = choose_fastest(d, &b, &trials[i], (int)(end - i), &differs);
            *n_others += differs;
        }
        d->driver.stream_wait(d->stream);
        close_bench(d, &b);
        frit_cuda_kernels_free(&d->gpu, kernels, n);
    }
    free(kernels);
    return status;
}

frit_status frit_cuda_autotune_measure(frit_cuda_device *d, int *n)
{
    frit_cuda_autotune *all = &d->autotune;
    *n = 0;
    if (all->n_requests == 0) return FRIT_OK;
    trial *trials = calloc(all->n_requests * CANDIDATES + 1, sizeof *trials);
    if (!trials) return frit_fail_memory(all->n_requests * sizeof *trials, "products to measure");
    const size_t n_trials = list_trials(d, trials);
    if (n_trials > 0)
        frit_log_say(&d->log, FRIT_LOG_INFO, "cuda: measuring %zu kernels of %zu products, this once", n_trials,
                     all->n_requests);
    const frit_status status = n_trials > 0 ? run_trials(d, trials, n_trials, n) : FRIT_OK;
    free(trials);
    all->n_requests = 0;
    if (status == FRIT_OK && n_trials > 0) write_file(d);
    if (status == FRIT_OK) return FRIT_OK;
    frit_log_say(&d->log, FRIT_LOG_WARNING, "cuda: products are not measured: %s", frit_error());
    all->folder = NULL;
    *n = 0;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- products of prompts

typedef struct algorithm_trial {
    const frit_cublaslt_product *product;
    const frit_cuda_matmul_args *args;
} algorithm_trial;

static frit_status run_algorithm(frit_cuda_device *d, const void *ctx)
{
    const algorithm_trial *t = ctx;
    return frit_cublaslt_run(t->product, t->args->x, t->args->scratch, t->args->y, t->args->workspace, d->stream);
}

int frit_cuda_autotune_algorithm(frit_cuda_device *d, const frit_cuda_matmul *m, int n_rows,
                                 const frit_cuda_matmul_args *args)
{
    const int n = (m->segments[0].n_tiles + m->segments[1].n_tiles) * FRIT_TILE_ROWS;
    frit_cuda_tuned best = {.rows = n_rows, .k = m->k, .types = {-1}, .tiles = {n}};
    if (!d->autotune.folder || n_rows % FRIT_CUDA_AUTOTUNE_ROWS) return 0;
    read_file(d);
    const frit_cuda_tuned *known = find_tuned(&d->autotune, &best);
    if (known) return known->algorithm;
    for (int i = 0; i < ALGORITHMS; i++) {
        frit_cublaslt_product product;
        double ns;
        if (frit_cuda_matmul_prepare(m, &d->blas, n_rows, i, &product) != FRIT_OK) break;         // there are no more
        if (i == 0 && frit_cuda_matmul_run(m, &d->gpu, &product, args, d->stream) != FRIT_OK) {   // makes the weights
            frit_cublaslt_product_free(&product);
            break;
        }
        const frit_status status = measure_launch(d, run_algorithm, &(algorithm_trial){&product, args}, &ns);
        frit_cublaslt_product_free(&product);
        if (status != FRIT_OK || (i > 0 && !is_faster(ns, best.nanoseconds))) continue;
        best.algorithm = i;
        best.nanoseconds = (int32_t)ns;
    }
    add_tuned(&d->autotune, &best);
    write_file(d);
    return best.algorithm;
}
