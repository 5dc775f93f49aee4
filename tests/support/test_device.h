// SPDX-License-Identifier: MIT
// support/test_device.h: a device beside the CPU that is as unlike it as can be, so that engines are tested on two
// devices where there is only one.
//
//     its memory     the host does not see: `map` gives NULL. Fresh memory is not zero, and results of the run before
//                    are overwritten before the next one
//     its queue      a thread of its own works through it, late: a result that is read before its ticket is done is
//                    missing
//     what it runs   what its kind says; everything else the CPU does
//     what it gets   must be its own: places of other devices, and bytes outside of its memory, are errors
//
// It computes by the plain-C reference, from plans of its own in which every node stands by itself.
//
//     test_device_use(TEST_DEVICE_ALONE);    // engines that are made from now on have it before the CPU
//
// Every test program does so that finds the name of a kind in the environment, as FRIT_TEST_DEVICE: that is how CTest
// runs engine/session@alone.
#pragma once
#include "backend/backend.h"

typedef enum test_device_kind {
    TEST_DEVICE_NONE,
    TEST_DEVICE_ALONE,    // runs all that it can
    TEST_DEVICE_LAYERS,   // every second layer
    TEST_DEVICE_OPS,      // every second op of the table
    TEST_DEVICE_KINDS
} test_device_kind;

typedef struct test_device_traits {
    bool is_absent;               // opening finds no device
    uint64_t free_bytes;          // 0: no memory of its own, as engines see it
    int32_t least_prefill;        // least_rows[FRIT_ROWS_PREFILL] of frit_device_info
    int32_t weight_times;         // its weights take so many times the bytes of others; 0: as many
    bool ignores_deterministic;   // also where that must not be
} test_device_traits;

extern const char *const test_device_names[TEST_DEVICE_KINDS];

void test_device_use(test_device_kind kind);
void test_device_set_traits(test_device_traits traits);             // of devices that are opened from now on
void test_device_set_free(frit_device *device, uint64_t n_bytes);   // so many bytes are left from now on
bool test_device_use_named(const char *name);                       // false: there is no such kind
size_t test_device_n_opened(void);                                  // since the program began
size_t test_device_n_runs(void);                                    // executables that have run
size_t test_device_n_matrices(void);                                // of adapters, that devices were given
extern const frit_backend test_device_backend;
