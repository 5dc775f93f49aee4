// SPDX-License-Identifier: MIT
// base/machine/cpu.h: the processor's features, and the machine's memory.
#pragma once
#include "base/status.h"

// One bit for each row of cpu.def: FRIT_CPU_AVX2. The operating system's support (XCR0, HWCAP) is included.
enum {
#define FEATURE(NAME, flags) FRIT_CPU_BIT_##NAME,
#include "base/machine/cpu.def"
#undef FEATURE
};
enum {
#define FEATURE(NAME, flags) FRIT_CPU_##NAME = 1 << FRIT_CPU_BIT_##NAME,
#include "base/machine/cpu.def"
#undef FEATURE
};

unsigned frit_cpu_features(void);
const char *frit_cpu_name(void);        // "AMD EPYC 9B45", or "unknown"
uint64_t frit_memory_total(void);       // bytes, bounded by the cgroup's limit
uint64_t frit_memory_available(void);   // bytes that can be used without swapping
// The size of one cache of the last level; 0: unknown.
uint64_t frit_cache_bytes(void);
