// SPDX-License-Identifier: MIT
// The machine: features, memory, the clock; control groups, cores and memory nodes, read from folders that imitate a
// machine.
#include "support/support.h"

#include "base/machine/cgroup.h"
#include "base/machine/cores.h"
#include "base/machine/cpu.h"
#include "base/machine/nodes.h"
#include "base/os.h"
#include "base/time.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

static void features_build_on_each_other(void **state)
{
    (void)state;
    unsigned f = frit_cpu_features();
    assert_int_equal(f, frit_cpu_features());
    if (f & (FRIT_CPU_AVX_VNNI | FRIT_CPU_AVX512)) assert_true(f & FRIT_CPU_AVX2);
    if (f & (FRIT_CPU_AVX512_VNNI | FRIT_CPU_AVX512_VBMI | FRIT_CPU_AVX512_BF16)) assert_true(f & FRIT_CPU_AVX512);
    if (f & (FRIT_CPU_DOTPROD | FRIT_CPU_I8MM)) assert_true(f & FRIT_CPU_NEON);
#if defined(__x86_64__) && defined(__GNUC__)
    assert_int_equal(!!(f & FRIT_CPU_AVX2), __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
    assert_int_equal(!!(f & FRIT_CPU_AVX512_VNNI), !!__builtin_cpu_supports("avx512vnni"));
    assert_int_equal(!!(f & FRIT_CPU_AVX512_VBMI), !!__builtin_cpu_supports("avx512vbmi"));
#elif defined(__aarch64__)
    assert_true(f & FRIT_CPU_NEON);
#endif
}

static void the_processor_has_a_clean_name(void **state)
{
    (void)state;
    const char *name = frit_cpu_name();
    assert_in_range(strlen(name), 1, 127);
    assert_null(strstr(name, "  "));
    assert_int_not_equal(name[strlen(name) - 1], ' ');
}

static void memory_is_within_what_the_machine_has(void **state)
{
    (void)state;
    uint64_t total = frit_memory_total(), available = frit_memory_available();
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    assert_in_range(total, 16u << 20, machine);
    assert_in_range(available, 1, total);
}

static void the_clock_goes_forward(void **state)
{
    (void)state;
    uint64_t before = frit_time_ns(), last = before;
    for (int i = 0; i < 10000; i++) {
        uint64_t now = frit_time_ns();
        assert_true(now >= last);
        last = now;
    }
    usleep(2000);
    assert_true(frit_time_ns() - before >= 2000000);
}

#if defined(__linux__)

// Writes root/path, making its folders.
static void put(const char *root, const char *path, const char *text)
{
    char full[1024];
    int n = snprintf(full, sizeof full, "%s/%s", root, path);
    assert_in_range(n, 1, sizeof full - 1);
    for (char *p = full + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(full, 0700);
        *p = '/';
    }
    write_file(full, text, strlen(text));
}

static const char V2_MOUNT[] = "24 1 0:22 / /proc rw - proc proc rw\n"
                               "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

static void the_tightest_cpu_quota_on_the_way_up_counts(void **state)
{
    (void)state;
    char root[256];
    snprintf(root, sizeof root, "%s", temp_path("v2-cpu"));
    put(root, "proc/self/cgroup", "0::/outer/inner\n");
    put(root, "proc/self/mountinfo", V2_MOUNT);
    put(root, "sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
    assert_int_equal(frit_cgroup_cpus(root), 0);
    put(root, "sys/fs/cgroup/outer/cpu.max", "350000 100000\n");
    assert_int_equal(frit_cgroup_cpus(root), 4);
    put(root, "sys/fs/cgroup/outer/inner/cpu.max", "50000 100000\n");
    assert_int_equal(frit_cgroup_cpus(root), 1);
    put(root, "sys/fs/cgroup/outer/inner/cpu.max", "200000 100000\n");
    assert_int_equal(frit_cgroup_cpus(root), 2);
    put(root, "sys/fs/cgroup/cpu.max", "100001 100000\n");   // a container's own top level has one
    assert_int_equal(frit_cgroup_cpus(root), 2);
    put(root, "sys/fs/cpu.max", "1000 100000\n");   // outside the mount
    assert_int_equal(frit_cgroup_cpus(root), 2);
}

static frit_cores cores_among(const char *root, int n_cpus, int step)
{
    int cpus[64];
    for (int i = 0; i < n_cpus; i++) cpus[i] = i * step;
    return frit_cores_of(root, cpus, n_cpus);
}

static void threads_of_one_core_and_slow_cores_are_told_apart(void **state)
{
    (void)state;
    char root[256], name[128], text[64];
    snprintf(root, sizeof root, "%s", temp_path("cores"));
    assert_int_equal(cores_among(root, 6, 1).n, 6);   // nothing is known
    assert_int_equal(cores_among(root, 6, 1).n_fast, 6);
    // Four fast cores of two threads each, i and i + 4; four slow ones of one.
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%d/topology/core_cpus_list", i);
        snprintf(text, sizeof text, "%d,%d\n", i % 4, i % 4 + 4);
        put(root, name, text);
    }
    for (int i = 8; i < 12; i++) {   // an older kernel's name
        snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i);
        snprintf(text, sizeof text, "%d\n", i);
        put(root, name, text);
    }
    assert_int_equal(cores_among(root, 12, 1).n, 8);
    assert_int_equal(cores_among(root, 12, 1).n_fast, 8);
    put(root, "sys/devices/cpu_atom/cpus", "8-9,10-11\n");
    assert_int_equal(cores_among(root, 12, 1).n, 8);
    assert_int_equal(cores_among(root, 12, 1).n_fast, 4);
    assert_int_equal(cores_among(root, 6, 2).n, 4);   // an affinity mask of 0 2 4 6 8 10
    assert_int_equal(cores_among(root, 6, 2).n_fast, 2);
    assert_int_equal(frit_cores_of(root, (int[]){9, 11}, 2).n_fast, 2);   // only slow ones: all are as fast as any
    put(root, "sys/devices/cpu_atom/cpus", "\n");
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%d/cpu_capacity", i);
        put(root, name, i < 8 ? "1024\n" : "446\n");
    }
    assert_int_equal(cores_among(root, 12, 1).n_fast, 4);
    put(root, "sys/devices/system/cpu/cpu8/cpu_capacity", "900\n");   // a little slower is not slow
    assert_int_equal(cores_among(root, 12, 1).n_fast, 5);
}

