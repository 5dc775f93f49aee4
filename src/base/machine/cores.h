// SPDX-License-Identifier: MIT
// base/machine/cores.h: the cores of a Linux machine. Threads of one core share its arithmetic units; hybrid processors
// have slow and fast cores.
//
// `root` is prepended to every path that is read: "" on a real machine, a folder in tests.
#pragma once

typedef struct frit_cores {
    int n;        // cores, each counted once
    int n_fast;   // fast cores; all, if all are equal
} frit_cores;

// The cores of the listed CPUs (ascending). A CPU without information counts as a core.
frit_cores frit_cores_of(const char *root, const int *cpus, int n_cpus);
