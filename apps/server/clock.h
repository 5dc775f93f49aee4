// SPDX-License-Identifier: MIT
// server/clock.h: the time that only goes forward.
#pragma once
#include <time.h>

static inline double server_now(void)   // seconds
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
