// SPDX-License-Identifier: MIT
// base/machine/cgroup.h: the limits of this process's Linux control groups, versions 1 and 2 or both.
//
// A group is bounded by its own limit and the limits of all groups above it, so each function walks up the tree.
// `root` is prepended to every path that is read: "" on a real machine, a folder in tests.
#pragma once
#include <stdint.h>

// The CPU quota in cores, rounded up; 0: none.
int frit_cgroup_cpus(const char *root);
// The memory limit in bytes; UINT64_MAX: none. *n_free: the free memory of the tightest limit; page cache counts as
// free.
uint64_t frit_cgroup_memory(const char *root, uint64_t *n_free);
