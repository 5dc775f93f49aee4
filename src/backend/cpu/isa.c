// SPDX-License-Identifier: MIT
// The instruction sets of this build, slowest first. A new one is a row here and files with its suffix.
#include "backend/cpu/kernels.h"
#include "base/cpu.h"

static const frit_isa rows[] = {
    {"scalar", 0, 0, frit_install_scalar},
#if defined(__x86_64__) || defined(_M_X64)
    {"avx2", FRIT_CPU_AVX2, 0, frit_install_avx2},
    {"avxvnni", FRIT_CPU_AVX2 | FRIT_CPU_AVX_VNNI, 0, frit_install_avxvnni},
    {"avx512", FRIT_CPU_AVX2 | FRIT_CPU_AVX512, 0, frit_install_avx512},
    {"avx512vnni", FRIT_CPU_AVX512 | FRIT_CPU_AVX512_VNNI, 0, frit_install_avx512vnni},
    {"amx", FRIT_CPU_AVX512 | FRIT_CPU_AVX512_VNNI | FRIT_CPU_AVX512_BF16 | FRIT_CPU_AMX_BF16, FRIT_WIDE_ROWS,
     frit_install_amx},
#elif defined(__aarch64__) || defined(_M_ARM64)
    {"neon", FRIT_CPU_NEON, 0, frit_install_neon},
    {"dotprod", FRIT_CPU_NEON | FRIT_CPU_DOTPROD, 0, frit_install_dotprod},
    {"i8mm", FRIT_CPU_NEON | FRIT_CPU_DOTPROD | FRIT_CPU_I8MM, 0, frit_install_i8mm},
#endif
};

const frit_isa *frit_isa_get(size_t i)
{
    return i < FRIT_COUNT(rows) ? &rows[i] : NULL;
}

bool frit_isa_is_usable(const frit_isa *isa)
{
    return (isa->features & ~frit_cpu_features()) == 0;
}

const char *frit_isa_install(frit_kernels *kernels, const frit_isa *cap, int64_t n_rows)
{
    const char *name = NULL;
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        if (frit_isa_is_usable(&rows[i]) && n_rows >= rows[i].min_rows) {
            rows[i].install(kernels);
            name = rows[i].name;
        }
        if (&rows[i] == cap) break;
    }
    return name;
}
