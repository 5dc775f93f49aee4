// SPDX-License-Identifier: MIT
// The pool. Three words carry all the signals:
//
//     start    the caller adds 1: a new job (or the end) is there         workers wait for it between jobs
//     done     the last worker that finishes adds 1                       the caller waits for it
//     phase    the last part that reaches a barrier adds 1                all other parts wait for it
//
// A waiter spins for at most about as long as falling asleep and being woken would cost, then sleeps. Spinning in vain
// is worse than useless on cores that others want too: each vain spin halves the next ones for the same signal, each
// good one doubles them again. When there are more threads than cores, spinning would keep the very thread off the
// core that everybody waits for, so nobody spins.
#include "base/thread.h"
#include "base/os.h"
#include "base/time.h"

#include <stdlib.h>
#if defined(_MSC_VER)
#include <intrin.h>
#endif

enum { MAX_THREADS = 1024, MIN_SPIN_NS = 1000, MAX_SPIN_NS = 50 * 1000, PAUSES_PER_LOOK = 8, LOOKS_PER_CLOCK = 8 };
enum { APART = 128 };   // what different threads write lies on different pairs of cache lines

typedef struct signal_word {
    frit_os_word word;
    _Atomic uint32_t spin_ns;   // a hint; any thread may change it
    char gap[APART];
} signal_word;

typedef struct worker {
    frit_pool *pool;
    frit_os_thread *thread;
    int part;
} worker;

struct frit_pool {
    int n;
    bool spins;
    worker *workers;   // [n], the first is the caller's and has no thread
    frit_pool_fn fn;   // the job: written before `start`, read after it
    void *ctx;
    bool stop;
    char gap0[APART];
    signal_word start, done, phase;
    _Atomic int n_busy;   // workers that have not finished the job
    char gap1[APART];
    _Atomic int n_arrived;   // parts that stand at the barrier
};

static inline void pause_cpu(void)
{
#if defined(_MSC_VER)
    YieldProcessor();
#elif defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
    __asm__ volatile("yield");
#endif
}

static uint32_t value_of(const signal_word *signal)
{
    return atomic_load_explicit(&signal->word.value, memory_order_acquire);
}

// True when the word has moved on; false after `spin_ns`.
static bool spin(const signal_word *signal, uint32_t seen, uint32_t spin_ns)
{
    uint64_t end = 0;
    for (;;) {
        for (int look = 0; look < LOOKS_PER_CLOCK; look++) {
            if (value_of(signal) != seen) return true;
            for (int i = 0; i < PAUSES_PER_LOOK; i++) pause_cpu();
        }
        uint64_t now = frit_time_ns();
        if (end == 0) end = now + spin_ns;
        if (now >= end) return false;
    }
}

static void wait_for_change(const frit_pool *pool, signal_word *signal, uint32_t seen)
{
    if (pool->spins) {
        uint32_t now = atomic_load_explicit(&signal->spin_ns, memory_order_relaxed);
        bool good = spin(signal, seen, now);
        uint32_t next = good ? now * 2 : now / 2;
        next = next < MIN_SPIN_NS ? MIN_SPIN_NS : next > MAX_SPIN_NS ? MAX_SPIN_NS : next;
        if (next != now) atomic_store_explicit(&signal->spin_ns, next, memory_order_relaxed);
        if (good) return;
    }
    while (value_of(signal) == seen) frit_os_word_sleep(&signal->word, seen);
}

static void advance(signal_word *signal)
{
    atomic_fetch_add(&signal->word.value, 1);
    frit_os_word_wake(&signal->word);
}

static void work(void *ctx)
{
    const worker *self = ctx;
    frit_pool *pool = self->pool;
    for (uint32_t seen = 0;; seen++) {
        wait_for_change(pool, &pool->start, seen);
        if (pool->stop) return;
        pool->fn(pool->ctx, self->part, pool->n);
        if (atomic_fetch_sub(&pool->n_busy, 1) == 1) advance(&pool->done);
    }
}

