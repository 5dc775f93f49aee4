// SPDX-License-Identifier: MIT
// The pool. A job is a list of phases, which are numbered through the life of the pool; one word, `phase`, says which
// one is open, and is all that threads wait for, between jobs too.
//
//     phase     the number of the open phase          who does the last piece of a phase opens the next
//     pieces    its number, how many it has, and how many are taken at least        none: no job is there
//     cursor    of each part: which pieces are free   number of a phase | begin | end
//     n_left    pieces that are not done
//
// A cursor that names an older phase says that nobody took anything yet, so opening a phase touches no cursor. Whoever
// succeeds in moving a cursor holds pieces, and while it does the phase stays open and the job's data stays valid;
// without pieces a thread reads nothing but the pool itself. A job is over when its last piece is done: late threads
// are not waited for, they find that there is nothing for them.
//
// A thread that loses its core while it holds pieces holds up all others. Who is waited for during a good part of a
// walk, and for longer than its share of the work would take the others, rests for some time, longer each time: others
// do its pieces. So one core that is busy with something else costs what this core gave, not the pace of all.
//
// A waiter spins for at most about as long as falling asleep and being woken would cost, then sleeps. Spinning in vain
// is worse than useless on cores that others want too: each vain spin halves the next ones of the same kind, each
// good one doubles them again. When there are more threads than cores, spinning would keep the very thread off the
// core that everybody waits for, so nobody spins.
#include "base/thread.h"
#include "base/os.h"
#include "base/time.h"
#include "base/topology.h"

#include <stdlib.h>
#if defined(_MSC_VER)
#include <intrin.h>
#endif

// Between jobs that follow each other somebody samples, writes and reads: that takes longer than a phase.
enum { MIN_SPIN_NS = 1000, MAX_SPIN_NS = 50 * 1000, MAX_JOB_SPIN_NS = 400 * 1000 };
enum { MAX_THREADS = 1024, PAUSES_PER_LOOK = 8, LOOKS_PER_CLOCK = 8 };
enum { APART = 128 };   // what different threads write lies on different pairs of cache lines

static const uint32_t EVERY_PART = UINT32_MAX;   // instead of a number of pieces: every part has its own

enum { LATE_SHARE = 4, FIRST_REST_NS = 50 * 1000 * 1000, LONGEST_REST_NS = 800 * 1000 * 1000 };

typedef struct seat {   // of a part
    _Atomic uint64_t cursor;
    _Atomic uint32_t holds;     // the number of the phase in which it may hold pieces
    _Atomic uint64_t late_ns;   // that others waited for it in this walk, together
    _Atomic bool rests;         // changed between walks only; so is what follows
    uint64_t rest_end_ns;       // by the clock; the walk that it falls into is left out to its end
    uint64_t next_rest_ns;      // how long it would be the next time
    uint64_t good_ns;           // of walks without a rest, since next_rest_ns changed
    char gap[APART];
} seat;

typedef struct worker {
    frit_pool *pool;
    frit_os_thread *thread;
    int part;
} worker;

typedef enum wait_kind { WAIT_FOR_JOB, WAIT_FOR_PHASE, WAIT_KINDS } wait_kind;

