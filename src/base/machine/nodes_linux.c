// SPDX-License-Identifier: MIT
// Memory nodes by sysfs and two system calls, without a library:
//
//     /sys/devices/system/node/online          "0-1"
//     /sys/devices/system/node/node1/cpulist   "4-7,12-15"
#include "base/machine/nodes.h"
#include "base/machine/sysfs.h"

#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static void one_node(frit_nodes *nodes)
{
    nodes->n = 1;
    nodes->numbers[0] = 0;
    nodes->n_cpus = 0;
}

void frit_nodes_of(frit_nodes *nodes, const char *root, const int *cpus, int n_cpus)
{
    char online[FRIT_SYSFS_BYTES], list[FRIT_SYSFS_BYTES], name[64];
    one_node(nodes);
    if (!frit_sysfs_read(root, "system/node/online", online)) return;
    int n = 0, n_found = 0;
    for (int number = 0; number < FRIT_MAX_NODES; number++) {
        snprintf(name, sizeof name, "system/node/node%d/cpulist", number);
        if (!frit_sysfs_list_has(online, number) || !frit_sysfs_read(root, name, list)) continue;
        nodes->first[n] = (int16_t)n_found;
        for (int i = 0; i < n_cpus && n_found < FRIT_MAX_NODE_CPUS; i++)
            if (frit_sysfs_list_has(list, cpus[i])) nodes->cpus[n_found++] = (int16_t)cpus[i];
        if (n_found == nodes->first[n]) continue;   // the node has no CPUs of this process
        nodes->numbers[n++] = number;
    }
    if (n < 2 || n_found < n_cpus) return;   // a CPU without a node would never be used
    nodes->n = n;
    nodes->n_cpus = n_found;
    nodes->first[n] = (int16_t)n_found;
}

bool frit_nodes_stay(const frit_nodes *nodes, int node)
{
    if (nodes->n < 2) return true;
    cpu_set_t *set = CPU_ALLOC(FRIT_MAX_NODE_CPUS);
    if (!set) return false;
    const size_t size = CPU_ALLOC_SIZE(FRIT_MAX_NODE_CPUS);
    CPU_ZERO_S(size, set);
    for (int i = nodes->first[node]; i < nodes->first[node + 1]; i++) CPU_SET_S((size_t)nodes->cpus[i], size, set);
    const bool good = sched_setaffinity(0, size, set) == 0;
    CPU_FREE(set);
    return good;
}

bool frit_nodes_spread(const frit_nodes *nodes, void *memory, uint64_t n_bytes)
{
    enum { INTERLEAVE = 3 };   // MPOL_INTERLEAVE of linux/mempolicy.h
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)memory;
    const uintptr_t begin = (start + page - 1) / page * page, end = (start + (uintptr_t)n_bytes) / page * page;
    enum { WORD = 8 * sizeof(unsigned long) };
    unsigned long mask[FRIT_MAX_NODES / WORD + 1] = {0};
    if (nodes->n < 2 || begin >= end) return true;
    for (int i = 0; i < nodes->n; i++) mask[nodes->numbers[i] / WORD] |= 1ul << nodes->numbers[i] % WORD;
    return syscall(SYS_mbind, begin, end - begin, INTERLEAVE, mask, FRIT_MAX_NODES + 1, 0u) == 0;
}
