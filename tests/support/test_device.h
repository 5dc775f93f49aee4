// SPDX-License-Identifier: MIT
// support/test_device.h: a device that differs from the CPU as much as possible, so that engines are tested on two
// devices on a machine with one.
//
//     memory     the host does not see it: `map` returns NULL. New memory is not zero, and results of a run are
//                overwritten before the next one
//     queue      a thread of its own processes it, late: a result that is read before its ticket is done is missing
//     ops        it runs the ops of its kind; the CPU runs the others
//     inputs     must be its own: page numbers of other devices, and bytes outside its memory, are errors
//
// The device computes by the plain-C reference, from plans of its own without fusion.
//
//     test_device_use(TEST_DEVICE_ALONE);    // engines made after this call have it before the CPU
//
// A test program uses the device whose kind the environment names in FRIT_TEST_DEVICE: CTest runs engine/session@alone
// in this way.
#pragma once
#include "backend/backend.h"

typedef enum test_device_kind {
    TEST_DEVICE_NONE,
    TEST_DEVICE_ALONE,    // runs every op that it can
    TEST_DEVICE_LAYERS,   // every second layer
    TEST_DEVICE_OPS,      // every second op of the table
    TEST_DEVICE_KINDS
} test_device_kind;

typedef struct test_device_traits {
    bool is_absent;               // opening finds no device
    uint64_t free_bytes;          // 0: reported to engines as having no memory of its own
    int32_t least_prefill;        // least_rows[FRIT_ROWS_PREFILL] of frit_device_info
    int32_t weight_times;         // factor of its weights' size; 0: 1
    bool ignores_deterministic;   // also in deterministic engines, which is a fault
} test_device_traits;

extern const char *const test_device_names[TEST_DEVICE_KINDS];

void test_device_use(test_device_kind kind);
void test_device_set_traits(test_device_traits traits);             // for devices that are opened later
void test_device_set_free(frit_device *device, uint64_t n_bytes);   // sets the free bytes
bool test_device_use_named(const char *name);                       // false if there is no such kind
void test_device_lose(int n);            // the n-th run from now on fails, of any device; 0: none does
void test_device_stall(int n, int ms);   // the n-th run from now on begins so much later
size_t test_device_n_opened(void);       // since the start of the program
size_t test_device_n_late(void);         // number of late picks that have run
size_t test_device_n_runs(void);         // number of executables that have run
size_t test_device_n_matrices(void);     // number of adapter matrices that devices were
                                         // given
extern const frit_backend test_device_backend;