static void version_1_names_its_controllers(void **state)
{
    (void)state;
    char root[256];
    snprintf(root, sizeof root, "%s", temp_path("v1"));
    put(root, "proc/self/cgroup",
        "9:memory:/docker/1f\n4:cpuset:/docker/1f\n3:cpu,cpuacct:/docker/1f/app\n0::/docker/1f\n");
    put(root, "proc/self/mountinfo",
        "31 23 0:27 /docker/1f /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n"
        "32 23 0:28 /docker/1f /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
        "33 23 0:29 /docker/1f /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    put(root, "sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", "-1\n");
    put(root, "sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_period_us", "100000\n");
    put(root, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000\n");
    put(root, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    put(root, "sys/fs/cgroup/cpuset/cpu.cfs_quota_us", "1\n");
    assert_int_equal(frit_cgroup_cpus(root), 2);

    uint64_t n_free;
    put(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_true(frit_cgroup_memory(root, &n_free) == UINT64_MAX && n_free == UINT64_MAX);
    put(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "1000000\n");
    put(root, "sys/fs/cgroup/memory/memory.usage_in_bytes", "700000\n");
    put(root, "sys/fs/cgroup/memory/memory.stat", "cache 5\ntotal_inactive_file 100000\ntotal_active_file 50000\n");
    assert_int_equal(frit_cgroup_memory(root, &n_free), 1000000);
    assert_int_equal(n_free, 450000);
}

static void memory_limits_of_version_2_count_page_cache_as_free(void **state)
{
    (void)state;
    char root[256];
    snprintf(root, sizeof root, "%s", temp_path("v2-memory"));
    uint64_t n_free;
    put(root, "proc/self/cgroup", "0::/a/b\n");
    put(root, "proc/self/mountinfo", V2_MOUNT);
    put(root, "sys/fs/cgroup/a/b/memory.max", "max\n");
    assert_true(frit_cgroup_memory(root, &n_free) == UINT64_MAX && n_free == UINT64_MAX);
    put(root, "sys/fs/cgroup/a/memory.max", "8000\n");
    put(root, "sys/fs/cgroup/a/memory.current", "7000\n");
    put(root, "sys/fs/cgroup/a/memory.stat", "anon 4000\nfile 3000\nactive_file 1000\ninactive_file 1500\n");
    assert_int_equal(frit_cgroup_memory(root, &n_free), 8000);
    assert_int_equal(n_free, 3500);
    put(root, "sys/fs/cgroup/a/b/memory.max", "5000\n");
    put(root, "sys/fs/cgroup/a/b/memory.current", "100\n");
    assert_int_equal(frit_cgroup_memory(root, &n_free), 5000);
    assert_int_equal(n_free, 3500);
}

static void broken_or_missing_group_files_mean_no_limit(void **state)
{
    (void)state;
    char root[256], long_line[9000];
    memset(long_line, 'x', sizeof long_line);
    long_line[sizeof long_line - 1] = 0;
    snprintf(root, sizeof root, "%s", temp_path("broken"));
    const char *groups[] = {"", "\n", "0", "0:", "0::", "0::/\n", "::::", "3:cpu:", "0::/../../x\n", long_line};
    const char *mounts[] = {"", "\n", " - ", "a b c", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2", V2_MOUNT, long_line};
    uint64_t n_free;
    assert_int_equal(frit_cgroup_cpus(root), 0);
    for (size_t i = 0; i < FRIT_COUNT(groups); i++)
        for (size_t k = 0; k < FRIT_COUNT(mounts); k++) {
            put(root, "proc/self/cgroup", groups[i]);
            put(root, "proc/self/mountinfo", mounts[k]);
            assert_int_equal(frit_cgroup_cpus(root), 0);
            assert_true(frit_cgroup_memory(root, &n_free) == UINT64_MAX && n_free == UINT64_MAX);
        }
}

#endif

// ------------------------------------------------------------------------------------------- memory nodes

static void put_node(const char *root, int number, const char *cpus)
{
    char name[64];
    snprintf(name, sizeof name, "sys/devices/system/node/node%d/cpulist", number);
    put(root, name, cpus);
}

static void parts_belong_to_nodes_in_proportion_to_their_cpus(void **state)
{
    (void)state;
    static frit_nodes nodes;
    static const int cpus[] = {0, 1, 2, 3, 4, 5, 6, 7};
    char root[256];
    snprintf(root, sizeof root, "%s", temp_path("nodes"));
    frit_nodes_of(&nodes, root, cpus, 8);   // nothing is known
    assert_int_equal(nodes.n, 1);
    assert_int_equal(frit_nodes_of_thread(&nodes, 5, 8), 0);
    put(root, "sys/devices/system/node/online", "0,2-3\n");
    put_node(root, 0, "0-1,4-5\n");
    put_node(root, 2, "2-3,6-7\n");
    put_node(root, 3, "\n");   // memory without CPUs
    frit_nodes_of(&nodes, root, cpus, 8);
    assert_int_equal(nodes.n, 2);
    assert_int_equal(nodes.numbers[0], 0);
    assert_int_equal(nodes.numbers[1], 2);
    static const int16_t by_node[] = {0, 1, 4, 5, 2, 3, 6, 7};
    assert_memory_equal(nodes.cpus, by_node, sizeof by_node);
    for (int parts = 2; parts <= 16; parts += 2)
        for (int part = 0; part < parts; part++)
            assert_int_equal(frit_nodes_of_thread(&nodes, part, parts), part >= parts / 2);
    assert_int_equal(frit_nodes_of_thread(&nodes, 0, 1), 1);   // in the middle: either would do
    // Six CPUs of the first, two of the second.
    put_node(root, 0, "0-5\n");
    put_node(root, 2, "6-7\n");
    frit_nodes_of(&nodes, root, cpus, 8);
    for (int part = 0; part < 4; part++) assert_int_equal(frit_nodes_of_thread(&nodes, part, 4), part == 3);
}

static void an_affinity_mask_on_one_node_needs_no_placing(void **state)
{
    (void)state;
    static frit_nodes nodes;
    char root[256];
    snprintf(root, sizeof root, "%s", temp_path("one-node"));
    put(root, "sys/devices/system/node/online", "0-1\n");
    put_node(root, 0, "0-3\n");
    put_node(root, 1, "4-7\n");
    frit_nodes_of(&nodes, root, (int[]){0, 1, 2}, 3);
    assert_int_equal(nodes.n, 1);
    frit_nodes_of(&nodes, root, (int[]){3, 4}, 2);
    assert_int_equal(nodes.n, 2);
    frit_nodes_of(&nodes, root, (int[]){3, 4, 9}, 3);   // a CPU belongs to no node, so nothing is placed
    assert_int_equal(nodes.n, 1);
}

// Made-up nodes with the machine's CPUs: the test checks where threads may run afterwards.
static void threads_stay_on_their_nodes(void **state)
{
    (void)state;
    static frit_nodes nodes;
    char root[256], list[32];
    int *cpus;
    const int n = frit_os_cpus(&cpus);
    if (n < 2) skip_because("there is only one CPU");
    snprintf(root, sizeof root, "%s", temp_path("stay"));
    put(root, "sys/devices/system/node/online", "0-1\n");
    snprintf(list, sizeof list, "%d\n", cpus[0]);
    put_node(root, 0, list);
    snprintf(list, sizeof list, "%d\n", cpus[1]);
    put_node(root, 1, list);
    frit_nodes_of(&nodes, root, cpus, 2);
    assert_int_equal(nodes.n, 2);
    cpu_set_t before, now;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_true(frit_nodes_stay(&nodes, 1));
    assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
    assert_true(CPU_COUNT(&now) == 1 && CPU_ISSET(cpus[1], &now));
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    free(cpus);
}

// The kernel accepts only existing nodes.
static void memory_is_spread_where_the_system_does(void **state)
{
    (void)state;
    static frit_nodes nodes = {.n = 1};
    static _Alignas(4096) char memory[16384];
    assert_true(frit_nodes_spread(&nodes, memory, sizeof memory));   // nothing to do
    nodes.n = 2;
    nodes.numbers[1] = 63;
    frit_nodes_spread(&nodes, memory, sizeof memory);   // refused or not, the memory stays what it was
    memset(memory, 1, sizeof memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_build_on_each_other),
        cmocka_unit_test(the_processor_has_a_clean_name),
        cmocka_unit_test(memory_is_within_what_the_machine_has),
        cmocka_unit_test(the_clock_goes_forward),
#if defined(__linux__)
        cmocka_unit_test(the_tightest_cpu_quota_on_the_way_up_counts),
        cmocka_unit_test(threads_of_one_core_and_slow_cores_are_told_apart),
        cmocka_unit_test(version_1_names_its_controllers),
        cmocka_unit_test(memory_limits_of_version_2_count_page_cache_as_free),
        cmocka_unit_test(broken_or_missing_group_files_mean_no_limit),
#endif
        cmocka_unit_test(parts_belong_to_nodes_in_proportion_to_their_cpus),
        cmocka_unit_test(an_affinity_mask_on_one_node_needs_no_placing),
        cmocka_unit_test(threads_stay_on_their_nodes),
        cmocka_unit_test(memory_is_spread_where_the_system_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
