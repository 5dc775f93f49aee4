// SPDX-License-Identifier: MIT
// The sources of information about the machine, in order, and the cgroup's quota applied to it.
#include "base/machine/topology.h"
#include "base/os.h"
#if defined(__linux__)
#include "base/machine/cgroup.h"
#endif

#include <stdlib.h>

static const frit_topology_source *const sources[] = {
#if defined(FRIT_HWLOC)
    &frit_topology_hwloc,
#endif
#if defined(__linux__)
    &frit_topology_sysfs,
#endif
    NULL,
};

static int quota(void)
{
#if defined(__linux__)
    return frit_cgroup_cpus("");
#else
    return 0;
#endif
}

static int bounded(int n, int most)
{
    if (most > 0 && n > most) n = most;
    return n < 1 ? 1 : n;
}

int frit_topology_cpus(void)
{
    int *cpus;
    const int n = frit_os_cpus(&cpus);
    free(cpus);
    return bounded(n, quota());
}

void frit_topology_get(frit_topology *topology)
{
    int *cpus;
    const int n = frit_os_cpus(&cpus);
    frit_cores cores = {n, n};
    const char *name = "counted";
    topology->nodes.n = 1;
    for (size_t i = 0; n > 0 && sources[i]; i++) {
        if (!sources[i]->look(&cores, &topology->nodes, cpus, n)) continue;
        name = sources[i]->name;
        break;
    }
    free(cpus);
#if !defined(__linux__)
    topology->nodes.n = 1;   // placement is not possible (thread_posix.c, thread_win.c)
#endif
    const int most = quota();
    topology->source = name;
    topology->n_cpus = bounded(n, most);
    topology->n_cores = bounded(cores.n, most);
    topology->n_fast_cores = bounded(cores.n_fast, most);
}
