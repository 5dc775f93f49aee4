// SPDX-License-Identifier: MIT
// base/os.h: the few primitives of an operating system that thread.c and topology.c are built on. Nobody else includes
// this.
//
// A word is a counter that threads can sleep on, as with a futex: a sleeper names the value that it has seen and
// is not put to sleep if the word has moved on. Wake-ups that find nobody asleep cost one load.
//
//     seen = atomic_load(&word.value);            // a sleeper
//     while (atomic_load(&word.value) == seen) frit_os_word_sleep(&word, seen);
//
//     atomic_fetch_add(&word.value, 1);           // the waker; sequentially consistent, as is the count of sleepers
//     frit_os_word_wake(&word);
#pragma once
#include "base/status.h"

#include <stdatomic.h>

typedef struct frit_os_word {
    _Atomic uint32_t value;
    _Atomic uint32_t n_sleeping;
    void *lock;   // where there is no futex: a lock and a condition variable
} frit_os_word;

frit_status frit_os_word_init(frit_os_word *word);
void frit_os_word_sleep(frit_os_word *word, uint32_t seen);   // may return early
void frit_os_word_wake(frit_os_word *word);                   // everybody who sleeps on it
void frit_os_word_free(frit_os_word *word);

typedef struct frit_os_thread frit_os_thread;
frit_status frit_os_thread_start(frit_os_thread **out, void (*fn)(void *ctx), void *ctx);
void frit_os_thread_join(frit_os_thread *thread);   // waits for its end and frees it; NULL is fine
void frit_os_yield(void);

// The CPUs that the affinity mask leaves this process, ascending; *out is to be freed. 0 if they are not known.
int frit_os_cpus(int **out);
