// SPDX-License-Identifier: MIT
// base/time.h: monotonic clocks, and local time.
#pragma once
#include <stdint.h>
#include <time.h>

uint64_t frit_time_ns(void);
uint64_t frit_time_thread_ns(void);   // processor time of the calling thread
struct tm frit_time_local(void);      // now, in the time zone of this machine
