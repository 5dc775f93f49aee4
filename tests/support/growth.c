// SPDX-License-Identifier: MIT
// Measures the least time of some runs.
#include "support/growth.h"

#include "base/time.h"

#include <math.h>

static double least_seconds(void (*run)(void *ctx, size_t n), void *ctx, size_t n, int n_runs)
{
    double least = INFINITY;
    for (int i = 0; i < n_runs; i++) {
        const uint64_t start = frit_time_thread_ns();
        run(ctx, n);
        least = fmin(least, (double)(frit_time_thread_ns() - start) * 1e-9);
    }
    return least;
}

double growth_of(void (*run)(void *ctx, size_t n), void *ctx, size_t n)
{
    enum { MOST_TRIES = 6 };
    static const double noise = 0.002;   // in a short run
    double least = INFINITY;
    for (int n_runs = 1; n_runs <= MOST_TRIES && !(least <= GROWTH_LIMIT); n_runs++) {
        const double few = least_seconds(run, ctx, n, n_runs);
        least = fmin(least, least_seconds(run, ctx, 8 * n, n_runs) / (few + noise));
    }
    return least;
}
