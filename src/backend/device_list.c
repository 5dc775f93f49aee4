// SPDX-License-Identifier: MIT
// Names of lists of devices: "cuda:0-3", "cuda:0,2".
#include "backend/group.h"

#include <stdio.h>
#include <string.h>

// Reads a number at `*at`, which it moves on. -1: no digit is there.
static int32_t take_number(const char **at)
{
    int32_t number = 0;
    const char *begin = *at;
    for (; **at >= '0' && **at <= '9' && *at < begin + 4; ++*at) number = 10 * number + (**at - '0');
    return *at > begin ? number : -1;
}

// False if the list has the number already.
static bool add_number(frit_device_list *list, int32_t number)
{
    const int32_t n = list->n < FRIT_MAX_RANKS ? list->n : FRIT_MAX_RANKS;
    for (int32_t i = 0; i < n; i++)
        if (list->numbers[i] == number) return false;
    if (list->n < FRIT_MAX_RANKS) list->numbers[list->n] = number;
    list->n++;
    return true;
}

// Reads "2" or "0-3".
static bool take_range(const char **at, frit_device_list *list)
{
    const int32_t first = take_number(at);
    int32_t last = first;
    if (**at == '-') {
        ++*at;
        last = take_number(at);
    }
    if (first < 0 || last < first) return false;
    for (int32_t i = first; i <= last; i++)
        if (!add_number(list, i)) return false;
    return true;
}

bool frit_device_list_parse(const char *name, frit_device_list *list)
{
    const char *colon = strchr(name, ':'), *at = colon;
    *list = (frit_device_list){0};
    if (!colon || colon == name || colon - name > 15) return false;
    do {
        at++;
        if (!take_range(&at, list)) return false;
    } while (*at == ',');
    snprintf(list->backend, sizeof list->backend, "%.*s", (int)(colon - name), name);
    return !*at;
}

void frit_device_list_name(const frit_device_list *list, char *name, size_t n_bytes)
{
    const int32_t n_numbers = list->n < FRIT_MAX_RANKS ? list->n : FRIT_MAX_RANKS;
    const int32_t first = list->numbers[0], last = list->numbers[n_numbers - 1];
    bool is_range = n_numbers > 1;
    for (int32_t i = 0; i < n_numbers; i++) is_range = is_range && list->numbers[i] == first + i;
    int n = snprintf(name, n_bytes, is_range ? "%s:%d-%d" : "%s:%d", list->backend, (int)first, (int)last);
    for (int32_t i = 1; i < n_numbers && !is_range && n > 0 && (size_t)n < n_bytes; i++)
        n += snprintf(name + n, n_bytes - (size_t)n, ",%d", (int)list->numbers[i]);
}
