// SPDX-License-Identifier: MIT
// Chooses the searches for this processor. A new instruction set needs a file with its suffix for each search, and a
// line here.
// line here.
#include "base/machine/cpu.h"
#include "quant/search/grid_search.h"
#include "quant/search/level_search.h"
#include "quant/search/offset_search.h"

#if defined(__x86_64__) || defined(_M_X64)
#define RUN(search, ...) (frit_cpu_features() & FRIT_CPU_AVX2 ? search##_avx2(__VA_ARGS__) : search##_any(__VA_ARGS__))
#else
#define RUN(search, ...) search##_any(__VA_ARGS__)
#endif

void frit_fit_offsets(const frit_offset_groups *groups)
{
    RUN(frit_fit_offsets, groups);
}

float frit_fit_levels(const float x[32], const float weights[32])
{
    return RUN(frit_fit_levels, x, weights);
}

void frit_nearest_levels(const float x[32], float inverse, uint8_t codes[32])
{
    RUN(frit_nearest_levels, x, inverse, codes);
}

int frit_grid_best(const frit_grid_near *near, int size, const frit_grid_target *target)
{
    return RUN(frit_grid_best, near, size, target);
}
