// SPDX-License-Identifier: MIT
// Tunes malloc of glibc, which otherwise keeps the memory that large requests freed. Other systems need no tuning.
#include "server/ops/trim_memory.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdlib.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

enum { LARGE_BLOCK = 256 << 10, RESERVE_BYTES = 4 << 20, VALUE_BYTES = 256, MOST_TRIES = 16 };

static _Atomic(void *) reserve;

// Without memory, frees the reserve and tries again, several times, as other threads may free memory in between.
static void *allocate_json(size_t n)
{
    void *data = malloc(n);
    for (int i = 0; !data && i < MOST_TRIES; i++) {
        free(atomic_exchange(&reserve, NULL));
        data = malloc(n);
    }
    return data;
}

void server_memory_prepare(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK);
    mallopt(M_TRIM_THRESHOLD, 4 * LARGE_BLOCK);
#endif
    json_set_alloc_funcs(allocate_json, free);
}

bool server_memory_has_room(size_t n_bytes, size_t n_values)
{
    if (!atomic_load(&reserve)) free(atomic_exchange(&reserve, malloc(RESERVE_BYTES)));
    void *room = malloc(4 * n_bytes + VALUE_BYTES * n_values);
    free(room);
    return room && atomic_load(&reserve);
}

void server_memory_trim(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}
