// SPDX-License-Identifier: MIT
// Measuring products, and remembering what was fastest: autotune.h.
#include "backend/cuda/ops/autotune.h"
#include "backend/cuda/runtime/cubin_cache.h"
#include "backend/cuda/device.h"
#include "backend/cuda/ops/matmul.h"

#include <stdlib.h>
#include <string.h>

enum { CANDIDATES = 3, ALGORITHMS = 6, ROUNDS = 3, WHOLE_ROWS = 256, MOST_KNOWN = 4096 };

static bool is_same(const frit_cuda_choice *a, const frit_cuda_choice *b)
{
    return memcmp(a, b, offsetof(frit_cuda_choice, by_blas)) == 0;
}

// ------------------------------------------------------------------------------- the file

// Named by all that times depend on but for the product.
static frit_cubin_key key_of(const frit_cuda_device *d)
{
    frit_buf text = {0};
    frit_buf_printf(&text, "products, layout %d, sources %s, %s, sm_%d, %d multiprocessors, driver %d, NVRTC %d.%d",
                    (int)sizeof(frit_cuda_choice), frit_version(), d->gpu.name, d->gpu.arch, d->gpu.n_multiprocessors,
                    d->driver.version, d->nvrtc.major, d->nvrtc.minor);
    const frit_cubin_key key = frit_cubin_key_of((frit_str){text.data, text.failed ? 0 : text.len});
    frit_buf_free(&text);
    return key;
}

static bool is_sound(const frit_cuda_choice *c)
{
    if (c->rows < 1 || c->k < 1 || c->nanoseconds < 0) return false;
    if (c->types[0] < 0) return c->algorithm >= 0 && c->algorithm < ALGORITHMS;
    return c->by_blas || (c->row_tiles >= 1 && c->row_tiles <= 2 && c->warps >= 1 && c->warps <= 16 && c->splits >= 1 &&
                          c->splits <= 8);
}

static void read_file(frit_cuda_device *d)
{
    frit_cuda_choices *all = &d->choices;
    const frit_cubin_cache cache = {d->choices.folder, 0, &d->log};
    size_t n_bytes = 0;
    if (all->is_read) return;
    all->is_read = true;
    uint8_t *bytes = frit_cubin_cache_read(&cache, key_of(d), &n_bytes);
    const size_t n = n_bytes / sizeof *all->known;
    if (!bytes) return;
    frit_cuda_choice *known = n > 0 && n <= MOST_KNOWN ? calloc(n, sizeof *known) : NULL;
    for (size_t i = 0; known && i < n; i++) {
        memcpy(&known[all->n_known], bytes + i * sizeof *known, sizeof *known);
        all->n_known += is_sound(&known[all->n_known]);
    }
    all->known = known;
    free(bytes);
}

static void write_file(const frit_cuda_device *d)
{
    const frit_cubin_cache cache = {d->choices.folder, 0, &d->log};
    const frit_cuda_choices *all = &d->choices;
    frit_cubin_cache_write(&cache, key_of(d), (const uint8_t *)all->known, all->n_known * sizeof *all->known);
}

static const frit_cuda_choice *find(const frit_cuda_choices *all, const frit_cuda_choice *wanted)
{
    for (size_t i = 0; i < all->n_known; i++)
        if (is_same(&all->known[i], wanted)) return &all->known[i];
    return NULL;
}

static void add(frit_cuda_choices *all, const frit_cuda_choice *choice)
{
    frit_cuda_choice *known = NULL;
    if (all->n_known < MOST_KNOWN) known = realloc(all->known, (all->n_known + 1) * sizeof *known);
    if (!known) return;   // it is measured again
    all->known = known;
    known[all->n_known++] = *choice;
}

void frit_cuda_choices_free(frit_cuda_choices *all)
{
    free(all->known);
    free(all->asked);
    *all = (frit_cuda_choices){0};
}

// ------------------------------------------------------------------------------- time

// Products are measured one after the other, not beside what a step has before and after: a few percent do not count.
static bool is_faster(double ns, double than)
{
    return ns < 0.97 * than;
}

// The least time of some rounds of `launch`, on the device's stream.
typedef frit_status (*launch_fn)(frit_cuda_device *device, const void *ctx);

static frit_status measure(frit_cuda_device *d, launch_fn launch, const void *ctx, double *ns)
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

