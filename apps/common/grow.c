// SPDX-License-Identifier: MIT
// Growth by doubling.
#include "common/grow.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 16 };

bool app_grow(void *items, size_t *capacity, size_t needed, size_t item_size)
{
    if (needed <= *capacity) return true;
    size_t larger = *capacity > SIZE_MAX / 2 ? SIZE_MAX : 2 * *capacity;
    if (larger < needed) larger = needed;
    if (larger < FIRST_CAPACITY) larger = FIRST_CAPACITY;
    void *old, *grown;
    memcpy(&old, items, sizeof old);   // `items` may point to any type of pointer
    grown = larger <= SIZE_MAX / item_size ? realloc(old, larger * item_size) : NULL;
    if (!grown) return false;
    memcpy(items, &grown, sizeof grown);
    *capacity = larger;
    return true;
}
