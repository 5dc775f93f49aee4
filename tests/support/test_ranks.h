// SPDX-License-Identifier: MIT
// support/test_ranks.h: groups of devices in place of the first device, so that tests of engines run on several ranks.
//
//     test_ranks_use(&frit_backend_cpu, 2, false);    // engines made after this call have a group of two CPU members
//
// FRIT_TEST_DEVICE names them too: "ranks2" is two test devices (test_device.h), which run late and have memory of
// their own; "cpus2" is two members of the CPU.
#pragma once
#include "backend/backend.h"

// 0 ranks: no group. With is_exact, sums do not depend on the number of ranks.
void test_ranks_use(const frit_backend *kind, int32_t n, bool is_exact);
bool test_ranks_use_named(const char *name);   // false if the name is another one
