// SPDX-License-Identifier: MIT
// base/cores.h: what the CPUs of a Linux machine are: threads of one core share its arithmetic, and hybrid processors
// have slow cores beside fast ones.
//
// `root` is prepended to every path that is read: "" on a real machine, a folder in tests.
#pragma once

typedef struct frit_cores {
    int n;        // cores, each counted once
    int n_fast;   // of these, the fast ones; all, where they are alike
} frit_cores;

// Of the CPUs in the list, ascending. A CPU of which nothing is known is a core.
frit_cores frit_cores_of(const char *root, const int *cpus, int n_cpus);