struct frit_pool {
    int n;
    bool spins;
    worker *workers;   // [n], the first is the caller's and has no thread
    seat *seats;       // [n]
    int n_awake;       // seats that do not rest
    // The job: read by who holds pieces only.
    frit_walk walk;
    int at;            // which phase of the walk is open
    frit_pool_fn fn;   // instead of a walk
    void *ctx;
    _Atomic bool stop;
    char gap0[APART];
    frit_os_word phase;
    char gap1[APART];
    frit_os_word rest;                      // changes when rests end
    _Atomic uint64_t pieces;                // number of the phase | grain << 16 | pieces
    _Atomic uint32_t spin_ns[WAIT_KINDS];   // hints; any thread may change them
    char gap2[APART];
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

// True when the phase has passed; false after `spin_ns`.
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

static bool rests(const frit_pool *pool, int part)
{
    return atomic_load_explicit(&pool->seats[part].rests, memory_order_relaxed);
}

// Sleeps until the phase has passed, and notes for whom.
static void sleep_until_next(frit_pool *pool, uint32_t seen, int part, wait_kind kind)
{
    const bool notes = kind == WAIT_FOR_PHASE && !rests(pool, part);
    bool late[MAX_THREADS];
    for (int i = 0; notes && i < pool->n; i++)
        late[i] = i != part && atomic_load_explicit(&pool->seats[i].holds, memory_order_relaxed) == seen;
    const uint64_t start = notes ? frit_time_ns() : 0;
    while (open_phase(pool) == seen) frit_os_word_sleep(&pool->phase, seen);
    const uint64_t waited = notes ? frit_time_ns() - start : 0;
    for (int i = 0; notes && i < pool->n; i++)
        if (late[i]) atomic_fetch_add_explicit(&pool->seats[i].late_ns, waited, memory_order_relaxed);
}

static void wait_for_next(frit_pool *pool, uint32_t seen, int part, wait_kind kind)
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
    sleep_until_next(pool, seen, part, kind);
}

// ------------------------------------------------------------------------------- phases

enum { PIECES_MASK = 0xffff, MAX_GRAIN = 0x7fff };

// Only by the thread that did the last piece of the open phase, or that begins a job.
static void open_with(frit_pool *pool, uint32_t n_pieces, int grain)
{
    const uint32_t number = atomic_load_explicit(&pool->phase.value, memory_order_relaxed) + 1;
    const int n_left = n_pieces == EVERY_PART ? pool->n : (int)n_pieces;
    atomic_store_explicit(&pool->n_left, n_left, memory_order_relaxed);
    const uint32_t word = n_pieces == EVERY_PART ? EVERY_PART : (uint32_t)grain << 16 | n_pieces;
    atomic_store_explicit(&pool->pieces, (uint64_t)number << 32 | word, memory_order_release);
    atomic_fetch_add(&pool->phase.value, 1);
    frit_os_word_wake(&pool->phase);
}

// The next phase of the walk that has pieces, or the end of the job.
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

// How many of the pieces that are left of a part are taken at once. Half of long ones would be too many: some threads
// need twice the time of others, and with half of its own such a one would be busy to the end of the phase.
static int share_of(int n_left, int n_own, int grain)
{
    if (grain == 0) return 2 * n_left <= n_own ? 1 : (n_left + 3) / 4;
    const int half = (n_left + 1) / 2, least = grain < n_left ? grain : n_left;
    return half > least ? half : least;
}

