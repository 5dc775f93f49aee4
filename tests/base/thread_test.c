// SPDX-License-Identifier: MIT
// The pool: every part runs once, and every piece of a walk, with fewer and with far more threads than cores.
#include "support/support.h"

#include "base/thread/thread.h"
#include "base/machine/topology.h"
#include "base/time.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_THREADS = 64 };

static void a_pool_of(int n_threads, frit_pool **pool)
{
    assert_ok(frit_pool_new(pool, n_threads));
    assert_int_equal(frit_pool_size(*pool), n_threads);
}

// Plain counters: only the pool's synchronization makes them readable afterwards.
typedef struct counts {
    int ran[MAX_THREADS];
    int n_threads;
} counts;

static void count(void *ctx, int thread, int n_threads)
{
    counts *c = ctx;
    c->ran[thread]++;
    if (thread == 0) c->n_threads = n_threads;
}

static void every_thread_runs_once_per_job(void **state)
{
    (void)state;
    for (int n = 1; n <= 9; n++) {
        frit_pool *pool;
        a_pool_of(n, &pool);
        counts c = {0};
        for (int job = 1; job <= 500; job++) {
            frit_pool_run(pool, count, &c);
            for (int i = 0; i < MAX_THREADS; i++) assert_int_equal(c.ran[i], i < n ? job : 0);
        }
        assert_int_equal(c.n_threads, n);
        frit_pool_free(pool);
    }
}

// A walk whose phases have from none to many pieces. Plain cells: only the pool's synchronization makes them correct.
enum { N_PHASES = 40, MOST_PIECES = 700 };

typedef struct tour {
    int seed;
    int n_pieces[N_PHASES];
    int done[N_PHASES][MOST_PIECES];
    int opened;   // phases, in this walk
    _Atomic int n_wrong, n_by[MAX_THREADS];
} tour;

static int open_tour(void *ctx, int phase, int *grain)
{
    tour *t = ctx;
    static const int grains[] = {1, 3, 0, 50, 1 << 20};
    static const int sizes[] = {1, 0, 7, 2, 64, 0, 0, MOST_PIECES, 3, 129};
    if (phase != t->opened++) atomic_fetch_add(&t->n_wrong, 1);
    t->n_pieces[phase] = sizes[(phase + t->seed) % (int)FRIT_COUNT(sizes)];
    for (int i = 0; phase > 0 && i < t->n_pieces[phase - 1]; i++)
        if (t->done[phase - 1][i] != 1) atomic_fetch_add(&t->n_wrong, 1);
    *grain = grains[(phase + t->seed / 10) % (int)FRIT_COUNT(grains)];
    return t->n_pieces[phase];
}

// Returned memory is never read here; half of it is not allocated.
static frit_prefetch look_ahead(void *ctx, int phase, int thread)
{
    const tour *t = ctx;
    return (frit_prefetch){thread % 2 ? t->done[phase] : NULL, 2 * sizeof *t};
}

static void walk_tour(void *ctx, int phase, int begin, int end, int thread)
{
    tour *t = ctx;
    if (begin < 0 || begin >= end || end > t->n_pieces[phase]) {
        atomic_fetch_add(&t->n_wrong, 1);
        return;
    }
    for (int i = begin; i < end; i++) t->done[phase][i]++;
    for (int i = 0; phase > 0 && i < t->n_pieces[phase - 1]; i++)
        if (t->done[phase - 1][i] != 1) atomic_fetch_add(&t->n_wrong, 1);
    atomic_fetch_add(&t->n_by[thread], end - begin);
}

static void walks_do_every_piece_once(int n_threads, int n_walks)
{
    frit_pool *pool;
    a_pool_of(n_threads, &pool);
    tour *t = calloc(1, sizeof *t);
    for (int i = 0; i < n_walks; i++) {
        memset(t->done, 0, sizeof t->done);
        t->opened = 0;
        t->seed = i;
        frit_pool_walk(pool, &(frit_walk){t, N_PHASES - i % 3, open_tour, walk_tour, look_ahead});
        assert_int_equal(atomic_load(&t->n_wrong), 0);
        assert_int_equal(t->opened, N_PHASES - i % 3);
        for (int phase = 0; phase < t->opened; phase++)
            for (int k = 0; k < MOST_PIECES; k++) assert_int_equal(t->done[phase][k], k < t->n_pieces[phase]);
        counts c = {0};
        if (i % 4 == 0) frit_pool_run(pool, count, &c);
        assert_int_equal(c.n_threads, i % 4 == 0 ? n_threads : 0);
    }
    free(t);
    frit_pool_free(pool);
}

