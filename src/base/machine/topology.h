// SPDX-License-Identifier: MIT
// base/machine/topology.h: the CPUs that this process may use, their cores and memory nodes.
//
// The affinity mask and the cgroup's quota determine the number of CPUs. A source, a row in topology.c, describes them:
// the first source that knows all CPUs of the mask. Without a source, each CPU is a core, on one node.
#pragma once
#include "base/machine/cores.h"
#include "base/machine/nodes.h"

typedef struct frit_topology {
    const char *source;   // the row's name
    int n_cpus;           // CPUs that run at the same time; n_cpus, n_cores, n_fast_cores are at least 1 and at most
                          // the quota
    int n_cores;          // cores, each counted once
    int n_fast_cores;     // cores without the slow ones of hybrid processors
    frit_nodes nodes;
} frit_topology;

void frit_topology_get(frit_topology *topology);
// Sets only n_cpus; needs no source.
int frit_topology_cpus(void);

typedef struct frit_topology_source {
    const char *name;
    // Describes the listed CPUs (ascending). False: not all are known.
    bool (*look)(frit_cores *cores, frit_nodes *nodes, const int *cpus, int n_cpus);
} frit_topology_source;

extern const frit_topology_source frit_topology_hwloc, frit_topology_sysfs;

// frit_topology_hwloc.look with an hwloc_topology_t that is loaded already: for tests.
bool frit_hwloc_look(void *topology, frit_cores *cores, frit_nodes *nodes, const int *cpus, int n_cpus);
