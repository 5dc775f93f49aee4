// SPDX-License-Identifier: MIT
// support/faults.h: what a test makes fail in a process that has preload/faults.c preloaded. The file that
// FRIT_TEST_FAULTS names is mapped by both.
#pragma once
#include <stdatomic.h>

typedef struct faults {
    _Atomic long n_allocations;     // that the process asked for
    _Atomic long fail_allocation;   // from 1 on: so many more, and one fails; 0: none does
    _Atomic long clock_offset;      // seconds that the wall clock goes wrong
    _Atomic long fail_writes;       // 1: writes to regular files end with EIO
    _Atomic long n_failed;          // calls that were made to fail
} faults;
