// SPDX-License-Identifier: MIT
// Measures the limits of a CPU: reading weights from memory, and independent multiply-adds. Chooses the number of
// threads that read weights if the options give none.
#include "backend/cpu/probe.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/pack/memory.h"
#include "base/machine/cpu.h"
#include "base/thread/thread.h"
#include "base/time.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

// Passes repeat for this time, and the best one counts: other processes can only slow a pass down.
static const uint64_t measure_ns = 400000000;

typedef struct probe {
    const frit_kernels *kernels;
    const uint8_t *bytes;
    uint64_t n_bytes;
    int n_readers;   // threads that read, each a share of the bytes
    bool in_order;   // index of probe_read (kernels.h)
    double (*multiply)(int64_t n_rounds, int32_t *sink);
    _Atomic uint64_t sink;   // results go here, so that no compiler drops the work
    _Atomic uint64_t n_done;
} probe;

// Three times the largest cache, or less if the machine lacks memory.
static uint64_t buffer_bytes(void)
{
    const uint64_t least = (uint64_t)256 << 20, wanted = 3 * frit_cache_bytes(), spare = frit_memory_available() / 4;
    const uint64_t n_bytes = wanted < spare ? wanted : spare;
    return n_bytes > least ? n_bytes : least;
}

static size_t share_bytes(const probe *p)
{
    return (size_t)(p->n_bytes / (uint64_t)p->n_readers / 64 * 64);
}

static void touch(void *ctx, int thread, int n_threads)
{
    (void)n_threads;
    const probe *p = ctx;
    memset((uint8_t *)(uintptr_t)p->bytes + (size_t)thread * share_bytes(p), thread + 1, share_bytes(p));
}

static void read_share(void *ctx, int thread, int n_threads)
{
    (void)n_threads;
    probe *p = ctx;
    if (thread >= p->n_readers) return;
    const uint8_t *bytes = p->bytes + (size_t)thread * share_bytes(p);
    atomic_fetch_add(&p->sink, p->kernels->probe_read[p->in_order](bytes, share_bytes(p)));
    atomic_fetch_add(&p->n_done, share_bytes(p));
}

// Counts millions of operations.
static void count_multiplications(void *ctx, int thread, int n_threads)
{
    enum { ROUNDS = 1000000 };
    probe *p = ctx;
    int32_t sink = thread + n_threads;
    const double n_ops = p->multiply(ROUNDS, &sink);
    atomic_fetch_add(&p->sink, (uint64_t)(uint32_t)sink);
    atomic_fetch_add(&p->n_done, (uint64_t)(n_ops * 1e-6));
}

// Units of work of one run of fn in a nanosecond.
static double rate_of(probe *p, frit_pool *pool, frit_pool_fn fn)
{
    atomic_store(&p->n_done, 0);
    const uint64_t start = frit_time_ns();
    frit_pool_run(pool, fn, p);
    return (double)atomic_load(&p->n_done) / (double)(frit_time_ns() - start + 1);
}

static double best_rate(probe *p, frit_pool *pool, frit_pool_fn fn)
{
    double best = 0;
    for (uint64_t start = frit_time_ns(); frit_time_ns() - start < measure_ns;) best = fmax(best, rate_of(p, pool, fn));
    return best;
}

// 10^9 bytes per second of the faster probe_read.
static double read_rate(probe *p, frit_pool *pool)
{
    const double side_by_side = best_rate(p, pool, read_share);
    p->in_order = true;
    return fmax(side_by_side, best_rate(p, pool, read_share));
}

// 10^12 operations per second.
static double multiply_rate(probe *p, frit_pool *pool, double (*run)(int64_t n_rounds, int32_t *sink))
{
    p->multiply = run;
    return 1e3 * best_rate(p, pool, count_multiplications);
}

