// SPDX-License-Identifier: MIT
// support/growth.h: does something take time in proportion to its input? No clock is compared with a constant: a slow
// machine, an emulator or a sanitizer changes both times alike.
#pragma once
#include <stddef.h>

// How many times as long run(ctx, 8 n) takes as run(ctx, n), of this thread's time: 8 in linear time, 64 in quadratic
// time. Tries again, with more runs, while it is above GROWTH_LIMIT: other programs may disturb one of them.
enum { GROWTH_LIMIT = 16 };
double growth_of(void (*run)(void *ctx, size_t n), void *ctx, size_t n);
