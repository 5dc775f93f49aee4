// SPDX-License-Identifier: MIT
// base/os.h: operating system primitives for thread.c, background.c, meeting.c and topology.c only.
//
// A word is a counter that threads can sleep on, as with a futex: a sleeper passes the value that it has seen and
// does not sleep if the word has changed. A wake-up without sleepers costs one load.
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
    void *lock;   // on systems without a futex: a lock and a condition variable
} frit_os_word;

frit_status frit_os_word_init(frit_os_word *word);
// Sleeps for at most so many milliseconds, 0: any time. May return early.
void frit_os_word_sleep_for(frit_os_word *word, uint32_t seen, uint32_t ms);
static inline void frit_os_word_sleep(frit_os_word *word, uint32_t seen)
{
    frit_os_word_sleep_for(word, seen, 0);
}
void frit_os_word_wake(frit_os_word *word);   // wakes all sleepers
void frit_os_word_deinit(frit_os_word *word);

typedef struct frit_os_thread frit_os_thread;
frit_status frit_os_thread_start(frit_os_thread **out, void (*fn)(void *ctx), void *ctx);
void frit_os_thread_join(frit_os_thread *thread);   // waits until the thread ends and frees it; NULL: no effect
void frit_os_yield(void);

// The CPUs of this process's affinity mask, ascending; the caller frees *out. 0 if unknown.
int frit_os_cpus(int **out);
