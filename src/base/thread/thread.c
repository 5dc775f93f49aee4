// SPDX-License-Identifier: MIT
// The thread pool. A job is a list of phases. Phases are numbered over the life of the pool, and all threads wait for
// one word: `phase`, the number of the open phase.
//
//     phase     number of the open phase; the thread that finishes its last piece opens the next
//     pieces    number of the phase | least pieces to take at once | count; count 0: no job
//     cursor    one per thread: number of the phase | first free piece | end of the free pieces
//     n_left    pieces that are not finished
//
// A cursor with the number of an earlier phase means that all pieces of the thread are free, so opening a phase writes
// no cursor. A thread takes pieces by moving a cursor (compare and swap). While any piece is taken and not finished,
// the phase stays open and the job's data stays valid; a thread without pieces reads only the pool itself. A job ends
// when its last piece is finished. Late threads are not joined: they find no free pieces.
//
// A thread that loses its core while it works on pieces delays all others. If the others waited for it longer in a walk
// than doing its pieces themselves would take, the thread is benched: it takes no pieces for a while, with exponential
// backoff. A core that another process uses then costs its own pieces, not the pace of all threads. With many
// virtual processors, some processor is stopped for a moment in every walk, so a pool of many threads benches only
// threads that are late twice in a row. The time that a sleeping thread takes to wake up does not count as lateness of
// the threads that it waited for: their lateness ends when the next phase is opened.
//
// A waiting thread spins for at most about the time that falling asleep and waking take, then sleeps. Spinning wastes
// cores that others need, so a spin that times out halves the next spins of its kind, and a spin that succeeds doubles
// them. With more threads than cores a spinning thread would take the core from the thread it waits for, so no thread
// spins.
#include "base/thread/thread.h"
#include "base/os.h"
#include "base/time.h"
#include "base/machine/topology.h"

#include <stdlib.h>
#include <string.h>
#if defined(_MSC_VER)
#include <intrin.h>
#endif

// Between two jobs the caller samples and detokenizes, which takes longer than a phase, so a longer spin is allowed.
enum { MIN_SPIN_NS = 1000, MAX_SPIN_NS = 50 * 1000, MAX_JOB_SPIN_NS = 400 * 1000 };
enum { MAX_THREADS = 1024, PAUSES_PER_LOOK = 8, LOOKS_PER_CLOCK = 8 };
enum { PAD_BYTES = 128 };   // two cache lines between words that different threads write

static const uint32_t EVERY_THREAD = UINT32_MAX;   // stands for a count of pieces: one piece for each thread

enum { OPENED = 64 };   // phases whose time of opening is stored

enum { LATE_SHARE = 4, FEW_THREADS = 4, MIN_BACKOFF_NS = 50 * 1000 * 1000, MAX_BACKOFF_NS = 800 * 1000 * 1000 };

typedef struct thread_state {
    _Atomic uint64_t cursor;
    _Atomic uint32_t busy_phase;   // the phase in which the thread may be working on pieces
    _Atomic uint64_t late_ns;      // time that other threads waited for this thread in this walk, summed
    _Atomic bool benched;          // takes no pieces. `benched` and the fields below change between walks only
    uint64_t bench_end_ns;         // the thread still misses the walk in which this time passes
    uint64_t backoff_ns;           // length of the next bench
    uint64_t good_ns;              // time of walks without a bench since backoff_ns changed
    bool was_late;                 // true if the thread was late in the last walk
    char gap[PAD_BYTES];
} thread_state;

typedef struct worker {
    frit_pool *pool;
    frit_os_thread *handle;
    int thread;   // its number in the pool
} worker;

typedef enum wait_kind { WAIT_FOR_JOB, WAIT_FOR_PHASE, WAIT_KINDS } wait_kind;

