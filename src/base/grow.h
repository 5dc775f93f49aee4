// SPDX-License-Identifier: MIT
// base/grow.h: growth of arrays.
//
// FRIT_GROW makes the capacity of an array at least `needed` items. A capacity that is too small at least doubles, so
// appending n items copies O(n) items. On failure the array stays as it was, and `what` names it in the error.
//
//     FRIT_TRY(FRIT_GROW(list->items, list->capacity, list->n + 1, "the list of weights"));
//     list->items[list->n++] = item;
//
// The items are malloc'd, or NULL with a capacity of 0; the capacity is a size_t. The items of FRIT_GROW_IN are in an
// arena, in which the smaller arrays stay; new items are zero.
#pragma once
#include "base/arena.h"
#include "base/status.h"

#define FRIT_GROW(items, capacity, needed, what) \
    frit_grow(NULL, &(items), &(capacity), (size_t)(needed), sizeof *(items), (what))
#define FRIT_GROW_IN(arena, items, capacity, needed, what) \
    frit_grow((arena), &(items), &(capacity), (size_t)(needed), sizeof *(items), (what))

// `items` is the address of the pointer to the items. arena: NULL for malloc'd items.
frit_status frit_grow_array(frit_arena *arena, void *items, size_t *capacity, size_t needed, size_t item_size,
                            const char *what);

static inline frit_status frit_grow(frit_arena *arena, void *items, size_t *capacity, size_t needed, size_t item_size,
                                    const char *what)
{
    return needed <= *capacity ? FRIT_OK : frit_grow_array(arena, items, capacity, needed, item_size, what);
}
