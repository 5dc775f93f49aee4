// SPDX-License-Identifier: MIT
// base/thread/thread.h: a pool of threads that work on one job together. Threads are created here and in background.h
// only.
//
// frit_pool_run calls fn(ctx, thread, n_threads) once for every thread; thread 0 is the calling one, and returns when
// all calls have returned.
//
// frit_pool_walk runs phases of many small pieces. A phase begins when all pieces of the phase before are finished.
// Every thread owns an equal number of pieces. A thread takes half of its own free pieces from the front, then half of
// the rest, and so on. When none is left it takes pieces from the end of other threads (work stealing), at least
// `grain` at once:
//
//     thread 0   [ taken by 0 ........ | left | taken by 1 ]
//     thread 1   [ taken by 1 ........................... ]
//
// A thread that is late, or has lost its core, delays the others only by the pieces that it has taken. Idle threads
// spin for a few microseconds (some hundreds between jobs in quick succession), then sleep. Running a job allocates
// nothing.
//
//     frit_pool *pool;
//     FRIT_TRY(frit_pool_new(&pool, 0));               // one thread per core that this process may use
//     frit_pool_run(pool, pack, &job);
//     frit_pool_walk(pool, &(frit_walk){.ctx = &step, .n_phases = 5, .open = open, .work = work});
//     frit_pool_free(pool);
#pragma once
#include "base/status.h"

typedef struct frit_pool frit_pool;
typedef void (*frit_pool_fn)(void *ctx, int thread, int n_threads);

frit_status frit_pool_new(frit_pool **out, int n_threads);
int frit_pool_size(const frit_pool *pool);
void frit_pool_run(frit_pool *pool, frit_pool_fn fn, void *ctx);
void frit_pool_free(frit_pool *pool);
// memcpy by all threads, for sizes that take one thread milliseconds.
void frit_pool_copy(frit_pool *pool, void *to, const void *from, size_t n_bytes);

enum { FRIT_WALK_MAX_PIECES = 1 << 15 };   // of a phase

typedef struct frit_prefetch {
    const void *bytes;   // NULL: nothing
    size_t n_bytes;
} frit_prefetch;

typedef struct frit_walk {
    void *ctx;
    int n_phases;
    // Returns the number of pieces of the phase, at most FRIT_WALK_MAX_PIECES. Called once for each phase, in order, by
    // any thread, while no other thread works. A phase without pieces is skipped. *grain is 1 and may be set: the least
    // number of pieces to take at once. With 0 the pieces are long: a thread takes a quarter of its own, then a quarter
    // of the rest, and single pieces in the second half.
    int (*open)(void *ctx, int phase, int *grain);
    // Runs pieces [begin, end) on the thread `thread`. Pieces of a phase run in any order and at the same time.
    void (*work)(void *ctx, int phase, int begin, int end, int thread);
    // NULL, or a function that returns memory that the thread will read in a later phase. The thread prefetches this
    // memory while it waits for the others. The memory need not stay valid.
    frit_prefetch (*prefetch)(void *ctx, int phase, int thread);
} frit_walk;
void frit_pool_walk(frit_pool *pool, const frit_walk *walk);

typedef struct frit_once frit_once;   // a flag for lazy process-wide constants
struct frit_once {
    _Atomic int state;
};
void frit_once_run(frit_once *once, void (*fn)(void));

// A lock for long work. Threads that wait for it get news from its owner, and may give up.
//
//     uint32_t seen = 0;
//     while (!frit_lock_wait(lock, &seen))             // true: the lock is acquired
//         if (!progress(ctx, done)) return FRIT_E_CANCELLED;
//     ...                                              // frit_lock_news(lock), now and then
//     frit_lock_release(lock);
typedef struct frit_lock frit_lock;
frit_status frit_lock_new(frit_lock **out);
void frit_lock_free(frit_lock *lock);   // NULL is fine
void frit_lock_acquire(frit_lock *lock);
// Takes the lock and returns true, or returns false: once when the wait begins (*seen is 0), then at each news.
bool frit_lock_wait(frit_lock *lock, uint32_t *seen);
void frit_lock_news(frit_lock *lock);   // called by the owner only
void frit_lock_release(frit_lock *lock);