struct frit_pool {
    int n;
    bool spins;
    worker *workers;         // [n], the first is the caller's own thread
    thread_state *threads;   // [n]
    int n_active;            // threads that are not benched
    // The job. Only threads that have taken pieces read it.
    frit_walk walk;
    int at;            // index of the open phase in the walk
    frit_pool_fn fn;   // the function of frit_pool_run; NULL for a walk
    void *ctx;
    _Atomic bool stop;
    _Atomic uint64_t opened_ns[OPENED];   // when the last phases were opened, by phase number
    char gap0[PAD_BYTES];
    frit_os_word phase;
    char gap1[PAD_BYTES];
    frit_os_word unbench;                   // incremented when benched threads become active
    _Atomic uint64_t pieces;                // number of the phase | grain << 16 | pieces
    _Atomic uint32_t spin_ns[WAIT_KINDS];   // hints; any thread may change them
    char gap2[PAD_BYTES];
    _Atomic int n_left;
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

static uint32_t open_phase(const frit_pool *pool)
{
    return atomic_load_explicit(&pool->phase.value, memory_order_acquire);
}

// ------------------------------------------------------------------------------- waiting

// Returns true once the phase `seen` is over, false after `spin_ns`.
static bool spin(const frit_pool *pool, uint32_t seen, uint32_t spin_ns)
{
    uint64_t end = 0;
    for (;;) {
        for (int look = 0; look < LOOKS_PER_CLOCK; look++) {
            if (open_phase(pool) != seen) return true;
            for (int i = 0; i < PAUSES_PER_LOOK; i++) pause_cpu();
        }
        uint64_t now = frit_time_ns();
        if (end == 0) end = now + spin_ns;
        if (now >= end) return false;
    }
}

static bool is_benched(const frit_pool *pool, int thread)
{
    return atomic_load_explicit(&pool->threads[thread].benched, memory_order_relaxed);
}

// Sleeps until the phase `seen` is over, and adds the time to the threads that were still working on it.
static void sleep_until_next(frit_pool *pool, uint32_t seen, int thread, wait_kind kind)
{
    const bool measures = kind == WAIT_FOR_PHASE && !is_benched(pool, thread);
    bool late[MAX_THREADS];
    for (int i = 0; measures && i < pool->n; i++)
        late[i] = i != thread && atomic_load_explicit(&pool->threads[i].busy_phase, memory_order_relaxed) == seen;
    const uint64_t start = measures ? frit_time_ns() : 0;
    while (open_phase(pool) == seen) frit_os_word_sleep(&pool->phase, seen);
    const uint64_t end = atomic_load_explicit(&pool->opened_ns[(seen + 1) % OPENED], memory_order_relaxed);
    const uint64_t waited = end > start ? end - start : 0;
    for (int i = 0; measures && i < pool->n; i++)
        if (late[i]) atomic_fetch_add_explicit(&pool->threads[i].late_ns, waited, memory_order_relaxed);
}

static void wait_for_next(frit_pool *pool, uint32_t seen, int thread, wait_kind kind)
{
    if (pool->spins) {
        _Atomic uint32_t *hint = &pool->spin_ns[kind];
        uint32_t now = atomic_load_explicit(hint, memory_order_relaxed);
        bool good = spin(pool, seen, now);
        uint32_t next = good ? now * 2 : now / 2;
        const uint32_t most = kind == WAIT_FOR_JOB ? MAX_JOB_SPIN_NS : MAX_SPIN_NS;
        next = next < MIN_SPIN_NS ? MIN_SPIN_NS : next > most ? most : next;
        if (next != now) atomic_store_explicit(hint, next, memory_order_relaxed);
        if (good) return;
    }
    sleep_until_next(pool, seen, thread, kind);
}

// ------------------------------------------------------------------------------- phases

enum { PIECES_MASK = 0xffff, MAX_GRAIN = 0x7fff };

// Called by the thread that finished the last piece of the open phase, or that starts a job.
static void open_with(frit_pool *pool, uint32_t n_pieces, int grain)
{
    const uint32_t number = atomic_load_explicit(&pool->phase.value, memory_order_relaxed) + 1;
    const int n_left = n_pieces == EVERY_THREAD ? pool->n : (int)n_pieces;
    atomic_store_explicit(&pool->n_left, n_left, memory_order_relaxed);
    const uint32_t word = n_pieces == EVERY_THREAD ? EVERY_THREAD : (uint32_t)grain << 16 | n_pieces;
    atomic_store_explicit(&pool->pieces, (uint64_t)number << 32 | word, memory_order_release);
    atomic_store_explicit(&pool->opened_ns[number % OPENED], frit_time_ns(), memory_order_relaxed);
    atomic_fetch_add(&pool->phase.value, 1);
    frit_os_word_wake(&pool->phase);
}

// Opens the next phase of the walk that has pieces, or ends the job.
static void open_next(frit_pool *pool)
{
    int n = 0, grain = 1;
    if (!pool->fn)
        while (++pool->at < pool->walk.n_phases && (n = pool->walk.open(pool->walk.ctx, pool->at, &grain)) == 0)
            grain = 1;
    open_with(pool, (uint32_t)n, grain < 0 ? 0 : grain > MAX_GRAIN ? MAX_GRAIN : grain);
}

static uint64_t cursor_word(uint32_t number, int begin, int end)
{
    return (uint64_t)number << 32 | (uint64_t)begin << 16 | (uint64_t)end;
}

// The number of a thread's free pieces to take at once. With grain 0 (long pieces) half would be too many: a thread at
// half the speed of the others would work on its half until the end of the phase.
static int share_of(int n_left, int n_own, int grain)
{
    if (grain == 0) return 2 * n_left <= n_own ? 1 : (n_left + 3) / 4;
    const int half = (n_left + 1) / 2, least = grain < n_left ? grain : n_left;
    return half > least ? half : least;
}

// Takes free pieces of thread `owner`, from the front or the end. Returns their number; *first is the first piece.
static int take(frit_pool *pool, uint32_t number, uint32_t pieces, int owner, bool from_front, int *first)
{
    const int n_pieces = (int)(pieces & PIECES_MASK), grain = (int)(pieces >> 16);
    const int own_first = (int)((int64_t)n_pieces * owner / pool->n);
    const int own_end = (int)((int64_t)n_pieces * (owner + 1) / pool->n);
    _Atomic uint64_t *word = &pool->threads[owner].cursor;
    uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);
    for (;;) {
        const int32_t age = (int32_t)(number - (uint32_t)(seen >> 32));
        if (age < 0) return 0;   // the phase is over
        const int begin = age > 0 ? 0 : (int)(seen >> 16 & 0xffff);
        const int end = age > 0 ? own_end - own_first : (int)(seen & 0xffff);
        if (begin >= end) return 0;
        const int n = share_of(end - begin, own_end - own_first, grain);
        const uint64_t wanted = from_front ? cursor_word(number, begin + n, end) : cursor_word(number, begin, end - n);
        *first = own_first + (from_front ? begin : end - n);
        if (atomic_compare_exchange_weak_explicit(word, &seen, wanted, memory_order_acquire, memory_order_relaxed))
            return n;
    }
}