static void copies_are_whole(void **state)
{
    (void)state;
    const size_t sizes[] = {0, 1, 1000, (256 << 10) + 1, (1 << 20) + 17};
    uint8_t *from = malloc((1 << 20) + 17), *to = malloc((1 << 20) + 18);
    assert_true(from && to);
    for (size_t i = 0; i < (1 << 20) + 17; i++) from[i] = (uint8_t)(i * i >> 3);
    for (int n = 1; n <= 7; n += 3) {
        frit_pool *pool;
        a_pool_of(n, &pool);
        for (size_t i = 0; i < FRIT_COUNT(sizes); i++) {
            memset(to, 0xa5, (1 << 20) + 18);
            frit_pool_copy(pool, to, from, sizes[i]);
            assert_memory_equal(to, from, sizes[i]);
            assert_int_equal(to[sizes[i]], 0xa5);
        }
        frit_pool_free(pool);
    }
    free(from);
    free(to);
}

static void a_walk_does_every_piece_once_and_phase_after_phase(void **state)
{
    (void)state;
    for (int n = 1; n <= 5; n++) walks_do_every_piece_once(n, 60);
}

static void walks_hold_with_far_more_threads_than_cores(void **state)
{
    (void)state;
    walks_do_every_piece_once(17, 20);
    walks_do_every_piece_once(MAX_THREADS, 8);
}

// Part 1 takes pieces and then makes no progress until all others are done. The test counts pieces, not time: if part 0
// left pieces of part 1 untouched, part 1 would give up after a long time.
typedef struct stall {
    int n_pieces;
    _Atomic int n_done, n_held, gave_up;
} stall;

static bool wait_until(const _Atomic int *value, int at_least)
{
    for (int i = 0; i < 100000; i++) {
        if (atomic_load(value) >= at_least) return true;
        usleep(200);
    }
    return false;
}

static int open_stall(void *ctx, int phase, int *grain)
{
    *grain = 1;
    (void)phase;
    return ((stall *)ctx)->n_pieces;
}

static void work_stalled(void *ctx, int phase, int begin, int end, int thread)
{
    stall *s = ctx;
    (void)phase;
    if (thread == 1) {
        atomic_store(&s->n_held, end - begin);
        if (!wait_until(&s->n_done, s->n_pieces - (end - begin))) atomic_store(&s->gave_up, 1);
    } else if (!wait_until(&s->n_held, 1)) {   // both must begin before either finishes
        atomic_store(&s->gave_up, 1);
    }
    atomic_fetch_add(&s->n_done, end - begin);
}

static void what_a_stalled_thread_has_not_begun_others_do(void **state)
{
    (void)state;
    for (int n = 64; n < 3000; n *= 3) {
        frit_pool *pool;
        a_pool_of(2, &pool);
        stall s = {.n_pieces = n};
        frit_pool_walk(pool, &(frit_walk){&s, 1, open_stall, work_stalled, NULL});
        assert_false(atomic_load(&s.gave_up));
        assert_int_equal(atomic_load(&s.n_done), n);
        assert_true(atomic_load(&s.n_held) <= n / 4 + 1);   // half of its share at most
        frit_pool_free(pool);
    }
}

// Part 1 is late in every phase in which it has pieces.
typedef struct delay {
    _Atomic int n_by[2];
} delay;

static int open_delay(void *ctx, int phase, int *grain)
{
    *grain = 1;
    (void)ctx, (void)phase;
    return 16;
}

static void work_late(void *ctx, int phase, int begin, int end, int thread)
{
    delay *d = ctx;
    (void)phase;
    usleep(thread == 1 ? 20000 : 100);
    atomic_fetch_add(&d->n_by[thread], end - begin);
}

// A busy machine may not give a thread its core for a long time.
static const uint64_t PATIENCE_NS = 60 * (uint64_t)1000000000;

