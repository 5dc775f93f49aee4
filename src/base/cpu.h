// SPDX-License-Identifier: MIT
// base/cpu.h: what this processor can do.
#pragma once
#include "base/status.h"

// One bit per feature that some kernel file needs. The operating system's support (XCR0, HWCAP) is included.
// clang-format off
enum {
    FRIT_CPU_AVX2 = 1 << 0,          // with FMA and F16C
    FRIT_CPU_AVX_VNNI = 1 << 1,
    FRIT_CPU_AVX512 = 1 << 2,        // F, BW, DQ, VL
    FRIT_CPU_AVX512_VNNI = 1 << 3,
    FRIT_CPU_AVX512_VBMI = 1 << 4,
    FRIT_CPU_AVX512_BF16 = 1 << 5,
    FRIT_CPU_AMX_INT8 = 1 << 6,
    FRIT_CPU_AMX_BF16 = 1 << 7,
    FRIT_CPU_NEON = 1 << 8,
    FRIT_CPU_DOTPROD = 1 << 9,
    FRIT_CPU_I8MM = 1 << 10,
    FRIT_CPU_BF16 = 1 << 11,         // ARM
};
// clang-format on

unsigned frit_cpu_features(void);
const char *frit_cpu_name(void);        // "AMD EPYC 9B45", or "unknown"
uint64_t frit_memory_total(void);       // bytes, bounded by the cgroup's limit
uint64_t frit_memory_available(void);   // bytes that can be used without swapping
// Of one of the largest caches; 0: not known.
uint64_t frit_cache_bytes(void);
