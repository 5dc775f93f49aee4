// SPDX-License-Identifier: MIT
// Attention by tiles (ops/attend.h) for AVX-512: sixteen queries are the lanes of a vector.
#include "backend/cpu/x86/floats_avx512.h"
#include "backend/cpu/x86/vec/avx512.h"
#include "backend/cpu/x86/vec/math_avx512.h"

enum { ROWS = 8 };

FRIT_INLINE vec_f exp_f(vec_f a)   // of scores less their maximum
{
    return weight_16(a);
}

FRIT_INLINE vec_f tanh_f(vec_f a)
{
    return tanh_16(a);
}

FRIT_INLINE vec_f abs_f(vec_f a)
{
    return _mm512_abs_ps(a);
}

FRIT_INLINE vec_f relative(const int32_t *p, int32_t to)
{
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_loadu_si512(p), _mm512_set1_epi32(to)));
}

FRIT_INLINE bool any_larger(vec_f a, vec_f b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ) != 0;
}

FRIT_INLINE vec_f within(vec_f at, vec_f low, vec_f high, vec_f yes, vec_f no)
{
    const __mmask16 from_low = _mm512_cmp_ps_mask(at, low, _CMP_GE_OQ);
    return _mm512_mask_blend_ps(_mm512_mask_cmp_ps_mask(from_low, at, high, _CMP_LT_OQ), no, yes);
}

#include "backend/cpu/tmpl/attend_tile_tmpl.h"

void frit_install_avx512_attend_tile(frit_kernels *k)
{
    k->attend_tile = attend_tile;
    k->attend_fold = fold;
    k->lanes = FLOATS;
}
