// SPDX-License-Identifier: MIT
// common/grow.h: growth of malloc'd arrays.
//
// APP_GROW makes the capacity of an array, a size_t, at least `needed` items. A capacity that is too small at least
// doubles. False: there is no memory, and the array stays as it was.
//
//     if (!APP_GROW(list->items, list->capacity, list->n + 1)) return false;
//     list->items[list->n++] = item;
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define APP_GROW(items, capacity, needed) app_grow(&(items), &(capacity), (size_t)(needed), sizeof *(items))

// `items` is the address of the pointer to the items.
bool app_grow(void *items, size_t *capacity, size_t needed, size_t item_size);