frit_status frit_cpu_probe(frit_machine *machine, int32_t n_threads)
{
    frit_kernels kernels;
    frit_topology topology;
    frit_topology_get(&topology);
    *machine = (frit_machine){.cpu_name = frit_cpu_name(),
                              .isa = frit_isa_install(&kernels, NULL, FRIT_FOR_ALL),
                              .cores_by = topology.source,
                              .n_cores = topology.n_cores,
                              .n_nodes = topology.nodes.n};
    if (n_threads <= 0) return FRIT_OK;

    frit_pool *pool;
    FRIT_TRY(frit_pool_new(&pool, n_threads));
    probe p = {.kernels = &kernels, .n_bytes = buffer_bytes(), .n_readers = n_threads};
    uint8_t *buffer = frit_cpu_memory_new(p.n_bytes);
    p.bytes = buffer;
    const frit_status status = buffer ? FRIT_OK : frit_fail_memory((size_t)p.n_bytes, "measuring the speed of memory");
    if (status == FRIT_OK) {
        frit_pool_run(pool, touch, &p);
        machine->read_gbps = read_rate(&p, pool);
        machine->int8_tops = multiply_rate(&p, pool, kernels.probe_int8);
        machine->float_tops = multiply_rate(&p, pool, kernels.probe_float);
    }
    frit_cpu_memory_free(buffer, p.n_bytes);
    frit_pool_free(pool);
    return status;
}

// ------------------------------------------------------------------------------- threads

// If fewer threads read memory as fast as all, the others only cost processor time. The probe reads packed matrices, a
// different part each time, with all threads, three quarters and a half of them.
enum { CANDIDATES = 3, ROUNDS = 4 };

int frit_cpu_fewest_readers(frit_pool *pool, const frit_kernels *kernels, const uint8_t *bytes, uint64_t n_bytes)
{
    const int n = frit_pool_size(pool), counts[CANDIDATES] = {n, (3 * n + 3) / 4, (n + 1) / 2};
    double best[CANDIDATES] = {0}, most = 0;
    const size_t slice = (size_t)(n_bytes / (CANDIDATES * ROUNDS));
    for (int i = 0; i < CANDIDATES * ROUNDS; i++) {
        const int c = i % CANDIDATES;
        probe p = {.kernels = kernels, .bytes = bytes + slice * (size_t)i, .n_bytes = slice, .n_readers = counts[c]};
        p.in_order = kernels->in_order;
        const double rate = rate_of(&p, pool, read_share);
        if (i >= CANDIDATES && rate > best[c]) best[c] = rate;   // the first round wakes the threads
    }
    for (int c = 0; c < CANDIDATES; c++)
        if (best[c] > most) most = best[c];
    int fewest = n;
    for (int c = 0; c < CANDIDATES; c++)
        if (best[c] >= 0.97 * most) fewest = counts[c];
    return fewest;
}

frit_status frit_cpu_choose_threads(frit_cpu_device *device)
{
    enum {
        LEAST_THREADS = 6,
        LEAST_BYTES = 128 << 20,
        MOST_BYTES = 768 << 20
    };   // a probe of these sizes takes 5 to 20 ms
    uint64_t n_bytes;
    const uint8_t *bytes = frit_packs_largest(device->packs, &n_bytes);
    if (!bytes || n_bytes < LEAST_BYTES) return FRIT_OK;   // the next plan may load matrices
    device->probes = false;
    if (frit_pool_size(device->decode_pool) < LEAST_THREADS) return FRIT_OK;
    const int n = frit_cpu_fewest_readers(device->decode_pool, &device->decode_kernels, bytes,
                                          n_bytes < MOST_BYTES ? n_bytes : MOST_BYTES);
    if (n == frit_pool_size(device->decode_pool)) return FRIT_OK;
    frit_pool *fewer;
    FRIT_TRY(frit_pool_new(&fewer, n));
    frit_cpu_place_threads(device, fewer);
    if (device->decode_pool != device->prefill_pool) frit_pool_free(device->decode_pool);
    device->decode_pool = fewer;
    return FRIT_OK;
}