static int work_on_pieces(frit_pool *pool, uint32_t number, uint32_t pieces, int thread)
{
    int n_done = 0, first;
    for (int i = 0; i < pool->n; i++) {
        const int owner = thread + i < pool->n ? thread + i : thread + i - pool->n;
        for (int n; (n = take(pool, number, pieces, owner, i == 0, &first)) > 0; n_done += n)
            pool->walk.work(pool->walk.ctx, pool->at, first, first + n, thread);
    }
    return n_done;
}

// Prefetches memory while the phase lasts. Prefetches are hints: the memory may have been freed meanwhile.
static void prefetch(const frit_pool *pool, uint32_t seen, frit_prefetch memory)
{
    enum { LINE = 64, LINES_PER_LOOK = 16 };
    for (size_t i = 0; i < memory.n_bytes; i += LINE) {
        if (i % (LINE * LINES_PER_LOOK) == 0 && open_phase(pool) != seen) return;
#if defined(__GNUC__)
        __builtin_prefetch((const char *)memory.bytes + i, 0, 2);
#endif
    }
}

// Works on the phase until no piece is free. Returns false if there is no job.
static bool work_on_phase(frit_pool *pool, uint32_t number, int thread)
{
    const uint64_t word = atomic_load_explicit(&pool->pieces, memory_order_acquire);
    const uint32_t pieces = (uint32_t)word;
    if ((uint32_t)(word >> 32) != number) return true;   // the phase is over
    if ((pieces & PIECES_MASK) == 0) return false;
    if (is_benched(pool, thread) && pieces != EVERY_THREAD) return true;
    _Atomic uint32_t *busy = &pool->threads[thread].busy_phase;
    int n_done = 1;
    atomic_store_explicit(busy, number, memory_order_relaxed);
    frit_prefetch next = {0};
    if (pieces == EVERY_THREAD) {
        pool->fn(pool->ctx, thread, pool->n);
    } else {
        n_done = work_on_pieces(pool, number, pieces, thread);
        // Called before the pieces count as finished, because afterwards the job may be over.
        if (n_done > 0 && pool->walk.prefetch) next = pool->walk.prefetch(pool->walk.ctx, pool->at, thread);
    }
    const bool is_last = n_done > 0 && atomic_fetch_sub(&pool->n_left, n_done) == n_done;
    atomic_store_explicit(busy, number - 1, memory_order_relaxed);
    if (is_last)
        open_next(pool);
    else if (next.bytes)
        prefetch(pool, number, next);
    return true;
}

