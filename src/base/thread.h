// SPDX-License-Identifier: MIT
// base/thread.h: a pool of threads that work on one job together. The only place that creates threads.
//
// frit_pool_run calls fn(ctx, part, parts) once for every part, part 0 on the calling thread, and returns when all
// have.
//
// frit_pool_walk does work in phases of many small pieces. A phase begins when all pieces of the one before are done,
// whoever did them. Each part owns as many pieces as any other: it takes half of its own from the front, then half of
// the rest, and so on, and when it has none left it takes from the end of others', so many at least as are worth the
// claim (`grain`):
//
//     part 0   [ taken by 0 ........ | left | taken by 1 ]
//     part 1   [ taken by 1 ........................... ]
//
// So nobody waits for a thread that is late, or has been taken off its core, unless it is in the middle of a piece.
// Idle threads spin for a few microseconds, between jobs that follow each other for some hundreds, then sleep. Running
// a job allocates nothing.
//
//     frit_pool *pool;
//     FRIT_TRY(frit_pool_new(&pool, 0));               // one thread per core that this process may use
//     frit_pool_run(pool, pack, &job);
//     frit_pool_walk(pool, &(frit_walk){.ctx = &step, .n_phases = 5, .open = open, .work = work});
//     frit_pool_free(pool);
#pragma once
#include "base/status.h"

typedef struct frit_pool frit_pool;
typedef void (*frit_pool_fn)(void *ctx, int part, int parts);

frit_status frit_pool_new(frit_pool **out, int n_threads);
int frit_pool_size(const frit_pool *pool);
void frit_pool_run(frit_pool *pool, frit_pool_fn fn, void *ctx);
void frit_pool_free(frit_pool *pool);

enum { FRIT_WALK_MAX_PIECES = 1 << 15 };   // of a phase

typedef struct frit_ahead {
    const void *bytes;   // NULL: nothing
    size_t n_bytes;
} frit_ahead;

typedef struct frit_walk {
    void *ctx;
    int n_phases;
    // How many pieces the phase has, at most FRIT_WALK_MAX_PIECES. Called once for each phase, in order, by any thread,
    // while nobody works. A phase without pieces costs nothing else. *grain is 1 and may be set: fewer pieces than that
    // are not worth being taken on their own; 0: they are so long that a part takes a quarter of its own, then of the
    // rest, and from the middle on one by one.
    int (*open)(void *ctx, int phase, int *grain);
    // Does pieces [begin, end) on the thread `part`. Pieces of a phase may run in any order and at the same time.
    void (*work)(void *ctx, int phase, int begin, int end, int part);
    // NULL, or: what a thread that finds nothing more to do in a phase may bring closer while it waits: memory that it
    // will read in a later one. Nothing there needs to be valid by then.
    frit_ahead (*ahead)(void *ctx, int phase, int part);
} frit_walk;
void frit_pool_walk(frit_pool *pool, const frit_walk *walk);

typedef struct frit_once frit_once;   // a flag for lazy process-wide constants
struct frit_once {
    _Atomic int state;
};
void frit_once_run(frit_once *once, void (*fn)(void));
