// SPDX-License-Identifier: MIT
// Reads three kinds of files in sysfs:
//
//     system/cpu/cpu3/topology/core_cpus_list    "3,19"   the threads of its core (thread_siblings_list before 5.3)
//     system/cpu/cpu3/cpu_capacity               "446"    of 1024, where cores differ (ARM)
//     cpu_atom/cpus                              "16-31"  the slow cores of a hybrid processor (x86)
#include "base/machine/cores.h"
#include "base/machine/sysfs.h"

#include <stdio.h>
#include <stdlib.h>

enum { LIST_BYTES = FRIT_SYSFS_BYTES };

static bool read_of_cpu(const char *root, int cpu, const char *what, char text[LIST_BYTES])
{
    char name[64];
    snprintf(name, sizeof name, "system/cpu/cpu%d/%s", cpu, what);
    return frit_sysfs_read(root, name, text);
}

// True if a CPU that was listed before is a thread of the same core.
static bool is_sibling(const char *root, const int *cpus, int i)
{
    char list[LIST_BYTES];
    if (!read_of_cpu(root, cpus[i], "topology/core_cpus_list", list) &&
        !read_of_cpu(root, cpus[i], "topology/thread_siblings_list", list))
        return false;
    for (int k = 0; k < i; k++)
        if (frit_sysfs_list_has(list, cpus[k])) return true;
    return false;
}

static long capacity_of(const char *root, int cpu)
{
    char text[LIST_BYTES];
    return read_of_cpu(root, cpu, "cpu_capacity", text) ? strtol(text, NULL, 10) : 0;
}

frit_cores frit_cores_of(const char *root, const int *cpus, int n_cpus)
{
    frit_cores cores = {0};
    char slow[LIST_BYTES] = "";
    if (!frit_sysfs_read(root, "cpu_atom/cpus", slow)) slow[0] = 0;
    long most = 0;
    for (int i = 0; i < n_cpus; i++) {
        const long capacity = capacity_of(root, cpus[i]);
        if (capacity > most) most = capacity;
    }
    for (int i = 0; i < n_cpus; i++) {
        if (is_sibling(root, cpus, i)) continue;
        const bool is_slow = frit_sysfs_list_has(slow, cpus[i]) || 4 * capacity_of(root, cpus[i]) < 3 * most;
        cores.n++;
        cores.n_fast += !is_slow;
    }
    if (cores.n_fast == 0) cores.n_fast = cores.n;
    return cores;
}
