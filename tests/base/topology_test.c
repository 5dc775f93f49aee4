// SPDX-License-Identifier: MIT
// CPUs that this process may use: the counts are consistent, and hwloc's view of made-up machines.
#include "support/support.h"

#include "base/os.h"
#include "base/machine/topology.h"

#include <stdlib.h>

static void counts_are_within_what_the_mask_allows(void **state)
{
    (void)state;
    static frit_topology t;
    int *cpus;
    const int n = frit_os_cpus(&cpus);
    for (int i = 1; i < n; i++) assert_true(cpus[i - 1] < cpus[i]);
    frit_topology_get(&t);
    assert_in_range(t.n_cpus, 1, n);
    assert_int_equal(t.n_cpus, frit_topology_cpus());
    assert_in_range(t.n_cores, 1, t.n_cpus);
    assert_in_range(t.n_fast_cores, 1, t.n_cores);
    assert_in_range(t.nodes.n, 1, FRIT_MAX_NODES);
    assert_true(strcmp(t.source, "hwloc") == 0 || strcmp(t.source, "sysfs") == 0 || strcmp(t.source, "counted") == 0);
    free(cpus);
}

#if defined(FRIT_HWLOC)
#include <hwloc.h>

// Makes a machine from hwloc's description: "numa:2 core:4 pu:2".
static hwloc_topology_t machine(const char *words)
{
    hwloc_topology_t topology;
    assert_int_equal(hwloc_topology_init(&topology), 0);
    assert_int_equal(hwloc_topology_set_synthetic(topology, words), 0);
    assert_int_equal(hwloc_topology_load(topology), 0);
    return topology;
}

// Tells hwloc the kind of CPUs [begin, end); `fact` may be NULL.
static void add_kind(hwloc_topology_t topology, unsigned begin, unsigned end, int rank, const char *fact,
                     const char *value)
{
    char name[32], text[32];
    snprintf(name, sizeof name, "%s", fact ? fact : "");
    snprintf(text, sizeof text, "%s", fact ? value : "");
    struct hwloc_info_s info = {.name = name, .value = text};
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    hwloc_bitmap_set_range(set, begin, (int)end - 1);
    assert_int_equal(hwloc_cpukinds_register(topology, set, rank, fact != NULL, &info, 0), 0);
    hwloc_bitmap_free(set);
}

static frit_cores cores_among(hwloc_topology_t topology, int first, int n_cpus, int step)
{
    static frit_nodes nodes;
    frit_cores cores;
    int cpus[64];
    for (int i = 0; i < n_cpus; i++) cpus[i] = first + i * step;
    assert_true(frit_hwloc_look(topology, &cores, &nodes, cpus, n_cpus));
    return cores;
}

static void hwloc_counts_threads_of_one_core_once(void **state)
{
    (void)state;
    hwloc_topology_t t = machine("core:4 pu:2");
    assert_int_equal(cores_among(t, 0, 8, 1).n, 4);
    assert_int_equal(cores_among(t, 0, 8, 1).n_fast, 4);
    assert_int_equal(cores_among(t, 0, 3, 1).n, 2);   // an affinity mask
    assert_int_equal(cores_among(t, 1, 4, 2).n, 4);   // the second thread of each core
    frit_cores cores;
    static frit_nodes nodes;
    assert_false(frit_hwloc_look(t, &cores, &nodes, (int[]){0, 8}, 2));   // hwloc has no CPU 8, so another source must
                                                                          // be used
    hwloc_topology_destroy(t);
    t = machine("pu:6");
    assert_int_equal(cores_among(t, 0, 6, 1).n, 6);   // no cores are known
    hwloc_topology_destroy(t);
}

static void hwloc_knows_slow_cores(void **state)
{
    (void)state;
    hwloc_topology_t t = machine("core:12 pu:1");
    add_kind(t, 0, 8, 1, "CoreType", "IntelCore");
    add_kind(t, 8, 12, 0, "CoreType", "IntelAtom");
    assert_int_equal(cores_among(t, 0, 12, 1).n_fast, 8);
    assert_int_equal(cores_among(t, 8, 4, 1).n_fast, 4);   // only slow ones: all are as fast as any
    hwloc_topology_destroy(t);

    t = machine("core:12 pu:1");   // one fastest, five large, six small cores
    add_kind(t, 0, 6, 0, "LinuxCapacity", "446");
    add_kind(t, 6, 11, 1, "LinuxCapacity", "900");
    add_kind(t, 11, 12, 2, "LinuxCapacity", "1024");
    assert_int_equal(cores_among(t, 0, 12, 1).n, 12);
    assert_int_equal(cores_among(t, 0, 12, 1).n_fast, 6);
    hwloc_topology_destroy(t);

    t = machine("core:8 pu:1");
    add_kind(t, 0, 4, 0, "FrequencyMaxMHz", "3100");
    add_kind(t, 4, 8, 1, "FrequencyMaxMHz", "5100");
    assert_int_equal(cores_among(t, 0, 8, 1).n_fast, 4);
    hwloc_topology_destroy(t);

    t = machine("core:8 pu:1");   // nothing but their order
    add_kind(t, 0, 2, 0, NULL, NULL);
    add_kind(t, 2, 8, 1, NULL, NULL);
    assert_int_equal(cores_among(t, 0, 8, 1).n_fast, 6);
    hwloc_topology_destroy(t);
}

static void hwloc_knows_memory_nodes(void **state)
{
    (void)state;
    static frit_nodes nodes;
    static const int cpus[] = {0, 1, 2, 3, 4, 5, 6, 7};
    frit_cores cores;
    hwloc_topology_t t = machine("numa:2 core:4 pu:1");
    assert_true(frit_hwloc_look(t, &cores, &nodes, cpus, 8));
    assert_int_equal(nodes.n, 2);
    assert_int_equal(nodes.n_cpus, 8);
    for (int part = 0; part < 8; part++) assert_int_equal(frit_nodes_of_thread(&nodes, part, 8), part >= 4);
    assert_true(frit_hwloc_look(t, &cores, &nodes, cpus + 4, 4));   // a mask on one node
    assert_int_equal(nodes.n, 1);
    assert_true(frit_hwloc_look(t, &cores, &nodes, cpus + 3, 3));
    assert_int_equal(nodes.n, 2);
    assert_int_equal(nodes.first[1], 1);
    hwloc_topology_destroy(t);
    t = machine("[numa] pack:2 [numa] [numa] core:2 pu:2");   // fast memory beside the usual one, and some for all
    assert_int_equal(hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_NUMANODE), 5);
    assert_true(frit_hwloc_look(t, &cores, &nodes, cpus, 8));
    assert_int_equal(nodes.n, 2);
    assert_int_equal(nodes.first[1], 4);
    assert_int_equal(nodes.first[2], 8);
    for (int i = 0; i < 8; i++) assert_int_equal(nodes.cpus[i], i);
    hwloc_topology_destroy(t);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_within_what_the_mask_allows),
#if defined(FRIT_HWLOC)
        cmocka_unit_test(hwloc_counts_threads_of_one_core_once),
        cmocka_unit_test(hwloc_knows_slow_cores),
        cmocka_unit_test(hwloc_knows_memory_nodes),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
