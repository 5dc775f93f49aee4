// SPDX-License-Identifier: MIT
// Turns of workers: one at a time, shared by time and not by number.
#include "server/ops/clock.h"
#include "server/sched/step_lock.h"
#include "support/support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

typedef struct worker {
    server_turns *turns;
    long step_ms;
    _Atomic bool stop;
    server_turn turn;
    double had;   // seconds
    int n_turns;
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
        server_turns_begin(w->turns, &w->turn);
        const double begin = server_now();
        if (atomic_fetch_add(&n_inside, 1) != 0) abort();
        sleep_ms(w->step_ms);
        atomic_fetch_sub(&n_inside, 1);
        w->had += server_now() - begin;
        w->n_turns++;
        server_turns_end(w->turns, &w->turn);
    }
    server_turns_leave(w->turns, &w->turn);
    return NULL;
}

// Times are those that the turns took, however slow the machine is: they differ by a turn's length at most.
static void slow_turns_get_no_more_time_than_quick_ones(void **state)
{
    (void)state;
    server_turns *turns = server_turns_new();
    worker slow = {.turns = turns, .step_ms = 40}, quick = {.turns = turns, .step_ms = 1};
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, work, &slow);
    pthread_create(&threads[1], NULL, work, &quick);
    while (1) {
        sleep_ms(50);
        server_turn look;
        memset(&look, 0, sizeof look);
        server_turns_begin(turns, &look);   // neither of them runs now
        const double a = slow.turn.used, b = quick.turn.used;
        const int n_slow = slow.n_turns, n_quick = quick.n_turns;
        const double longest = n_slow > 0 ? slow.had / n_slow : 0;
        server_turns_end(turns, &look);
        server_turns_leave(turns, &look);
        if (n_slow < 6 || n_quick < 6) continue;
        if (a - b > 6 * longest || b - a > 6 * longest) fail_msg("slow turns had %.3f s, quick ones %.3f s", a, b);
        assert_true(n_quick > 2 * n_slow);
        break;
    }
    atomic_store(&slow.stop, true);
    atomic_store(&quick.stop, true);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    server_turns_free(turns);
}

// It has waited for nothing: others go on at once, and when it comes back it does not make up for the time away.
static void one_that_leaves_has_no_credit(void **state)
{
    (void)state;
    server_turns *turns = server_turns_new();
    server_turn a = {0}, b = {0};
    server_turns_begin(turns, &a);
    server_turns_end(turns, &a);
    server_turns_leave(turns, &a);
    server_turns_begin(turns, &b);
    sleep_ms(20);
    server_turns_end(turns, &b);
    server_turns_begin(turns, &b);   // a is not waited for
    server_turns_end(turns, &b);
    const double used = b.used;
    server_turns_begin(turns, &a);
    assert_true(a.used >= used);
    server_turns_end(turns, &a);
    server_turns_leave(turns, &a);
    server_turns_leave(turns, &b);
    server_turns_free(turns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_turns_get_no_more_time_than_quick_ones),
        cmocka_unit_test(one_that_leaves_has_no_credit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
