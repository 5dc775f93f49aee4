// SPDX-License-Identifier: MIT
// The step lock: one worker at a time; workers share time equally, not the number of steps.
#include "server/ops/clock.h"
#include "server/sched/step_lock.h"
#include "support/support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

typedef struct worker {
    server_step_lock *lock;
    long step_ms;
    _Atomic bool stop;
    server_step_user user;
    double had;   // seconds
    int n_steps;
} worker;

static _Atomic int n_inside;

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void *work(void *ctx)
{
    worker *w = ctx;
    while (!atomic_load(&w->stop)) {
        server_step_lock_acquire(w->lock, &w->user);
        const double begin = server_now();
        if (atomic_fetch_add(&n_inside, 1) != 0) abort();
        sleep_ms(w->step_ms);
        atomic_fetch_sub(&n_inside, 1);
        w->had += server_now() - begin;
        w->n_steps++;
        server_step_lock_release(w->lock, &w->user);
    }
    server_step_lock_leave(w->lock, &w->user);
    return NULL;
}

// Compares the times that the lock measured, so the speed of the machine does not matter: they differ by at most a
// step.
static void slow_steps_get_no_more_time_than_quick_ones(void **state)
{
    (void)state;
    server_step_lock *lock = server_step_lock_new();
    worker slow = {.lock = lock, .step_ms = 40}, quick = {.lock = lock, .step_ms = 1};
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, work, &slow);
    pthread_create(&threads[1], NULL, work, &quick);
    while (1) {
        sleep_ms(50);
        server_step_user look;
        memset(&look, 0, sizeof look);
        server_step_lock_acquire(lock, &look);   // none of them runs now
        const double a = slow.user.used, b = quick.user.used;
        const int n_slow = slow.n_steps, n_quick = quick.n_steps;
        const double longest = n_slow > 0 ? slow.had / n_slow : 0;
        server_step_lock_release(lock, &look);
        server_step_lock_leave(lock, &look);
        if (n_slow < 6 || n_quick < 6) continue;
        if (a - b > 6 * longest || b - a > 6 * longest) fail_msg("slow steps had %.3f s, quick ones %.3f s", a, b);
        assert_true(n_quick > 2 * n_slow);
        break;
    }
    atomic_store(&slow.stop, true);
    atomic_store(&quick.stop, true);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    server_step_lock_free(lock);
}

// Others do not wait for a user that left, and a returning user does not make up for its absence.
static void one_that_leaves_has_no_credit(void **state)
{
    (void)state;
    server_step_lock *lock = server_step_lock_new();
    server_step_user a = {0}, b = {0};
    server_step_lock_acquire(lock, &a);
    server_step_lock_release(lock, &a);
    server_step_lock_leave(lock, &a);
    server_step_lock_acquire(lock, &b);
    sleep_ms(20);
    server_step_lock_release(lock, &b);
    server_step_lock_acquire(lock, &b);   // the lock does not wait for a
    server_step_lock_release(lock, &b);
    const double used = b.used;
    server_step_lock_acquire(lock, &a);
    assert_true(a.used >= used);
    server_step_lock_release(lock, &a);
    server_step_lock_leave(lock, &a);
    server_step_lock_leave(lock, &b);
    server_step_lock_free(lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_steps_get_no_more_time_than_quick_ones),
        cmocka_unit_test(one_that_leaves_has_no_credit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
