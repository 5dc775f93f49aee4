// SPDX-License-Identifier: MIT
// base/thread.h: a pool of threads that work on one job together. The only place that creates threads.
//
// frit_pool_run calls fn(ctx, part, parts) once for every part, part 0 on the calling thread, and returns when
// all have. Inside a job all parts may meet at frit_pool_barrier. Idle threads spin for a few microseconds,
// then sleep. Running a job allocates nothing.
//
//     frit_pool *pool;
//     FRIT_TRY(frit_pool_new(&pool, 0));               // one thread per core that this process may use
//     frit_pool_run(pool, work, &job);
//     frit_pool_free(pool);
#pragma once
#include "base/status.h"

typedef struct frit_pool frit_pool;
typedef void (*frit_pool_fn)(void *ctx, int part, int parts);

frit_status frit_pool_new(frit_pool **out, int n_threads);
int frit_pool_size(const frit_pool *pool);
void frit_pool_run(frit_pool *pool, frit_pool_fn fn, void *ctx);
void frit_pool_barrier(frit_pool *pool);   // inside a job only: waits for all parts
void frit_pool_free(frit_pool *pool);

// Cores that this process may use: the affinity mask, bounded by the cgroup's CPU quota (rounded up). At least 1.
int frit_thread_default_count(void);

typedef struct frit_once frit_once;   // a flag for lazy process-wide constants
struct frit_once {
    _Atomic int state;
};
void frit_once_run(frit_once *once, void (*fn)(void));
