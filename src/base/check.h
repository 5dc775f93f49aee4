// SPDX-License-Identifier: MIT
// base/check.h: checked arithmetic on sizes from input. Each function returns false if the result does not fit.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool frit_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    if (a != 0 && b > UINT64_MAX / a) return false;
    *out = a * b;
    return true;
}

static inline bool frit_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    if (b > UINT64_MAX - a) return false;
    *out = a + b;
    return true;
}

// Rounds up to a multiple of `alignment`, a power of two.
static inline bool frit_align_u64(uint64_t a, uint64_t alignment, uint64_t *out)
{
    if (!frit_add_u64(a, alignment - 1, out)) return false;
    *out &= ~(alignment - 1);
    return true;
}

static inline bool frit_is_power_of_two(uint64_t a)
{
    return a != 0 && (a & (a - 1)) == 0;
}
