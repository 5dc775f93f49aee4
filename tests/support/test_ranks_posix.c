// SPDX-License-Identifier: MIT
// A backend whose device is a group of devices of another one.
#include "support/test_ranks.h"

#include "backend/group.h"
#include "support/test_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const frit_backend *chosen;
static int32_t n_ranks;
static bool chosen_is_exact;

static frit_status ranks_open(frit_device **out, const frit_device_options *options)
{
    frit_device_options with = *options;
    with.deterministic = options->deterministic || chosen_is_exact;
    frit_device_list list = {.n = n_ranks};
    snprintf(list.backend, sizeof list.backend, "%s", chosen->name);
    for (int32_t i = 0; i < n_ranks && i < FRIT_MAX_RANKS; i++) list.numbers[i] = i;
    return frit_group_open(out, chosen, &list, &with);
}

static const frit_backend backend = {.name = "ranks", .open = ranks_open};

void test_ranks_use(const frit_backend *kind, int32_t n, bool is_exact)
{
    chosen = kind;
    n_ranks = n;
    chosen_is_exact = is_exact;
    frit_backend_set_first(n > 0 ? &backend : NULL);
}

bool test_ranks_use_named(const char *name)
{
    static const struct {
        const char *name;
        const frit_backend *kind;
    } kinds[] = {{"ranks", &test_device_backend}, {"cpus", &frit_backend_cpu}};
    for (size_t i = 0; i < FRIT_COUNT(kinds); i++) {
        const size_t n = strlen(kinds[i].name);
        if (strncmp(name, kinds[i].name, n) != 0) continue;
        test_ranks_use(kinds[i].kind, (int32_t)atoi(name + n), false);
        return true;
    }
    return false;
}
