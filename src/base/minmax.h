// SPDX-License-Identifier: MIT
// base/minmax.h: the smaller and the larger of two numbers.
#pragma once
#include <stdint.h>

static inline int frit_min_int(int a, int b)
{
    return a < b ? a : b;
}

static inline int frit_max_int(int a, int b)
{
    return a > b ? a : b;
}

static inline int64_t frit_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t frit_max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
