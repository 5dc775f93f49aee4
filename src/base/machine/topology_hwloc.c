// SPDX-License-Identifier: MIT
// The machine as hwloc describes it, on any system. This file is compiled if hwloc's headers were found; the library is
// optional and opened at run time.
//
// hwloc gives each kind of cores properties and usually a rank. A kind is slow by its properties, by the rule of
// cores_linux.c; without properties it is slow if another kind's rank is higher:
//
//     CoreType=IntelAtom       the slow cores of a hybrid processor
//     LinuxCapacity=446        of 1024, where cores differ (ARM)
//     FrequencyMaxMHz=3100     at most
#include "base/machine/topology.h"

#include <dlfcn.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>

#if defined(__APPLE__)
static const char library_name[] = "libhwloc.15.dylib";
#else
static const char library_name[] = "libhwloc.so.15";   // the name of all versions 2.x
#endif

// clang-format off
#define FUNCTIONS(F) \
    F(topology_init) F(topology_abi_check) F(topology_set_all_types_filter) F(topology_set_type_filter) \
    F(topology_set_flags) F(topology_load) F(topology_is_thissystem) F(topology_destroy) \
    F(get_type_depth) F(get_nbobjs_by_depth) F(get_obj_by_depth) F(bitmap_isset) F(bitmap_weight) \
    F(cpukinds_get_nr) F(cpukinds_get_by_cpuset) F(cpukinds_get_info)
// clang-format on

enum { HWLOC_ROOM = 8 << 20 };

