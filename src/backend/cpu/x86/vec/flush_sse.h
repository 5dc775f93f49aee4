// SPDX-License-Identifier: MIT
// backend/cpu/x86/vec/flush_sse.h: numbers below 2^-126 as zeros, within a kernel. A state that fades away passes
// through them, and this processor takes 150 cycles for each.
//
//     const uint64_t before = flush_begin();
//     ...
//     flush_end(before);
#pragma once
#include <stdint.h>
#include <xmmintrin.h>

static inline uint64_t flush_begin(void)
{
    enum { TO_ZERO = 1 << 15, AS_ZERO = 1 << 6 };   // of results, of operands
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | TO_ZERO | AS_ZERO);
    return before;
}

static inline void flush_end(uint64_t before)
{
    _mm_setcsr((unsigned)before);
}
