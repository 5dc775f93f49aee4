// SPDX-License-Identifier: MIT
// base/topology.h: what this process may run on: CPUs, the cores that they share, the memory beside them.
//
// How many follows from the affinity mask and the cgroups' quota. What they are is told by a source, a row in
// topology.c: the first one that knows all CPUs of the mask is believed. Where none does, each CPU is a core, with one
// memory.
#pragma once
#include "base/cores.h"
#include "base/nodes.h"

typedef struct frit_topology {
    const char *source;   // the row's name
    int n_cpus;           // that run at the same time; these three are at least 1, and at most what the quota gives
    int n_cores;          // threads of one core count once
    int n_fast_cores;     // without the slow cores of hybrid processors
    frit_nodes nodes;
} frit_topology;

void frit_topology_get(frit_topology *topology);
// Its n_cpus alone, which asks no source.
int frit_topology_cpus(void);

typedef struct frit_topology_source {
    const char *name;
    // What the CPUs in the list, ascending, are. False: not all of them are known.
    bool (*look)(frit_cores *cores, frit_nodes *nodes, const int *cpus, int n_cpus);
} frit_topology_source;

extern const frit_topology_source frit_topology_hwloc, frit_topology_sysfs;

// The same from an hwloc_topology_t that was loaded: for tests.
bool frit_hwloc_look(void *topology, frit_cores *cores, frit_nodes *nodes, const int *cpus, int n_cpus);
