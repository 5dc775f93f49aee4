// SPDX-License-Identifier: MIT
// A thread that works when it is woken.
#include "base/thread/background.h"
#include "base/os.h"

#include <stdlib.h>

struct frit_background {
    frit_os_thread *thread;
    frit_os_word wakes, news;
    _Atomic bool stops;
    void (*work)(void *ctx);
    void *ctx;
};

static void run(void *ctx)
{
    frit_background *b = ctx;
    for (bool stops = false; !stops;) {
        const uint32_t seen = atomic_load(&b->wakes.value);
        stops = atomic_load(&b->stops);   // work that was left before the stop is done below
        b->work(b->ctx);
        while (!stops && atomic_load(&b->wakes.value) == seen) frit_os_word_sleep(&b->wakes, seen);
    }
}

frit_status frit_background_new(frit_background **out, void (*work)(void *ctx), void *ctx)
{
    frit_background *b = *out = calloc(1, sizeof *b);
    if (!b) return frit_fail_memory(sizeof *b, "a thread");
    b->work = work;
    b->ctx = ctx;
    frit_status status = frit_os_word_init(&b->wakes);
    if (status == FRIT_OK) status = frit_os_word_init(&b->news);
    if (status == FRIT_OK) status = frit_os_thread_start(&b->thread, run, b);
    if (status == FRIT_OK) return FRIT_OK;
    frit_background_free(b);
    *out = NULL;
    return status;
}

void frit_background_wake(frit_background *b)
{
    atomic_fetch_add(&b->wakes.value, 1);
    frit_os_word_wake(&b->wakes);
}

void frit_background_free(frit_background *b)
{
    if (!b) return;
    atomic_store(&b->stops, true);
    if (b->thread) frit_background_wake(b);
    frit_os_thread_join(b->thread);
    frit_os_word_deinit(&b->wakes);
    frit_os_word_deinit(&b->news);
    free(b);
}

void frit_background_tell(frit_background *b)
{
    atomic_fetch_add(&b->news.value, 1);
    frit_os_word_wake(&b->news);
}

uint32_t frit_background_news(frit_background *b)
{
    return atomic_load(&b->news.value);
}

void frit_background_wait(frit_background *b, uint32_t seen)
{
    if (atomic_load(&b->news.value) == seen) frit_os_word_sleep(&b->news, seen);
}
