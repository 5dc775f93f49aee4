// SPDX-License-Identifier: MIT
// base/time.h: a clock that only goes forward, and the one on the wall.
#pragma once
#include <stdint.h>
#include <time.h>

uint64_t frit_time_ns(void);
struct tm frit_time_local(void);   // now, in the time zone of this machine
