// SPDX-License-Identifier: MIT
// The clocks of the operating system.
#include "base/time.h"

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

uint64_t frit_time_ns(void)
{
    LARGE_INTEGER frequency, ticks;
    QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&ticks);
    uint64_t f = (uint64_t)frequency.QuadPart, t = (uint64_t)ticks.QuadPart;
    return t / f * 1000000000u + t % f * 1000000000u / f;   // in two steps: t * 10^9 would overflow
}

uint64_t frit_time_thread_ns(void)
{
    FILETIME created, ended, kernel, user;
    if (!GetThreadTimes(GetCurrentThread(), &created, &ended, &kernel, &user)) return frit_time_ns();
    uint64_t ticks = ((uint64_t)kernel.dwHighDateTime << 32 | kernel.dwLowDateTime) +
                     ((uint64_t)user.dwHighDateTime << 32 | user.dwLowDateTime);
    return ticks * 100;
}

struct tm frit_time_local(void)
{
    time_t now = time(NULL);
    struct tm parts = {.tm_mday = 1, .tm_year = 70};
    localtime_s(&parts, &now);
    return parts;
}

#else

static uint64_t read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t frit_time_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

#if defined(__wasm__)

// A browser has no clock of a thread. A thread of a busy machine waits most of the time, so an eighth of it counts.
uint64_t frit_time_thread_ns(void)
{
    return frit_time_ns() / 8;
}

#else

uint64_t frit_time_thread_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

#endif

struct tm frit_time_local(void)
{
    time_t now = time(NULL);
    struct tm parts = {.tm_mday = 1, .tm_year = 70};
    localtime_r(&now, &parts);
    return parts;
}

#endif
