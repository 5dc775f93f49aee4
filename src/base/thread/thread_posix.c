// SPDX-License-Identifier: MIT
// Threads and sleeping on Linux (futex), in WebAssembly (its own instructions), on macOS and the other POSIX systems
// (mutex and condition variable).
#include "base/os.h"
#include "base/thread/thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#if defined(__linux__) || defined(__wasm__)

#if defined(__linux__)
static void wait_on(_Atomic uint32_t *value, uint32_t seen, uint32_t ms)
{
    const struct timespec most = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    syscall(SYS_futex, value, FUTEX_WAIT_PRIVATE, seen, ms > 0 ? &most : NULL, NULL, 0);
}

static void wake_all(_Atomic uint32_t *value)
{
    syscall(SYS_futex, value, FUTEX_WAKE_PRIVATE, 0x7fffffff, NULL, NULL, 0);
}
#else
static void wait_on(_Atomic uint32_t *value, uint32_t seen, uint32_t ms)
{
    __builtin_wasm_memory_atomic_wait32((int *)(void *)value, (int)seen, ms > 0 ? (long long)ms * 1000000 : -1);
}

static void wake_all(_Atomic uint32_t *value)
{
    __builtin_wasm_memory_atomic_notify((int *)(void *)value, 0x7fffffff);
}
#endif

frit_status frit_os_word_init(frit_os_word *word)
{
    *word = (frit_os_word){0};
    return FRIT_OK;
}

void frit_os_word_deinit(frit_os_word *word)
{
    (void)word;
}

// The sleeper counts itself before wait_on compares the value, the waker changes the value before it looks at
// the count; both orders are sequentially consistent, so at least one of them sees the other.
void frit_os_word_sleep_for(frit_os_word *word, uint32_t seen, uint32_t ms)
{
    atomic_fetch_add(&word->n_sleeping, 1);
    if (atomic_load(&word->value) == seen) wait_on(&word->value, seen, ms);
    atomic_fetch_sub(&word->n_sleeping, 1);
}

void frit_os_word_wake(frit_os_word *word)
{
    if (atomic_load(&word->n_sleeping) > 0) wake_all(&word->value);
}

#else

typedef struct word_lock {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
} word_lock;

frit_status frit_os_word_init(frit_os_word *word)
{
    *word = (frit_os_word){0};
    word_lock *lock = malloc(sizeof *lock);
    if (!lock) return frit_fail_memory(sizeof *lock, "a lock");
    pthread_mutex_init(&lock->mutex, NULL);
    pthread_cond_init(&lock->changed, NULL);
    word->lock = lock;
    return FRIT_OK;
}

void frit_os_word_deinit(frit_os_word *word)
{
    word_lock *lock = word->lock;
    if (!lock) return;
    pthread_cond_destroy(&lock->changed);
    pthread_mutex_destroy(&lock->mutex);
    free(lock);
    word->lock = NULL;
}

void frit_os_word_sleep_for(frit_os_word *word, uint32_t seen, uint32_t ms)
{
    word_lock *lock = word->lock;
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += ms / 1000 + (end.tv_nsec + (long)(ms % 1000) * 1000000) / 1000000000;
    end.tv_nsec = (end.tv_nsec + (long)(ms % 1000) * 1000000) % 1000000000;
    pthread_mutex_lock(&lock->mutex);
    atomic_fetch_add(&word->n_sleeping, 1);
    for (int result = 0; result == 0 && atomic_load(&word->value) == seen;)
        result = ms > 0 ? pthread_cond_timedwait(&lock->changed, &lock->mutex, &end)
                        : pthread_cond_wait(&lock->changed, &lock->mutex);
    atomic_fetch_sub(&word->n_sleeping, 1);
    pthread_mutex_unlock(&lock->mutex);
}

// With the lock taken, every sleeper that counted itself already waits for the condition.
void frit_os_word_wake(frit_os_word *word)
{
    if (atomic_load(&word->n_sleeping) == 0) return;
    word_lock *lock = word->lock;
    pthread_mutex_lock(&lock->mutex);
    pthread_cond_broadcast(&lock->changed);
    pthread_mutex_unlock(&lock->mutex);
}

#endif

struct frit_os_thread {
    pthread_t id;
    void (*fn)(void *ctx);
    void *ctx;
};

static void *enter(void *arg)
{
    const frit_os_thread *thread = arg;
    thread->fn(thread->ctx);
    return NULL;
}

// Workers block all signals: a host program's handlers keep running on the threads that the host knows.
frit_status frit_os_thread_start(frit_os_thread **out, void (*fn)(void *ctx), void *ctx)
{
    *out = NULL;
    frit_os_thread *thread = malloc(sizeof *thread);
    if (!thread) return frit_fail_memory(sizeof *thread, "a thread");
    *thread = (frit_os_thread){.fn = fn, .ctx = ctx};
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread->id, NULL, enter, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        char text[FRIT_ERRNO_BYTES];
        free(thread);
        return frit_fail(FRIT_E_LIMIT, "a thread cannot be started: %s", frit_errno_text(error, text));
    }
    *out = thread;
    return FRIT_OK;
}

void frit_os_thread_join(frit_os_thread *thread)
{
    if (!thread) return;
    pthread_join(thread->id, NULL);
    free(thread);
}

void frit_os_yield(void)
{
    sched_yield();
}

#if defined(__linux__)

// Returns the affinity mask. The buffer grows until the kernel accepts it: the kernel refuses masks smaller than its
// own.
int frit_os_cpus(int **out)
{
    *out = NULL;
    for (int n_cpus = CPU_SETSIZE; n_cpus <= 64 * CPU_SETSIZE; n_cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)n_cpus);
        if (!set) return 0;
        const size_t size = CPU_ALLOC_SIZE((size_t)n_cpus);
        const bool known = sched_getaffinity(0, size, set) == 0;
        int n = 0;
        if (known) *out = malloc((size_t)n_cpus * sizeof **out);
        for (int i = 0; *out && i < n_cpus; i++)
            if (CPU_ISSET_S((size_t)i, size, set)) (*out)[n++] = i;
        CPU_FREE(set);
        if (known) return n;
    }
    return 0;
}

#else

int frit_os_cpus(int **out)
{
    const long n_online = sysconf(_SC_NPROCESSORS_ONLN);
    const int n = n_online > 0 ? (int)n_online : 1;
    *out = malloc((size_t)n * sizeof **out);
    for (int i = 0; *out && i < n; i++) (*out)[i] = i;
    return *out ? n : 0;
}

#endif
