// SPDX-License-Identifier: MIT
// The machine as sysfs describes it, read by cores_linux.c and nodes_linux.c.
#include "base/machine/topology.h"

static bool look(frit_cores *cores, frit_nodes *nodes, const int *cpus, int n_cpus)
{
    *cores = frit_cores_of("", cpus, n_cpus);
    frit_nodes_of(nodes, "", cpus, n_cpus);
    return true;
}

const frit_topology_source frit_topology_sysfs = {"sysfs", look};
