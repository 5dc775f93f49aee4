// SPDX-License-Identifier: MIT
// support/faults.h: what a test makes fail in a process that has preload/faults.c preloaded. The file that
// FRIT_TEST_FAULTS names is mapped by both.
#pragma once
#include <stdatomic.h>

typedef struct faults {
    _Atomic long n_allocations;     // that the process asked for
    _Atomic long fail_allocation;   // from 1 on: so many more, and one fails; 0: none does
    _Atomic long fail_each;         // one of so many allocations fails; 0: none does
    _Atomic long of_http;           // 1: only those of libmicrohttpd count and fail
    _Atomic long clock_offset;      // seconds that the wall clock goes wrong
    _Atomic long fail_writes;       // 1: writes to regular files end with EIO
    _Atomic long fail_reads;        // 1: so do reads of models
    _Atomic long stall_opens;       // 1: opening a model takes until it is 0 again
    _Atomic long copy_maps;         // 1: models are mapped from copies in FILE.pages, which can lose their pages
    _Atomic long n_stalled;         // calls that waited
    _Atomic long n_failed;          // calls that were made to fail
} faults;
