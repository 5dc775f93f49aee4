// SPDX-License-Identifier: MIT
// Measures what bounds a CPU: reading weights from memory, and int8 multiply-adds that wait for nothing.
#include "backend/cpu/probe.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/memory.h"
#include "base/cpu.h"
#include "base/thread.h"
#include "base/time.h"

#include <stdatomic.h>
#include <string.h>

// Passes repeat for the time given, and the best one counts: neighbours only slow it down.
static const uint64_t measure_ns = 400000000;

typedef struct probe {
    const frit_kernels *kernels;
    uint8_t *buffer;
    uint64_t n_bytes;
    int64_t n_rounds;
    _Atomic uint64_t sink;   // results go here, so that no compiler drops the work
    _Atomic uint64_t n_megaops;
} probe;

// More than the caches hold: three times the largest, where the machine has so much to spare.
static uint64_t buffer_bytes(void)
{
    const uint64_t least = (uint64_t)256 << 20, wanted = 3 * frit_cache_bytes(), spare = frit_memory_available() / 4;
    const uint64_t n_bytes = wanted < spare ? wanted : spare;
    return n_bytes > least ? n_bytes : least;
}

static uint8_t *share(const probe *p, int part, int parts, size_t *n)
{
    *n = (size_t)(p->n_bytes / (uint64_t)parts / 4096 * 4096);
    return p->buffer + (size_t)part * *n;
}

static void touch(void *ctx, int part, int parts)
{
    size_t n;
    uint8_t *bytes = share(ctx, part, parts, &n);
    memset(bytes, part + 1, n);
}

static void read_share(void *ctx, int part, int parts)
{
    probe *p = ctx;
    size_t n;
    const uint8_t *bytes = share(p, part, parts, &n);
    atomic_fetch_add(&p->sink, p->kernels->probe_read(bytes, n));
}

static void multiply(void *ctx, int part, int parts)
{
    probe *p = ctx;
    int32_t sink = part + parts;
    const double n_ops = p->kernels->probe_int8(p->n_rounds, &sink);
    atomic_fetch_add(&p->sink, (uint64_t)(uint32_t)sink);
    atomic_fetch_add(&p->n_megaops, (uint64_t)(n_ops * 1e-6));
}

// 10^9 bytes per second.
static double read_rate(probe *p, frit_pool *pool)
{
    size_t n;
    share(p, 0, frit_pool_size(pool), &n);
    const double n_bytes = (double)n * frit_pool_size(pool);
    double best = 0;
    frit_pool_run(pool, touch, p);
    for (uint64_t start = frit_time_ns(), now = start; now - start < measure_ns;) {
        const uint64_t before = now;
        frit_pool_run(pool, read_share, p);
        now = frit_time_ns();
        const double rate = n_bytes / (double)(now - before + 1);
        if (rate > best) best = rate;
    }
    return best;
}

// 10^12 operations per second.
static double int8_rate(probe *p, frit_pool *pool)
{
    double best = 0;
    p->n_rounds = 1000000;
    for (uint64_t start = frit_time_ns(), now = start; now - start < measure_ns;) {
        const uint64_t before = now;
        atomic_store(&p->n_megaops, 0);
        frit_pool_run(pool, multiply, p);
        now = frit_time_ns();
        const double rate = (double)atomic_load(&p->n_megaops) * 1e3 / (double)(now - before + 1);
        if (rate > best) best = rate;
    }
    return best;
}

frit_status frit_cpu_probe(frit_machine *machine, int32_t n_threads)
{
    frit_kernels kernels;
    *machine = (frit_machine){.cpu_name = frit_cpu_name(),
                              .isa = frit_isa_install(&kernels, NULL, INT64_MAX),
                              .n_cores = frit_thread_default_count()};
    if (n_threads <= 0) return FRIT_OK;

    frit_pool *pool;
    FRIT_TRY(frit_pool_new(&pool, n_threads));
    probe p = {.kernels = &kernels, .n_bytes = buffer_bytes()};
    p.buffer = frit_cpu_memory_new(p.n_bytes);
    frit_status status = p.buffer ? FRIT_OK : frit_fail_memory((size_t)p.n_bytes, "measuring the speed of memory");
    if (status == FRIT_OK) {
        machine->read_gbps = read_rate(&p, pool);
        machine->int8_tops = int8_rate(&p, pool);
    }
    frit_cpu_memory_free(p.buffer, p.n_bytes);
    frit_pool_free(pool);
    return status;
}
