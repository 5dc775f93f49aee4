// SPDX-License-Identifier: MIT
// support/growth.h: tests that a function takes time in proportion to its input. No time is compared with a constant,
// because a slow machine, an emulator or a sanitizer changes both times in the same way.
#pragma once
#include <stddef.h>

// Returns the ratio of the times of run(ctx, 8 n) and run(ctx, n) on this thread: 8 in linear time, 64 in quadratic
// time. Tries again, with more runs, while the ratio is above GROWTH_LIMIT, because other programs may disturb a run.
enum { GROWTH_LIMIT = 16 };
double growth_of(void (*run)(void *ctx, size_t n), void *ctx, size_t n);
