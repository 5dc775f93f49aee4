// SPDX-License-Identifier: MIT
// Growth by doubling.
#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 16 };

static size_t larger_capacity(size_t capacity, size_t needed)
{
    const size_t doubled = capacity > SIZE_MAX / 2 ? SIZE_MAX : 2 * capacity;
    const size_t larger = doubled > needed ? doubled : needed;
    return larger > FIRST_CAPACITY ? larger : FIRST_CAPACITY;
}

frit_status frit_grow_array(frit_arena *arena, void *items, size_t *capacity, size_t needed, size_t item_size,
                            const char *what)
{
    const size_t larger = larger_capacity(*capacity, needed);
    if (larger > SIZE_MAX / item_size) return frit_fail_memory(SIZE_MAX, what);
    void *old, *grown;
    memcpy(&old, items, sizeof old);   // `items` may point to any type of pointer
    grown = arena ? frit_arena_alloc(arena, larger, item_size) : realloc(old, larger * item_size);
    if (!grown) return frit_fail_memory(larger * item_size, what);
    if (arena && *capacity > 0) memcpy(grown, old, *capacity * item_size);
    memcpy(items, &grown, sizeof grown);
    *capacity = larger;
    return FRIT_OK;
}