static void who_is_late_again_and_again_is_left_out_for_a_while(void **state)
{
    (void)state;
    frit_pool *pool;
    a_pool_of(2, &pool);
    int n_with = 0;
    for (int i = 0; i < 200; i++) {
        delay d = {0};
        frit_pool_walk(pool, &(frit_walk){&d, 3, open_delay, work_late, NULL});
        assert_int_equal(atomic_load(&d.n_by[0]) + atomic_load(&d.n_by[1]), 3 * 16);
        n_with += atomic_load(&d.n_by[1]) > 0;
    }
    assert_in_range(n_with, 1, 100);   // tried again from time to time: about 5 times on an idle machine
    delay d = {0};
    for (const uint64_t start = frit_time_ns(); atomic_load(&d.n_by[1]) == 0;) {
        frit_pool_walk(pool, &(frit_walk){&d, 3, open_delay, work_late, NULL});
        if (frit_time_ns() - start > PATIENCE_NS) fail_msg("a late thread was left out for good");
    }
    counts c = {0};
    frit_pool_run(pool, count, &c);   // a job of all threads includes this one
    assert_int_equal(c.ran[1], 1);
    frit_pool_free(pool);
}

static void work_alike(void *ctx, int phase, int begin, int end, int thread)
{
    delay *d = ctx;
    (void)phase;
    usleep(3000);
    if (thread < 2) atomic_fetch_add(&d->n_by[thread], end - begin);
}

static void work_late_of_many(void *ctx, int phase, int begin, int end, int thread)
{
    if (thread < 2)
        work_late(ctx, phase, begin, end, thread);
    else
        usleep(100);
}

// Late in a walk, and in the next one.
static void of_many_threads_one_may_be_late_once(void **state)
{
    (void)state;
    enum { MANY = 6, TRIES = 200, ENOUGH = 5 };   // on a busy machine it takes part in few walks
    int n_again = 0;
    for (int i = 0; i < TRIES && n_again < ENOUGH; i++) {
        frit_pool *pool;
        a_pool_of(MANY, &pool);
        counts c = {0};
        delay late = {0}, after = {0};
        frit_pool_run(pool, count, &c);   // all threads are there
        frit_pool_walk(pool, &(frit_walk){&late, 1, open_delay, work_late_of_many, NULL});
        frit_pool_walk(pool, &(frit_walk){&after, 2, open_delay, work_alike, NULL});
        if (atomic_load(&late.n_by[1]) > 0) n_again += atomic_load(&after.n_by[1]) > 0;
        frit_pool_free(pool);
    }
    assert_int_equal(n_again, ENOUGH);   // a thread that rests takes part in none
}

static void linger(void *ctx, int thread, int n_threads)
{
    (void)n_threads;
    if (thread == *(const int *)ctx) usleep(3000);   // longer than any thread spins
}

static void threads_that_fell_asleep_wake_up(void **state)
{
    (void)state;
    frit_pool *pool;
    a_pool_of(3, &pool);
    for (int i = 0; i < 30; i++) {
        int slow = i % 3;
        frit_pool_run(pool, linger, &slow);
        if (i % 5 == 0) usleep(3000);
    }
    counts c = {0};
    frit_pool_run(pool, count, &c);
    for (int i = 0; i < 3; i++) assert_int_equal(c.ran[i], 1);
    frit_pool_free(pool);
}

static void pools_come_and_go_without_a_job(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        frit_pool *pool;
        a_pool_of(1 + i % 7, &pool);
        frit_pool_free(pool);
    }
    frit_pool_free(NULL);
}

static void zero_threads_mean_one_per_usable_core(void **state)
{
    (void)state;
    frit_pool *pool;
    assert_ok(frit_pool_new(&pool, 0));
    frit_topology given;
    frit_topology_get(&given);
    assert_int_equal(frit_pool_size(pool), given.n_cores);
    frit_pool_free(pool);
    assert_int_equal(given.n_cpus, frit_topology_cpus());
    assert_in_range(given.n_cpus, 1, sysconf(_SC_NPROCESSORS_ONLN));
    assert_in_range(given.n_cores, 1, given.n_cpus);
    assert_in_range(given.n_fast_cores, 1, given.n_cores);
}

