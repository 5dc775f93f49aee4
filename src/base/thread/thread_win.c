// SPDX-License-Identifier: MIT
// Threads and sleeping on Windows.
#include "base/os.h"
#include "base/thread/thread.h"

#include <stdlib.h>
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

typedef struct word_lock {
    SRWLOCK mutex;
    CONDITION_VARIABLE changed;
} word_lock;

frit_status frit_os_word_init(frit_os_word *word)
{
    *word = (frit_os_word){0};
    word_lock *lock = malloc(sizeof *lock);
    if (!lock) return frit_fail_memory(sizeof *lock, "a lock");
    InitializeSRWLock(&lock->mutex);
    InitializeConditionVariable(&lock->changed);
    word->lock = lock;
    return FRIT_OK;
}

void frit_os_word_deinit(frit_os_word *word)
{
    free(word->lock);
    word->lock = NULL;
}

void frit_os_word_sleep_for(frit_os_word *word, uint32_t seen, uint32_t ms)
{
    word_lock *lock = word->lock;
    AcquireSRWLockExclusive(&lock->mutex);
    atomic_fetch_add(&word->n_sleeping, 1);
    while (atomic_load(&word->value) == seen)
        if (!SleepConditionVariableSRW(&lock->changed, &lock->mutex, ms > 0 ? ms : INFINITE, 0)) break;
    atomic_fetch_sub(&word->n_sleeping, 1);
    ReleaseSRWLockExclusive(&lock->mutex);
}

// With the lock taken, every sleeper that counted itself already waits for the condition.
void frit_os_word_wake(frit_os_word *word)
{
    if (atomic_load(&word->n_sleeping) == 0) return;
    word_lock *lock = word->lock;
    AcquireSRWLockExclusive(&lock->mutex);
    WakeAllConditionVariable(&lock->changed);
    ReleaseSRWLockExclusive(&lock->mutex);
}

struct frit_os_thread {
    HANDLE handle;
    void (*fn)(void *ctx);
    void *ctx;
};

static DWORD WINAPI enter(void *arg)
{
    const frit_os_thread *thread = arg;
    thread->fn(thread->ctx);
    return 0;
}

frit_status frit_os_thread_start(frit_os_thread **out, void (*fn)(void *ctx), void *ctx)
{
    *out = NULL;
    frit_os_thread *thread = malloc(sizeof *thread);
    if (!thread) return frit_fail_memory(sizeof *thread, "a thread");
    *thread = (frit_os_thread){.fn = fn, .ctx = ctx};
    thread->handle = CreateThread(NULL, 0, enter, thread, 0, NULL);
    if (!thread->handle) {
        free(thread);
        return frit_fail(FRIT_E_LIMIT, "a thread cannot be started: Windows error %lu", GetLastError());
    }
    *out = thread;
    return FRIT_OK;
}

void frit_os_thread_join(frit_os_thread *thread)
{
    if (!thread) return;
    WaitForSingleObject(thread->handle, INFINITE);
    CloseHandle(thread->handle);
    free(thread);
}

void frit_os_yield(void)
{
    SwitchToThread();
}

// Lists the CPUs that this process may run on, at most the 64 of a processor group.
int frit_os_cpus(int **out)
{
    DWORD_PTR own = 0, machine = 0;
    int n = 0;
    *out = malloc(8 * sizeof own * sizeof **out);
    if (!*out || !GetProcessAffinityMask(GetCurrentProcess(), &own, &machine)) return 0;
    for (int i = 0; own != 0; i++, own >>= 1)
        if (own & 1) (*out)[n++] = i;
    return n;
}