static void work(void *ctx)
{
    const worker *self = ctx;
    frit_pool *pool = self->pool;
    for (;;) {
        const uint32_t number = open_phase(pool), unbench = atomic_load(&pool->unbench.value);
        if (atomic_load_explicit(&pool->stop, memory_order_acquire)) return;
        if (is_benched(pool, self->thread)) {
            frit_os_word_sleep(&pool->unbench, unbench);
            continue;
        }
        const bool busy = work_on_phase(pool, number, self->thread);
        wait_for_next(pool, number, self->thread, busy ? WAIT_FOR_PHASE : WAIT_FOR_JOB);
    }
}

// The caller works on the job that it opened.
static void work_until_done(frit_pool *pool)
{
    for (uint32_t number; number = open_phase(pool), work_on_phase(pool, number, 0);)
        wait_for_next(pool, number, 0, WAIT_FOR_PHASE);
}

// ------------------------------------------------------------------------------- benching, between jobs

static void wake_benched(frit_pool *pool)
{
    atomic_fetch_add(&pool->unbench.value, 1);
    frit_os_word_wake(&pool->unbench);
}

// Makes threads active again whose bench has ended.
static void unbench_threads(frit_pool *pool, uint64_t now_ns)
{
    const int n_before = pool->n_active;
    for (int i = 0; i < pool->n && pool->n_active < pool->n; i++) {
        thread_state *s = &pool->threads[i];
        if (!is_benched(pool, i) || s->bench_end_ns > now_ns) continue;
        atomic_store_explicit(&s->benched, false, memory_order_relaxed);
        pool->n_active++;
    }
    if (pool->n_active > n_before) wake_benched(pool);
}

// Without the slowest of n equal threads the others need n / (n - 1) of the time. Benching pays if they wait for it
// during more than 1 / n of a walk. The threshold is at least 1 / LATE_SHARE: rare short delays are not worth a bench.
static bool is_late(const frit_pool *pool, uint64_t late_ns, uint64_t walk_ns)
{
    const int n = pool->n_active, share = n < LATE_SHARE ? n : LATE_SHARE;
    return n > 1 && late_ns / (uint64_t)(n - 1) > walk_ns / (uint64_t)share;
}

