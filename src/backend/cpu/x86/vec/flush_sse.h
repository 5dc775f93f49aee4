// SPDX-License-Identifier: MIT
// backend/cpu/x86/vec/flush_sse.h: flushes subnormal numbers to zero within a kernel. A decaying state becomes
// subnormal, and an operation on a subnormal number takes about 150 cycles.
//
//     const uint64_t before = flush_begin();
//     ...
//     flush_end(before);
#pragma once
#include <stdint.h>
#include <xmmintrin.h>

static inline uint64_t flush_begin(void)
{
    enum { TO_ZERO = 1 << 15, AS_ZERO = 1 << 6 };   // flushes results, treats operands as zero
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | TO_ZERO | AS_ZERO);
    return before;
}

static inline void flush_end(uint64_t before)
{
    _mm_setcsr((unsigned)before);
}