// ------------------------------------------------------------------------------- products of some rows

static frit_cuda_choice describe(const frit_cuda_some *s)
{
    frit_cuda_choice c = {.rows = s->rows, .k = s->k, .is_gated = s->is_gated};
    for (int i = 0; i < FRIT_GPU_SEGMENTS && s->segments[i].n_tiles; i++) {
        c.types[i] = frit_dtype_get(s->segments[i].dtype)->gguf_id;
        c.tiles[i] = s->segments[i].n_tiles;
    }
    return c;
}

static frit_cuda_asked *asked_for(frit_cuda_choices *all, const frit_cuda_some *some, const frit_cuda_choice *choice)
{
    for (size_t i = 0; i < all->n_asked; i++)
        if (is_same(&all->asked[i].choice, choice)) return &all->asked[i];
    frit_cuda_asked *asked = realloc(all->asked, (all->n_asked + 1) * sizeof *asked);
    if (!asked) return NULL;
    all->asked = asked;
    asked[all->n_asked] = (frit_cuda_asked){.choice = *choice, .some = *some};
    return &asked[all->n_asked++];
}

frit_cuda_chosen frit_cuda_choices_some(frit_cuda_device *d, frit_cuda_some *some,
                                        const uint64_t weights[FRIT_GPU_SEGMENTS])
{
    frit_cuda_choices *all = &d->choices;
    const frit_cuda_choice wanted = describe(some);
    if (!all->folder) return FRIT_CUDA_BY_ESTIMATE;
    read_file(d);
    const frit_cuda_choice *known = find(all, &wanted);
    if (known && known->by_blas) return FRIT_CUDA_BY_BLAS;
    if (known) {
        some->tiles = known->row_tiles, some->warps = known->warps, some->splits = known->splits;
        return FRIT_CUDA_BY_MEASURE;
    }
    frit_cuda_asked *asked = weights[0] && d->compiler.nvrtc ? asked_for(all, some, &wanted) : NULL;
    if (asked && asked->n_places < FRIT_CUDA_CHOICE_PLACES) {
        memcpy(asked->places[asked->n_places], weights, sizeof asked->places[0]);
        asked->n_places++;
    }
    return FRIT_CUDA_BY_ESTIMATE;
}

typedef struct trial {
    const frit_cuda_asked *asked;
    frit_cuda_some some;
    frit_cuda_kernel kernel;
    uint64_t x, out;   // numbers of rows; room for all results, and what rows of gates are known by
} trial;

static frit_status run_trial(frit_cuda_device *d, const void *ctx)
{
    const trial *t = ctx;
    for (int i = 0; i < t->asked->n_places; i++) {
        const frit_some_args args = {.weights = {t->asked->places[i][0], t->asked->places[i][1]},
                                     .x = t->x,
                                     .scales = t->some.is_gated ? t->x : 0,
                                     .out = t->out,
                                     .squares = t->x,
                                     .bounds = t->x,
                                     .out_scales = t->x,
                                     .n_rows = t->some.rows};
        FRIT_TRY(frit_cuda_kernel_launch(&d->gpu, &t->kernel, d->stream, &args, FRIT_CUDA_OVERLAPPING));
    }
    return FRIT_OK;
}

// How long a trial takes, and what comes after it because of it.
static frit_status time_trial(frit_cuda_device *d, const trial *t, double *ns)
{
    FRIT_TRY(measure(d, run_trial, t, ns));
    *ns = *ns / t->asked->n_places + frit_cuda_some_after(&t->some, t->asked->some.is_gated, &d->gpu);
    return FRIT_OK;
}

// The same product by cuBLASLt, its weights as f16 first.
typedef struct blas_trial {
    const frit_cuda_asked *asked;
    const frit_cuda_matmul *matmul;
    const frit_cublaslt_product *product;
    frit_cuda_matmul_args args;
} blas_trial;

static frit_status run_blas(frit_cuda_device *d, const void *ctx)
{
    const blas_trial *t = ctx;
    for (int i = 0; i < t->asked->n_places; i++) {
        frit_cuda_matmul_args args = t->args;
        memcpy(args.weights, t->asked->places[i], sizeof args.weights);
        FRIT_TRY(frit_cuda_matmul_run(t->matmul, &d->gpu, t->product, &args, d->stream));
    }
    return FRIT_OK;
}