// Benches the thread that others waited for most in the walk. In a large pool the thread must also have been late in
// the walk before, or benched not long ago. A thread that was not benched for as long as its backoff gets half the
// backoff.
static void bench_latest(frit_pool *pool, uint64_t start_ns, uint64_t end_ns)
{
    thread_state *latest = NULL;
    uint64_t most = 0;
    for (int i = 0; i < pool->n; i++) {
        thread_state *s = &pool->threads[i];
        const uint64_t late_ns = atomic_exchange_explicit(&s->late_ns, 0, memory_order_relaxed);
        if (is_benched(pool, i)) continue;
        s->good_ns += end_ns - start_ns;
        if (s->good_ns >= s->backoff_ns && s->backoff_ns > MIN_BACKOFF_NS) {
            s->backoff_ns /= 2;
            s->good_ns = 0;
        }
        const bool late = is_late(pool, late_ns, end_ns - start_ns);
        const bool again = s->was_late || s->backoff_ns > MIN_BACKOFF_NS || pool->n <= FEW_THREADS;
        s->was_late = late;
        if (!late || !again || late_ns <= most) continue;
        latest = s;
        most = late_ns;
    }
    if (!latest) return;
    atomic_store_explicit(&latest->benched, true, memory_order_relaxed);
    latest->bench_end_ns = end_ns + latest->backoff_ns;
    latest->backoff_ns = latest->backoff_ns < MAX_BACKOFF_NS / 2 ? 2 * latest->backoff_ns : MAX_BACKOFF_NS;
    latest->good_ns = 0;
    pool->n_active--;
}

// ------------------------------------------------------------------------------- the pool

static frit_status start_workers(frit_pool *pool, int n_threads)
{
    for (int i = 1; i < n_threads; i++) {
        worker *w = &pool->workers[i];
        *w = (worker){.pool = pool, .thread = i};
        frit_status status = frit_os_thread_start(&w->handle, work, w);
        if (status != FRIT_OK) return frit_fail(status, "%s (thread %d of %d)", frit_error(), i + 1, n_threads);
        pool->n = i + 1;   // frit_pool_free joins the threads below n; no thread reads n before the first job
    }
    return FRIT_OK;
}

frit_status frit_pool_new(frit_pool **out, int n_threads)
{
    *out = NULL;
    if (n_threads == 0) {
        frit_topology topology;
        frit_topology_get(&topology);
        n_threads = topology.n_cores < MAX_THREADS ? topology.n_cores : MAX_THREADS;
    }
    if (n_threads < 0 || n_threads > MAX_THREADS)
        return frit_fail(FRIT_E_INVALID, "found %d threads, expected 1 to %d, or 0 for one per core", n_threads,
                         MAX_THREADS);
    frit_pool *pool = calloc(1, sizeof *pool);
    if (!pool) return frit_fail_memory(sizeof *pool, "a thread pool");
    pool->n = 1;
    pool->spins = n_threads <= frit_topology_cpus();
    for (int i = 0; i < WAIT_KINDS; i++) atomic_store_explicit(&pool->spin_ns[i], MAX_SPIN_NS, memory_order_relaxed);
    frit_status status = frit_os_word_init(&pool->phase);
    if (status == FRIT_OK) status = frit_os_word_init(&pool->unbench);
    const size_t n_bytes = (size_t)n_threads * (sizeof *pool->workers + sizeof *pool->threads);
    pool->workers = calloc((size_t)n_threads, sizeof *pool->workers);
    pool->threads = calloc((size_t)n_threads, sizeof *pool->threads);
    if (!pool->workers || !pool->threads) status = frit_fail_memory(n_bytes, "the threads of a pool");
    if (status == FRIT_OK) status = start_workers(pool, n_threads);
    if (status != FRIT_OK) {
        frit_pool_free(pool);
        return status;
    }
    for (int i = 0; i < pool->n; i++) pool->threads[i].backoff_ns = MIN_BACKOFF_NS;
    pool->n_active = pool->n;
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
    unbench_threads(pool, UINT64_MAX);
    pool->fn = fn;
    pool->ctx = ctx;
    open_with(pool, EVERY_THREAD, 1);
    work_until_done(pool);
}

