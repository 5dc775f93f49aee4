// SPDX-License-Identifier: MIT
// support/faults.h: faults that a test causes in a process with preload/faults.c preloaded. Both processes map the file
// that FRIT_TEST_FAULTS names.
#pragma once
#include <stdatomic.h>

typedef struct faults {
    _Atomic long n_allocations;     // allocations of the process so far
    _Atomic long fail_allocation;   // number of allocations until one fails; 0: none does
    _Atomic long fail_each;         // every n-th allocation fails; 0: none does
    _Atomic long of_http;           // 1: only allocations of libmicrohttpd count and fail
    _Atomic long clock_offset;      // seconds added to the wall clock
    _Atomic long fail_writes;       // 1: writes to regular files end with EIO
    _Atomic long fail_reads;        // 1: reads of models end with EIO
    _Atomic long stall_opens;       // 1: opening a model waits until this is 0
    _Atomic long copy_maps;         // 1: models are mapped from copies in FILE.pages, which can lose their pages
    _Atomic long n_stalled;         // calls that waited so far
    _Atomic long n_failed;          // calls that failed so far
} faults;