typedef struct library {
    void *handle;
    hwloc_topology_t topology;
#define MEMBER(name) __typeof__(hwloc_##name) *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} library;

static bool open_library(library *l)
{
    l->handle = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
    bool good = l->handle != NULL;
#define FIND(name)                                            \
    if (good) {                                               \
        void *const found = dlsym(l->handle, "hwloc_" #name); \
        memcpy(&l->name, &found, sizeof found);               \
        good = found != NULL;                                 \
    }
    FUNCTIONS(FIND)
#undef FIND
    return good;
}

static void close_library(library *l)
{
    if (l->handle) dlclose(l->handle);
}

// ------------------------------------------------------------------------------- cores

typedef struct core_kind {
    bool is_atom;
    long capacity, mhz;   // 0: unknown
    int rank;             // -1: unknown
} core_kind;

static core_kind kind_of(const library *l, int index)
{
    core_kind kind = {.rank = -1};
    unsigned n_infos = 0;
    struct hwloc_info_s *infos = NULL;
    if (index < 0 || l->cpukinds_get_info(l->topology, (unsigned)index, NULL, &kind.rank, &n_infos, &infos, 0) != 0)
        return kind;
    for (unsigned i = 0; i < n_infos; i++) {
        if (strcmp(infos[i].name, "CoreType") == 0) kind.is_atom = strcmp(infos[i].value, "IntelAtom") == 0;
        if (strcmp(infos[i].name, "LinuxCapacity") == 0) kind.capacity = strtol(infos[i].value, NULL, 10);
        if (strcmp(infos[i].name, "FrequencyMaxMHz") == 0) kind.mhz = strtol(infos[i].value, NULL, 10);
    }
    return kind;
}

static bool is_slower(const core_kind *kind, const core_kind *other)
{
    if (kind->is_atom != other->is_atom) return kind->is_atom;
    if (kind->capacity && other->capacity) return 4 * kind->capacity < 3 * other->capacity;
    if (kind->mhz && other->mhz) return 4 * kind->mhz < 3 * other->mhz;
    return kind->rank < other->rank;
}

static bool is_slow(const library *l, hwloc_obj_t core)
{
    const int index = l->cpukinds_get_by_cpuset(l->topology, core->cpuset, 0), n = l->cpukinds_get_nr(l->topology, 0);
    const core_kind kind = kind_of(l, index);
    for (int i = 0; index >= 0 && i < n; i++) {
        const core_kind other = kind_of(l, i);
        if (i != index && is_slower(&kind, &other)) return true;
    }
    return false;
}

// Counts the listed CPUs of this kind.
static int count_cpus(const library *l, hwloc_obj_t object, const int *cpus, int n_cpus)
{
    int n = 0;
    for (int i = 0; i < n_cpus; i++) n += l->bitmap_isset(object->cpuset, (unsigned)cpus[i]) != 0;
    return n;
}

static bool look_at_cores(const library *l, frit_cores *cores, const int *cpus, int n_cpus)
{
    int depth = l->get_type_depth(l->topology, HWLOC_OBJ_CORE), n_known = 0;
    if (depth < 0) depth = l->get_type_depth(l->topology, HWLOC_OBJ_PU);
    const unsigned n = l->get_nbobjs_by_depth(l->topology, depth);
    *cores = (frit_cores){0};
    for (unsigned i = 0; i < n; i++) {
        const hwloc_obj_t core = l->get_obj_by_depth(l->topology, depth, i);
        const int n_own = count_cpus(l, core, cpus, n_cpus);
        n_known += n_own;
        cores->n += n_own > 0;
        cores->n_fast += n_own > 0 && !is_slow(l, core);
    }
    if (cores->n_fast == 0) cores->n_fast = cores->n;
    return n_known == n_cpus;
}

// ------------------------------------------------------------------------------- memory

// The system's number of a CPU's node, -1 if it has none. A CPU may have several nodes in hwloc (high-bandwidth memory,
// memory shared by all): the node with the fewest CPUs is used, then the one with the lowest number.
static int node_of(const library *l, unsigned cpu)
{
    const unsigned n = l->get_nbobjs_by_depth(l->topology, HWLOC_TYPE_DEPTH_NUMANODE);
    hwloc_obj_t best = NULL;
    for (unsigned i = 0; i < n; i++) {
        const hwloc_obj_t node = l->get_obj_by_depth(l->topology, HWLOC_TYPE_DEPTH_NUMANODE, i);
        if (node->os_index >= FRIT_MAX_NODES || !l->bitmap_isset(node->cpuset, cpu)) continue;
        const int more = best ? l->bitmap_weight(node->cpuset) - l->bitmap_weight(best->cpuset) : -1;
        if (more < 0 || (more == 0 && node->os_index < best->os_index)) best = node;
    }
    return best ? (int)best->os_index : -1;
}

static void look_at_nodes(const library *l, frit_nodes *nodes, const int *cpus, int n_cpus)
{
    int8_t owners[FRIT_MAX_NODE_CPUS];
    int n = 0, n_found = 0;
    const int n_placed = n_cpus <= FRIT_MAX_NODE_CPUS ? n_cpus : 0;
    for (int i = 0; i < n_placed; i++) owners[i] = (int8_t)node_of(l, (unsigned)cpus[i]);
    for (int number = 0; number < FRIT_MAX_NODES; number++) {
        nodes->first[n] = (int16_t)n_found;
        for (int i = 0; i < n_placed; i++)
            if (owners[i] == number) nodes->cpus[n_found++] = (int16_t)cpus[i];
        if (n_found > nodes->first[n]) nodes->numbers[n++] = number;
    }
    nodes->first[n] = (int16_t)n_found;
    const bool placed = n > 1 && n_found == n_cpus;   // a CPU without a node would never be used
    nodes->n = placed ? n : 1;
    nodes->n_cpus = placed ? n_found : 0;
}

// ------------------------------------------------------------------------------- all of it

static bool look_at_all(const library *l, frit_cores *cores, frit_nodes *nodes, const int *cpus, int n_cpus)
{
    if (!look_at_cores(l, cores, cpus, n_cpus)) return false;
    look_at_nodes(l, nodes, cpus, n_cpus);
    return true;
}

bool frit_hwloc_look(void *topology, frit_cores *cores, frit_nodes *nodes, const int *cpus, int n_cpus)
{
    library l = {.topology = topology};
    const bool good = open_library(&l) && look_at_all(&l, cores, nodes, cpus, n_cpus);
    close_library(&l);
    return good;
}

// Loads the topology. Only CPUs, cores and memory are discovered, which takes a tenth of the time and moves no thread.
static bool load(library *l)
{
    const hwloc_topology_t t = l->topology;
    return l->topology_abi_check(t) == 0 && l->topology_set_all_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE) == 0 &&
           l->topology_set_type_filter(t, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL) == 0 &&
           l->topology_set_flags(t, HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING) == 0 && l->topology_load(t) == 0 &&
           l->topology_is_thissystem(t);
}

// hwloc ends the process when it runs out of memory, so it is used only where far more memory is free than the 1 MiB
// that it takes.
static bool has_memory(void)
{
    void *volatile room = malloc(HWLOC_ROOM);
    const bool found = room != NULL;
    free(room);
    return found;
}

static bool look(frit_cores *cores, frit_nodes *nodes, const int *cpus, int n_cpus)
{
    library l = {.handle = NULL};
    bool good = has_memory() && open_library(&l) && l.topology_init(&l.topology) == 0;
    if (good) {
        good = load(&l) && look_at_all(&l, cores, nodes, cpus, n_cpus);
        l.topology_destroy(l.topology);
    }
    close_library(&l);
    return good;
}

const frit_topology_source frit_topology_hwloc = {"hwloc", look};