// Takes some of the free pieces of part `owner`, from the front or from the end. Returns how many, and the first one.
static int take(frit_pool *pool, uint32_t number, uint32_t pieces, int owner, bool from_front, int *first)
{
    const int n_pieces = (int)(pieces & PIECES_MASK), grain = (int)(pieces >> 16);
    const int own_first = (int)((int64_t)n_pieces * owner / pool->n);
    const int own_end = (int)((int64_t)n_pieces * (owner + 1) / pool->n);
    _Atomic uint64_t *word = &pool->seats[owner].cursor;
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

static int work_on_pieces(frit_pool *pool, uint32_t number, uint32_t pieces, int part)
{
    int n_done = 0, first;
    for (int i = 0; i < pool->n; i++) {
        const int owner = part + i < pool->n ? part + i : part + i - pool->n;
        for (int n; (n = take(pool, number, pieces, owner, i == 0, &first)) > 0; n_done += n)
            pool->walk.work(pool->walk.ctx, pool->at, first, first + n, part);
    }
    return n_done;
}

// Asks for memory, as long as the phase lasts. Only hints: by now all of it may be gone.
static void bring_closer(const frit_pool *pool, uint32_t seen, frit_ahead ahead)
{
    enum { LINE = 64, LINES_PER_LOOK = 16 };
    for (size_t i = 0; i < ahead.n_bytes; i += LINE) {
        if (i % (LINE * LINES_PER_LOOK) == 0 && open_phase(pool) != seen) return;
#if defined(__GNUC__)
        __builtin_prefetch((const char *)ahead.bytes + i, 0, 2);
#endif
    }
}

// Works on the phase as long as there is something to take. False: no job is there.
static bool work_on_phase(frit_pool *pool, uint32_t number, int part)
{
    const uint64_t word = atomic_load_explicit(&pool->pieces, memory_order_acquire);
    const uint32_t pieces = (uint32_t)word;
    if ((uint32_t)(word >> 32) != number) return true;   // over already
    if ((pieces & PIECES_MASK) == 0) return false;
    if (rests(pool, part) && pieces != EVERY_PART) return true;
    _Atomic uint32_t *holds = &pool->seats[part].holds;
    int n_done = 1;
    atomic_store_explicit(holds, number, memory_order_relaxed);
    frit_ahead ahead = {0};
    if (pieces == EVERY_PART) {
        pool->fn(pool->ctx, part, pool->n);
    } else {
        n_done = work_on_pieces(pool, number, pieces, part);
        // Asked for while pieces are held: later the job may be over.
        if (n_done > 0 && pool->walk.ahead) ahead = pool->walk.ahead(pool->walk.ctx, pool->at, part);
    }
    const bool is_last = n_done > 0 && atomic_fetch_sub(&pool->n_left, n_done) == n_done;
    atomic_store_explicit(holds, number - 1, memory_order_relaxed);
    if (is_last)
        open_next(pool);
    else if (ahead.bytes)
        bring_closer(pool, number, ahead);
    return true;
}

static void work(void *ctx)
{
    const worker *self = ctx;
    frit_pool *pool = self->pool;
    for (;;) {
        const uint32_t number = open_phase(pool), resting = atomic_load(&pool->rest.value);
        if (atomic_load_explicit(&pool->stop, memory_order_acquire)) return;
        if (rests(pool, self->part)) {
            frit_os_word_sleep(&pool->rest, resting);
            continue;
        }
        const bool busy = work_on_phase(pool, number, self->part);
        wait_for_next(pool, number, self->part, busy ? WAIT_FOR_PHASE : WAIT_FOR_JOB);
    }
}

// The caller's part of the job that it has opened.
static void work_to_the_end(frit_pool *pool)
{
    for (uint32_t number; number = open_phase(pool), work_on_phase(pool, number, 0);)
        wait_for_next(pool, number, 0, WAIT_FOR_PHASE);
}

// ------------------------------------------------------------------------------- rests, between jobs

static void wake_resting(frit_pool *pool)
{
    atomic_fetch_add(&pool->rest.value, 1);
    frit_os_word_wake(&pool->rest);
}

// Those that are over by now.
static void end_rests(frit_pool *pool, uint64_t now_ns)
{
    const int n_before = pool->n_awake;
    for (int i = 0; i < pool->n && pool->n_awake < pool->n; i++) {
        seat *s = &pool->seats[i];
        if (!rests(pool, i) || s->rest_end_ns > now_ns) continue;
        atomic_store_explicit(&s->rests, false, memory_order_relaxed);
        pool->n_awake++;
    }
    if (pool->n_awake > n_before) wake_resting(pool);
}

// Without the latest of n threads that work alike, the others need n / (n - 1) of the time: that is worth while if they
// wait for more than 1 / n of a walk. And of many, a quarter: what happens once and again is not worth a rest.
static bool is_late(const frit_pool *pool, uint64_t late_ns, uint64_t walk_ns)
{
    const int n = pool->n_awake, share = n < LATE_SHARE ? n : LATE_SHARE;
    return n > 1 && late_ns / (uint64_t)(n - 1) > walk_ns / (uint64_t)share;
}

// After a walk: who was late most begins a rest. Who was not for as long as its next rest would be, gets a shorter one.
static void begin_rests(frit_pool *pool, uint64_t start_ns, uint64_t end_ns)
{
    seat *latest = NULL;
    uint64_t most = 0;
    for (int i = 0; i < pool->n; i++) {
        seat *s = &pool->seats[i];
        const uint64_t late_ns = atomic_exchange_explicit(&s->late_ns, 0, memory_order_relaxed);
        if (rests(pool, i)) continue;
        s->good_ns += end_ns - start_ns;
        if (s->good_ns >= s->next_rest_ns && s->next_rest_ns > FIRST_REST_NS) {
            s->next_rest_ns /= 2;
            s->good_ns = 0;
        }
        if (late_ns <= most) continue;
        latest = s;
        most = late_ns;
    }
    if (!latest || !is_late(pool, most, end_ns - start_ns)) return;
    atomic_store_explicit(&latest->rests, true, memory_order_relaxed);
    latest->rest_end_ns = end_ns + latest->next_rest_ns;
    latest->next_rest_ns = latest->next_rest_ns < LONGEST_REST_NS / 2 ? 2 * latest->next_rest_ns : LONGEST_REST_NS;
    latest->good_ns = 0;
    pool->n_awake--;
}

// ------------------------------------------------------------------------------- the pool

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
    if (n_threads == 0) {
        frit_topology topology;
        frit_topology_get(&topology);
        n_threads = topology.n_cores < MAX_THREADS ? topology.n_cores : MAX_THREADS;
    }
    if (n_threads < 0 || n_threads > MAX_THREADS)
        return frit_fail(FRIT_E_INVALID, "%d threads: 1 to %d are possible, or 0 for one per core", n_threads,
                         MAX_THREADS);
    frit_pool *pool = calloc(1, sizeof *pool);
    if (!pool) return frit_fail_memory(sizeof *pool, "a thread pool");
    pool->n = 1;
    pool->spins = n_threads <= frit_topology_cpus();
    for (int i = 0; i < WAIT_KINDS; i++) atomic_store_explicit(&pool->spin_ns[i], MAX_SPIN_NS, memory_order_relaxed);
    frit_status status = frit_os_word_init(&pool->phase);
    if (status == FRIT_OK) status = frit_os_word_init(&pool->rest);
    const size_t n_bytes = (size_t)n_threads * (sizeof *pool->workers + sizeof *pool->seats);
    pool->workers = calloc((size_t)n_threads, sizeof *pool->workers);
    pool->seats = calloc((size_t)n_threads, sizeof *pool->seats);
    if (!pool->workers || !pool->seats) status = frit_fail_memory(n_bytes, "the threads of a pool");
    if (status == FRIT_OK) status = start_workers(pool, n_threads);
    if (status != FRIT_OK) {
        frit_pool_free(pool);
        return status;
    }
    for (int i = 0; i < pool->n; i++) pool->seats[i].next_rest_ns = FIRST_REST_NS;
    pool->n_awake = pool->n;
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
    end_rests(pool, UINT64_MAX);
    pool->fn = fn;
    pool->ctx = ctx;
    open_with(pool, EVERY_PART, 1);
    work_to_the_end(pool);
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
    // Late threads of former jobs do not mind: they only take what is as they have seen it. And no age ever overflows.
    const uint64_t untouched = cursor_word(open_phase(pool), 0, 0);
    for (int i = 0; i < pool->n; i++) atomic_store_explicit(&pool->seats[i].cursor, untouched, memory_order_relaxed);
    pool->fn = NULL;
    pool->walk = *walk;
    pool->at = -1;
    const uint64_t start = frit_time_ns();
    end_rests(pool, start);
    open_next(pool);
    work_to_the_end(pool);
    begin_rests(pool, start, frit_time_ns());
}

void frit_pool_free(frit_pool *pool)
{
    if (!pool) return;
    if (pool->n > 1) {
        atomic_store_explicit(&pool->stop, true, memory_order_release);
        open_with(pool, 0, 1);
        wake_resting(pool);
        for (int i = 1; i < pool->n; i++) frit_os_thread_join(pool->workers[i].thread);
    }
    frit_os_word_free(&pool->phase);
    frit_os_word_free(&pool->rest);
    free(pool->workers);
    free(pool->seats);
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
