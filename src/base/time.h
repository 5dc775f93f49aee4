// SPDX-License-Identifier: MIT
// base/time.h: a clock that only goes forward.
#pragma once
#include <stdint.h>

uint64_t frit_time_ns(void);