typedef struct copying {
    char *to;
    const char *from;
    size_t n_bytes;
} copying;

static void copy_thread(void *ctx, int thread, int n_threads)
{
    const copying *c = ctx;
    const size_t each = (c->n_bytes / (size_t)n_threads + 64) / 64 * 64, begin = each * (size_t)thread;
    const size_t n = begin >= c->n_bytes ? 0 : c->n_bytes - begin < each ? c->n_bytes - begin : each;
    if (n > 0) memcpy(c->to + begin, c->from + begin, n);
}

void frit_pool_copy(frit_pool *pool, void *to, const void *from, size_t n_bytes)
{
    enum { LEAST = 256 << 10 };
    copying c = {to, from, n_bytes};
    if (n_bytes < LEAST)
        memcpy(to, from, n_bytes);
    else
        frit_pool_run(pool, copy_thread, &c);
}

void frit_pool_walk(frit_pool *pool, const frit_walk *walk)
{
    if (pool->n == 1) {
        for (int i = 0; i < walk->n_phases; i++) {
            int grain = 1;
            const int n = walk->open(walk->ctx, i, &grain);
            if (n > 0) walk->work(walk->ctx, i, 0, n, 0);
        }
        return;
    }
    // Safe with late threads of earlier jobs: their compare and swap fails. It also keeps the age of a cursor small.
    const uint64_t untouched = cursor_word(open_phase(pool), 0, 0);
    for (int i = 0; i < pool->n; i++) atomic_store_explicit(&pool->threads[i].cursor, untouched, memory_order_relaxed);
    pool->fn = NULL;
    pool->walk = *walk;
    pool->at = -1;
    const uint64_t start = frit_time_ns();
    unbench_threads(pool, start);
    open_next(pool);
    work_until_done(pool);
    bench_latest(pool, start, frit_time_ns());
}

void frit_pool_free(frit_pool *pool)
{
    if (!pool) return;
    if (pool->n > 1) {
        atomic_store_explicit(&pool->stop, true, memory_order_release);
        open_with(pool, 0, 1);
        wake_benched(pool);
        for (int i = 1; i < pool->n; i++) frit_os_thread_join(pool->workers[i].handle);
    }
    frit_os_word_deinit(&pool->phase);
    frit_os_word_deinit(&pool->unbench);
    free(pool->workers);
    free(pool->threads);
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

// `seen` counts changes: odd while a thread has the lock. Each change wakes the threads that sleep on it.
struct frit_lock {
    frit_os_word word;
};

frit_status frit_lock_new(frit_lock **out)
{
    frit_lock *lock = *out = calloc(1, sizeof *lock);
    if (!lock) return frit_fail_memory(sizeof *lock, "a lock");
    const frit_status status = frit_os_word_init(&lock->word);
    if (status == FRIT_OK) return FRIT_OK;
    free(lock);
    *out = NULL;
    return status;
}

void frit_lock_free(frit_lock *lock)
{
    if (!lock) return;
    frit_os_word_deinit(&lock->word);
    free(lock);
}

bool frit_lock_wait(frit_lock *lock, uint32_t *seen)
{
    for (;;) {
        uint32_t value = atomic_load(&lock->word.value);
        while (value % 2 == 0)
            if (atomic_compare_exchange_weak(&lock->word.value, &value, value + 1)) return true;
        if (value != *seen) {
            *seen = value;
            return false;
        }
        frit_os_word_sleep(&lock->word, value);
    }
}

void frit_lock_acquire(frit_lock *lock)
{
    uint32_t seen = 0;
    while (!frit_lock_wait(lock, &seen)) {
    }
}

void frit_lock_news(frit_lock *lock)
{
    atomic_fetch_add(&lock->word.value, 2);
    frit_os_word_wake(&lock->word);
}

void frit_lock_release(frit_lock *lock)
{
    atomic_fetch_add(&lock->word.value, 1);
    frit_os_word_wake(&lock->word);
}
