// SPDX-License-Identifier: MIT
// The instruction sets of this build: the rows of isa.def for its processors.
#include "backend/cpu/kernels.h"
#include "base/machine/cpu.h"

#include <string.h>

#define ROW(name, kinds, features) {#name, features, kinds, frit_install_##name},
#define SKIP(name, kinds, features)

static const frit_isa rows[] = {
#define ISA_ANY ROW
#if defined(__x86_64__) || defined(_M_X64)
#define ISA_X86 ROW
#else
#define ISA_X86 SKIP
#endif
#if defined(__aarch64__) || defined(_M_ARM64)
#define ISA_ARM ROW
#else
#define ISA_ARM SKIP
#endif
#if defined(__wasm__)
#define ISA_WASM ROW
#else
#define ISA_WASM SKIP
#endif
#if defined(FRIT_RELAXED_SIMD)
#define ISA_RELAXED ROW
#else
#define ISA_RELAXED SKIP
#endif
#include "backend/cpu/isa.def"
};

const frit_isa *frit_isa_get(size_t i)
{
    return i < FRIT_COUNT(rows) ? &rows[i] : NULL;
}

bool frit_isa_is_usable(const frit_isa *isa)
{
    return (isa->features & ~frit_cpu_features()) == 0;
}

// True if this processor reads weights faster in the order of memory (processors.def).
static bool reads_in_order(void)
{
#define PROCESSOR(name, in_order) {name, in_order},
    static const struct {
        const char *name;
        bool in_order;
    } processors[] = {
#include "backend/cpu/processors.def"
    };
    for (size_t i = 0; i < FRIT_COUNT(processors); i++)
        if (strncmp(frit_cpu_name(), processors[i].name, strlen(processors[i].name)) == 0)
            return processors[i].in_order;
    return false;
}

const char *frit_isa_install(frit_kernels *kernels, const frit_isa *cap, unsigned kinds)
{
    const char *name = NULL;
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        if (frit_isa_is_usable(&rows[i]) && (rows[i].kinds & ~kinds) == 0) {
            rows[i].install(kernels);
            name = rows[i].name;
        }
        if (&rows[i] == cap) break;
    }
    kernels->in_order = reads_in_order();
    return name;
}
