// SPDX-License-Identifier: MIT
// server/ops/clock.h: monotonic time, and waiting by it, which changes of the wall clock do not affect.
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

static inline double server_now(void)   // seconds
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Initializes a condition for server_wait_until.
static inline void server_cond_init(pthread_cond_t *cond)
{
#ifdef __APPLE__
    pthread_cond_init(cond, NULL);
#else
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
#endif
}

// Waits for the condition. False: server_now() has reached `time`.
static inline bool server_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, double time)
{
#ifdef __APPLE__
    const double left = time - server_now();
    if (left <= 0) return false;
    const struct timespec span = {(time_t)left, (long)(1e9 * (left - (double)(time_t)left))};
    return pthread_cond_timedwait_relative_np(cond, lock, &span) == 0;
#else
    const struct timespec until = {(time_t)time, (long)(1e9 * (time - (double)(time_t)time))};
    return pthread_cond_timedwait(cond, lock, &until) == 0;
#endif
}
