// SPDX-License-Identifier: MIT
// Attention by tiles (ops/attend.h) for AVX2: eight queries are the lanes of a vector.
#include "backend/cpu/x86/vec/math_avx2.h"

enum { ROWS = 4 };

FRIT_INLINE vec_f relative(const int32_t *p, int32_t to)
{
    return _mm256_cvtepi32_ps(
        _mm256_sub_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p), _mm256_set1_epi32(to)));
}

FRIT_INLINE bool any_larger(vec_f a, vec_f b)
{
    return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)) != 0;
}

FRIT_INLINE vec_f within(vec_f at, vec_f low, vec_f high, vec_f yes, vec_f no)
{
    const vec_f mask = _mm256_and_ps(_mm256_cmp_ps(at, low, _CMP_GE_OQ), _mm256_cmp_ps(at, high, _CMP_LT_OQ));
    return _mm256_blendv_ps(no, yes, mask);
}

#include "backend/cpu/tmpl/attend_tile_tmpl.h"

void frit_install_avx2_attend_tile(frit_kernels *k)
{
    k->attend_tile = attend_tile;
    k->attend_fold = fold;
    k->lanes = FLOATS;
}
