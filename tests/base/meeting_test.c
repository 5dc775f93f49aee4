// SPDX-License-Identifier: MIT
// Meetings: members see what the others show in the same round, and a broken meeting holds nobody.
#include "support/support.h"

#include "base/thread/meeting.h"
#include "base/thread/thread.h"

#include <assert.h>
#include <stdatomic.h>

enum { N = 4, ROUNDS = 2000 };

typedef struct meeting_job {
    frit_meeting *meeting;
    int values[ROUNDS][N];
    _Atomic int n_wrong, n_broken;
    int break_at;   // the round in which the last member does not come; ROUNDS: none
} meeting_job;

static void meet(void *ctx, int thread, int n_threads)
{
    meeting_job *job = ctx;
    (void)n_threads;
    for (int i = 0; i < ROUNDS; i++) {
        const void *all[FRIT_MEETING_MAX];
        job->values[i][thread] = 1000 * i + thread;
        if (i == job->break_at && thread == N - 1) {
            frit_meeting_break(job->meeting, thread);
            return;
        }
        if (!frit_meeting_join(job->meeting, thread, &job->values[i][thread], all)) {
            job->n_broken++;
            return;
        }
        for (int k = 0; k < N; k++) job->n_wrong += *(const int *)all[k] != 1000 * i + k;
    }
}

static void run(meeting_job *job, bool spins)
{
    frit_pool *pool;
    assert_ok(frit_pool_new(&pool, N));
    if (!job->meeting) assert_ok(frit_meeting_new(&job->meeting, N, spins));
    frit_pool_run(pool, meet, job);
    frit_pool_free(pool);
}

static void members_see_each_other_in_every_round(void **state)
{
    (void)state;
    for (int spins = 0; spins < 2; spins++) {
        static meeting_job job;
        job = (meeting_job){.break_at = ROUNDS};
        run(&job, spins);
        assert_int_equal(job.n_wrong, 0);
        assert_int_equal(job.n_broken, 0);
        assert_int_equal(frit_meeting_breaker(job.meeting), -1);
        frit_meeting_free(job.meeting);
    }
}

static void a_broken_meeting_holds_nobody_and_can_begin_again(void **state)
{
    (void)state;
    static meeting_job job;
    job = (meeting_job){.break_at = 7};
    run(&job, true);
    assert_int_equal(job.n_broken, N - 1);
    assert_int_equal(frit_meeting_breaker(job.meeting), N - 1);
    frit_meeting_reset(job.meeting);
    job.break_at = ROUNDS;
    job.n_broken = 0;
    run(&job, true);
    assert_int_equal(job.n_wrong, 0);
    assert_int_equal(job.n_broken, 0);
    frit_meeting_free(job.meeting);
}

static void the_number_of_members_is_limited(void **state)
{
    (void)state;
    frit_meeting *meeting;
    assert_fails(frit_meeting_new(&meeting, 9, true), FRIT_E_INVALID, "a meeting of 9 members, expected 1 to 8");
    assert_null(meeting);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_see_each_other_in_every_round),
        cmocka_unit_test(a_broken_meeting_holds_nobody_and_can_begin_again),
        cmocka_unit_test(the_number_of_members_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
