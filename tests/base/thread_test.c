// SPDX-License-Identifier: MIT
// The pool: every part runs once, barriers hold, with fewer and with far more threads than cores.
#include "support/support.h"

#include "base/thread.h"

#include <stdatomic.h>
#include <unistd.h>

enum { MAX_PARTS = 64 };

static void a_pool_of(int n_threads, frit_pool **pool)
{
    assert_ok(frit_pool_new(pool, n_threads));
    assert_int_equal(frit_pool_size(*pool), n_threads);
}

// Plain counters: only the pool's own ordering makes reading them afterwards right.
typedef struct counts {
    int ran[MAX_PARTS];
    int parts;
} counts;

static void count(void *ctx, int part, int parts)
{
    counts *c = ctx;
    c->ran[part]++;
    if (part == 0) c->parts = parts;
}

static void every_part_runs_once_per_job(void **state)
{
    (void)state;
    for (int n = 1; n <= 9; n++) {
        frit_pool *pool;
        a_pool_of(n, &pool);
        counts c = {0};
        for (int job = 1; job <= 500; job++) {
            frit_pool_run(pool, count, &c);
            for (int i = 0; i < MAX_PARTS; i++) assert_int_equal(c.ran[i], i < n ? job : 0);
        }
        assert_int_equal(c.parts, n);
        frit_pool_free(pool);
    }
}

// Between two barriers each part writes its own cell and afterwards reads all others'.
typedef struct rounds {
    frit_pool *pool;
    int n_rounds;
    int cell[2][MAX_PARTS];
    _Atomic int n_wrong;
} rounds;

static void play(void *ctx, int part, int parts)
{
    rounds *r = ctx;
    for (int round = 1; round <= r->n_rounds; round++) {
        int *cells = r->cell[round & 1];
        cells[part] = round;
        frit_pool_barrier(r->pool);
        for (int i = 0; i < parts; i++)
            if (cells[i] != round) atomic_fetch_add(&r->n_wrong, 1);
    }
}

static void barriers_hold(int n_threads, int n_jobs, int n_rounds)
{
    rounds r = {.n_rounds = n_rounds};
    a_pool_of(n_threads, &r.pool);
    for (int job = 0; job < n_jobs; job++) frit_pool_run(r.pool, play, &r);
    assert_int_equal(atomic_load(&r.n_wrong), 0);
    frit_pool_free(r.pool);
}

static void a_barrier_shows_what_all_parts_wrote_before_it(void **state)
{
    (void)state;
    for (int n = 1; n <= 4; n++) barriers_hold(n, 20, 500);
}

static void barriers_hold_with_far_more_threads_than_cores(void **state)
{
    (void)state;
    barriers_hold(8 * frit_thread_default_count() < MAX_PARTS ? 8 * frit_thread_default_count() : MAX_PARTS, 5, 200);
    barriers_hold(MAX_PARTS, 3, 50);
}

static void linger(void *ctx, int part, int parts)
{
    (void)parts;
    if (part == *(const int *)ctx) usleep(3000);   // longer than anybody spins
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
    assert_int_equal(frit_pool_size(pool), frit_thread_default_count());
    frit_pool_free(pool);
    long n_online = sysconf(_SC_NPROCESSORS_ONLN);
    assert_in_range(frit_thread_default_count(), 1, n_online);
}

static void an_impossible_number_of_threads_is_refused(void **state)
{
    (void)state;
    frit_pool *pool;
    assert_fails(frit_pool_new(&pool, -1), FRIT_E_INVALID, "-1 threads: 1 to 1024 are possible, or 0 for one per core");
    assert_null(pool);
    assert_fails(frit_pool_new(&pool, 1025), FRIT_E_INVALID, "1025 threads: 1 to 1024 are possible");
}

static frit_once once;
static int n_once;

static void slowly_once(void)
{
    usleep(2000);
    n_once++;
}

static void need_once(void *ctx, int part, int parts)
{
    (void)part, (void)parts;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_runs_once_per_job),
        cmocka_unit_test(a_barrier_shows_what_all_parts_wrote_before_it),
        cmocka_unit_test(barriers_hold_with_far_more_threads_than_cores),
        cmocka_unit_test(threads_that_fell_asleep_wake_up),
        cmocka_unit_test(pools_come_and_go_without_a_job),
        cmocka_unit_test(zero_threads_mean_one_per_usable_core),
        cmocka_unit_test(an_impossible_number_of_threads_is_refused),
        cmocka_unit_test(once_runs_once_and_everybody_waits_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