static void an_impossible_number_of_threads_is_refused(void **state)
{
    (void)state;
    frit_pool *pool;
    assert_fails(frit_pool_new(&pool, -1), FRIT_E_INVALID, "-1 threads, expected 1 to 1024, or 0 for one per core");
    assert_null(pool);
    assert_fails(frit_pool_new(&pool, 1025), FRIT_E_INVALID, "1025 threads, expected 1 to 1024");
}

static frit_once once;
static int n_once;

static void slowly_once(void)
{
    usleep(2000);
    n_once++;
}

static void need_once(void *ctx, int thread, int n_threads)
{
    (void)thread, (void)n_threads;
    frit_once_run(&once, slowly_once);
    if (n_once != 1) atomic_fetch_add((_Atomic int *)ctx, 1);
}

static void once_runs_once_and_everybody_waits_for_it(void **state)
{
    (void)state;
    frit_pool *pool;
    a_pool_of(8, &pool);
    _Atomic int n_wrong = 0;
    for (int i = 0; i < 10; i++) frit_pool_run(pool, need_once, &n_wrong);
    assert_int_equal(n_wrong, 0);
    assert_int_equal(n_once, 1);
    frit_pool_free(pool);
}

typedef struct locked {
    frit_lock *lock;
    int n;
} locked;

static void count_locked(void *ctx, int thread, int n_threads)
{
    (void)n_threads;
    locked *l = ctx;
    for (int i = 0; i < 500; i++) {
        frit_lock_acquire(l->lock);
        const int n = l->n;
        if (i % 100 == thread) usleep(100);
        l->n = n + 1;
        frit_lock_release(l->lock);
    }
}

static void a_lock_has_one_owner_at_a_time(void **state)
{
    (void)state;
    frit_pool *pool;
    locked l = {0};
    a_pool_of(8, &pool);
    assert_ok(frit_lock_new(&l.lock));
    frit_pool_run(pool, count_locked, &l);
    assert_int_equal(l.n, 8 * 500);
    frit_lock_free(l.lock);
    frit_pool_free(pool);
}

typedef struct news {
    frit_lock *lock;
    _Atomic int is_taken, n_heard;
} news;

// Part 0 has the lock until the other part has received its news three times.
static void tell_or_hear(void *ctx, int thread, int n_threads)
{
    (void)n_threads;
    news *n = ctx;
    if (thread == 0) {
        frit_lock_acquire(n->lock);
        atomic_store(&n->is_taken, 1);
        while (atomic_load(&n->n_heard) < 1) usleep(100);   // without news
        while (atomic_load(&n->n_heard) < 3) {
            frit_lock_news(n->lock);
            usleep(1000);
        }
    } else {
        uint32_t seen = 0;
        while (!atomic_load(&n->is_taken)) usleep(100);
        while (!frit_lock_wait(n->lock, &seen)) atomic_fetch_add(&n->n_heard, 1);
    }
    frit_lock_release(n->lock);
}

static void threads_that_wait_for_a_lock_hear_news(void **state)
{
    (void)state;
    frit_pool *pool;
    news n = {0};
    a_pool_of(2, &pool);
    assert_ok(frit_lock_new(&n.lock));
    frit_pool_run(pool, tell_or_hear, &n);
    assert_true(n.n_heard >= 3);
    frit_lock_acquire(n.lock);   // both gave it back
    frit_lock_free(n.lock);
    frit_pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_thread_runs_once_per_job),
        cmocka_unit_test(copies_are_whole),
        cmocka_unit_test(a_walk_does_every_piece_once_and_phase_after_phase),
        cmocka_unit_test(walks_hold_with_far_more_threads_than_cores),
        cmocka_unit_test(what_a_stalled_thread_has_not_begun_others_do),
        cmocka_unit_test(who_is_late_again_and_again_is_left_out_for_a_while),
        cmocka_unit_test(of_many_threads_one_may_be_late_once),
        cmocka_unit_test(threads_that_fell_asleep_wake_up),
        cmocka_unit_test(pools_come_and_go_without_a_job),
        cmocka_unit_test(zero_threads_mean_one_per_usable_core),
        cmocka_unit_test(an_impossible_number_of_threads_is_refused),
        cmocka_unit_test(once_runs_once_and_everybody_waits_for_it),
        cmocka_unit_test(a_lock_has_one_owner_at_a_time),
        cmocka_unit_test(threads_that_wait_for_a_lock_hear_news),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