typedef struct bench {   // memory of all trials
    uint64_t x, out, weights, workspace;
    uint64_t x_bytes, out_bytes, weight_bytes;
} bench;

static frit_cuda_matmul matmul_of(const frit_cuda_asked *a)
{
    frit_cuda_matmul m = {.k = a->some.k, .in = FRIT_CUDA_F16, .out = FRIT_CUDA_F32};
    memcpy(m.segments, a->some.segments, sizeof m.segments);
    return m;
}

static frit_status open_bench(frit_cuda_device *d, bench *b)
{
    for (size_t i = 0; i < d->choices.n_asked; i++) {
        const frit_cuda_asked *a = &d->choices.asked[i];
        const frit_cuda_matmul m = matmul_of(a);
        const uint64_t n = (uint64_t)(a->some.segments[0].n_tiles + a->some.segments[1].n_tiles) * FRIT_TILE_ROWS;
        const uint64_t out = frit_cuda_some_bytes(&d->gpu, n, FRIT_CUDA_SOME_ROWS),
                       x = FRIT_CUDA_SOME_ROWS * (uint64_t)a->some.k * 2, weights = frit_cuda_matmul_scratch(&m);
        if (out > b->out_bytes) b->out_bytes = out;
        if (x > b->x_bytes) b->x_bytes = x;
        if (weights > b->weight_bytes && a->some.rows == FRIT_CUDA_SOME_ROWS) b->weight_bytes = weights;
    }
    FRIT_TRY(frit_cuda_alloc_bytes(d, b->x_bytes, "measuring products", &b->x));
    FRIT_TRY(frit_cuda_alloc_bytes(d, b->out_bytes, "measuring products", &b->out));
    if (b->weight_bytes > 0 && d->blas.library) {
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

// Whether cuBLASLt is faster: asked only for the most rows, for fewer it never was.
static frit_status compare_blas(frit_cuda_device *d, const bench *b, const frit_cuda_asked *a, frit_cuda_choice *best)
{
    if (a->some.rows != FRIT_CUDA_SOME_ROWS || !b->weights || !b->workspace) return FRIT_OK;
    frit_cuda_matmul m = matmul_of(a);
    frit_cublaslt_product product;
    frit_cuda_kernel *kernels[FRIT_GPU_SEGMENTS];
    double ns;
    FRIT_TRY(frit_cuda_matmul_describe(&m));
    for (int i = 0; i < m.n_kernels; i++) kernels[i] = &m.dequantize[i];
    FRIT_TRY(frit_cuda_kernels_make(&d->gpu, &d->compiler, d->pool, kernels, (size_t)m.n_kernels));
    frit_status status = frit_cuda_matmul_prepare(&m, &d->blas, a->some.rows, 0, &product);
    if (status == FRIT_OK) {
        const blas_trial own = {
            a, &m, &product, {.x = b->x, .y = b->out, .scratch = b->weights, .workspace = b->workspace}};
        status = measure(d, run_blas, &own, &ns);
        ns = ns / a->n_places + (a->some.is_gated ? frit_cuda_some_gates_ns : 0);
        if (status == FRIT_OK && is_faster(ns, best->nanoseconds)) best->by_blas = 1, best->nanoseconds = (int32_t)ns;
        frit_cublaslt_product_free(&product);
    }
    frit_cuda_kernels_free(&d->gpu, kernels, (size_t)m.n_kernels);
    return status;
}

// Of one product, whose trials are the next n; the first is the estimate's. *differs: another one is faster.
static frit_status choose(frit_cuda_device *d, const bench *b, trial *trials, int n, bool *differs)
{
    const frit_cuda_asked *a = trials[0].asked;
    frit_cuda_choice best = a->choice;
    int fastest = 0;
    for (int i = 0; i < n; i++) {
        double ns;
        trials[i].x = b->x, trials[i].out = b->out;
        FRIT_TRY(time_trial(d, &trials[i], &ns));
        if (i > 0 && !is_faster(ns, best.nanoseconds)) continue;
        best.row_tiles = trials[i].some.tiles, best.warps = trials[i].some.warps, best.splits = trials[i].some.splits;
        best.nanoseconds = (int32_t)ns;
        fastest = i;
    }
    FRIT_TRY(compare_blas(d, b, a, &best));
    *differs = fastest > 0 || best.by_blas;
    add(&d->choices, &best);
    return FRIT_OK;
}

static size_t list_trials(const frit_cuda_device *d, trial *trials)
{
    size_t n = 0;
    for (size_t i = 0; i < d->choices.n_asked; i++) {
        const frit_cuda_asked *a = &d->choices.asked[i];
        frit_cuda_some some[CANDIDATES];
        const int n_some = frit_cuda_some_candidates(&a->some, &d->gpu, some, CANDIDATES);
        for (int k = 0; k < n_some; k++) {
            trials[n] = (trial){.asked = a, .some = some[k]};
            n += frit_cuda_some_kernel(&trials[n].some, &d->gpu, &trials[n].kernel) == FRIT_OK;
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
            for (end = i; end < n && trials[end].asked == trials[i].asked;) end++;
            status = choose(d, &b, &trials[i], (int)(end - i), &differs);
            *n_others += differs;
        }
        d->driver.stream_wait(d->stream);
        close_bench(d, &b);
        frit_cuda_kernels_free(&d->gpu, kernels, n);
    }
    free(kernels);
    return status;
}

frit_status frit_cuda_choices_measure(frit_cuda_device *d, int *n)
{
    frit_cuda_choices *all = &d->choices;
    *n = 0;
    if (all->n_asked == 0) return FRIT_OK;
    trial *trials = calloc(all->n_asked * CANDIDATES + 1, sizeof *trials);
    if (!trials) return frit_fail_memory(all->n_asked * sizeof *trials, "products to measure");
    const size_t n_trials = list_trials(d, trials);
    if (n_trials > 0)
        frit_log_say(&d->log, FRIT_LOG_INFO, "cuda: measuring %zu kernels of %zu products, this once", n_trials,
                     all->n_asked);
    const frit_status status = n_trials > 0 ? run_trials(d, trials, n_trials, n) : FRIT_OK;
    free(trials);
    all->n_asked = 0;
    if (status == FRIT_OK && n_trials > 0) write_file(d);
    if (status == FRIT_OK) return FRIT_OK;
    frit_log_say(&d->log, FRIT_LOG_WARNING, "cuda: products are not measured: %s", frit_error());
    all->folder = NULL;
    *n = 0;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- products of many rows

typedef struct algorithm_trial {
    const frit_cublaslt_product *product;
    const frit_cuda_matmul_args *args;
} algorithm_trial;

static frit_status run_algorithm(frit_cuda_device *d, const void *ctx)
{
    const algorithm_trial *t = ctx;
    return frit_cublaslt_run(t->product, t->args->x, t->args->scratch, t->args->y, t->args->workspace, d->stream);
}

int frit_cuda_choices_algorithm(frit_cuda_device *d, const frit_cuda_matmul *m, int n_rows,
                                const frit_cuda_matmul_args *args)
{
    const int n = (m->segments[0].n_tiles + m->segments[1].n_tiles) * FRIT_TILE_ROWS;
    frit_cuda_choice best = {.rows = n_rows, .k = m->k, .types = {-1}, .tiles = {n}};
    if (!d->choices.folder || n_rows % WHOLE_ROWS) return 0;
    read_file(d);
    const frit_cuda_choice *known = find(&d->choices, &best);
    if (known) return known->algorithm;
    for (int i = 0; i < ALGORITHMS; i++) {
        frit_cublaslt_product product;
        double ns;
        if (frit_cuda_matmul_prepare(m, &d->blas, n_rows, i, &product) != FRIT_OK) break;         // there are no more
        if (i == 0 && frit_cuda_matmul_run(m, &d->gpu, &product, args, d->stream) != FRIT_OK) {   // makes the weights
            frit_cublaslt_product_free(&product);
            break;
        }
        const frit_status status = measure(d, run_algorithm, &(algorithm_trial){&product, args}, &ns);
        frit_cublaslt_product_free(&product);
        if (status != FRIT_OK || (i > 0 && !is_faster(ns, best.nanoseconds))) continue;
        best.algorithm = i;
        best.nanoseconds = (int32_t)ns;
    }
    add(&d->choices, &best);
    write_file(d);
    return best.algorithm;
}
