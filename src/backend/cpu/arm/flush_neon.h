// SPDX-License-Identifier: MIT
// backend/cpu/arm/flush_neon.h: flushes subnormal numbers to zero within a kernel, as x86/vec/flush_sse.h does.
#pragma once
#include <stdint.h>

static inline uint64_t flush_begin(void)
{
    enum { FZ = 1 << 24 };
    uint64_t before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before)::"memory");
    __asm__ volatile("msr fpcr, %0" ::"r"(before | FZ) : "memory");
    return before;
}

static inline void flush_end(uint64_t before)
{
    __asm__ volatile("msr fpcr, %0" ::"r"(before) : "memory");
}