static frit_status init_signals(frit_pool *pool)
{
    signal_word *const all[] = {&pool->start, &pool->done, &pool->phase};
    for (size_t i = 0; i < FRIT_COUNT(all); i++) {
        FRIT_TRY(frit_os_word_init(&all[i]->word));
        atomic_store_explicit(&all[i]->spin_ns, MAX_SPIN_NS, memory_order_relaxed);
    }
    return FRIT_OK;
}

static frit_status start_workers(frit_pool *pool, int n_threads)
{
    for (int i = 1; i < n_threads; i++) {
        worker *w = &pool->workers[i];
        *w = (worker){.pool = pool, .part = i};
        frit_status status = frit_os_thread_start(&w->thread, work, w);
        if (status != FRIT_OK) return frit_fail(status, "thread %d of %d: %s", i + 1, n_threads, frit_error());
        pool->n = i + 1;   // frit_pool_free joins what runs; nobody reads n before the first job
    }
    return FRIT_OK;
}

frit_status frit_pool_new(frit_pool **out, int n_threads)
{
    *out = NULL;
    int n_cores = frit_thread_default_count();
    if (n_threads == 0) n_threads = n_cores < MAX_THREADS ? n_cores : MAX_THREADS;
    if (n_threads < 0 || n_threads > MAX_THREADS)
        return frit_fail(FRIT_E_INVALID, "%d threads: 1 to %d are possible, or 0 for one per core", n_threads,
                         MAX_THREADS);
    frit_pool *pool = calloc(1, sizeof *pool);
    if (!pool) return frit_fail_memory(sizeof *pool, "a thread pool");
    pool->n = 1;
    pool->spins = n_threads <= n_cores;
    size_t n_bytes = (size_t)n_threads * sizeof *pool->workers;
    pool->workers = calloc(1, n_bytes);
    frit_status status = pool->workers ? init_signals(pool) : frit_fail_memory(n_bytes, "the threads of a pool");
    if (status == FRIT_OK) status = start_workers(pool, n_threads);
    if (status != FRIT_OK) {
        frit_pool_free(pool);
        return status;
    }
    *out = pool;
    return FRIT_OK;
}

int frit_pool_size(const frit_pool *pool)
{
    return pool->n;
}

void frit_pool_run(frit_pool *pool, frit_pool_fn fn, void *ctx)
{
    if (pool->n == 1) {
        fn(ctx, 0, 1);
        return;
    }
    pool->fn = fn;
    pool->ctx = ctx;
    atomic_store_explicit(&pool->n_busy, pool->n - 1, memory_order_relaxed);
    uint32_t seen = value_of(&pool->done);
    advance(&pool->start);
    fn(ctx, 0, pool->n);
    wait_for_change(pool, &pool->done, seen);
}

void frit_pool_barrier(frit_pool *pool)
{
    if (pool->n == 1) return;
    // Nobody can pass this phase before this thread has arrived, so the value read here is the phase's own.
    uint32_t seen = value_of(&pool->phase);
    if (atomic_fetch_add(&pool->n_arrived, 1) + 1 == pool->n) {
        atomic_store_explicit(&pool->n_arrived, 0, memory_order_relaxed);
        advance(&pool->phase);
    } else {
        wait_for_change(pool, &pool->phase, seen);
    }
}

void frit_pool_free(frit_pool *pool)
{
    if (!pool) return;
    if (pool->n > 1) {
        pool->stop = true;
        advance(&pool->start);
        for (int i = 1; i < pool->n; i++) frit_os_thread_join(pool->workers[i].thread);
    }
    frit_os_word_free(&pool->start.word);
    frit_os_word_free(&pool->done.word);
    frit_os_word_free(&pool->phase.word);
    free(pool->workers);
    free(pool);
}

enum { ONCE_NEW, ONCE_RUNNING, ONCE_DONE };

void frit_once_run(frit_once *once, void (*fn)(void))
{
    int state = atomic_load_explicit(&once->state, memory_order_acquire);
    if (state == ONCE_DONE) return;
    if (state == ONCE_NEW && atomic_compare_exchange_strong(&once->state, &state, ONCE_RUNNING)) {
        fn();
        atomic_store_explicit(&once->state, ONCE_DONE, memory_order_release);
        return;
    }
    while (atomic_load_explicit(&once->state, memory_order_acquire) != ONCE_DONE) frit_os_yield();
}
