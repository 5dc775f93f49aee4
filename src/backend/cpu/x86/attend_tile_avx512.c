// SPDX-License-Identifier: MIT
// Attention by tiles (ops/attend.h) for AVX-512: sixteen queries are the lanes of a vector.
#include "backend/cpu/x86/vec/avx512.h"
#include "backend/cpu/x86/vec/math_avx512.h"

typedef __m512 vec;

enum { LANES = 16, ROWS = 8 };

FRIT_INLINE vec load(const float *p)
{
    return _mm512_loadu_ps(p);
}

FRIT_INLINE void store(float *p, vec v)
{
    _mm512_storeu_ps(p, v);
}

FRIT_INLINE vec same(float x)
{
    return _mm512_set1_ps(x);
}

FRIT_INLINE vec relative(const int32_t *p, int32_t to)
{
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_loadu_si512(p), _mm512_set1_epi32(to)));
}

FRIT_INLINE vec add_vec(vec a, vec b)
{
    return _mm512_add_ps(a, b);
}

FRIT_INLINE vec subtract(vec a, vec b)
{
    return _mm512_sub_ps(a, b);
}

FRIT_INLINE vec multiply_vec(vec a, vec b)
{
    return _mm512_mul_ps(a, b);
}

FRIT_INLINE vec divide(vec a, vec b)
{
    return _mm512_div_ps(a, b);
}

FRIT_INLINE vec multiply_add(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}

FRIT_INLINE vec larger(vec a, vec b)
{
    return _mm512_max_ps(a, b);
}

FRIT_INLINE bool any_larger(vec a, vec b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ) != 0;
}

FRIT_INLINE vec magnitude(vec a)
{
    return _mm512_abs_ps(a);
}

FRIT_INLINE vec exp_vec(vec a)
{
    return weight_16(a);
}

FRIT_INLINE vec tanh_vec(vec a)
{
    return tanh_16(a);
}

// `yes` in lanes with low <= at < high, `no` in the others.
FRIT_INLINE vec within(vec at, vec low, vec high, vec yes, vec no)
{
    const __mmask16 from_low = _mm512_cmp_ps_mask(at, low, _CMP_GE_OQ);
    return _mm512_mask_blend_ps(_mm512_mask_cmp_ps_mask(from_low, at, high, _CMP_LT_OQ), no, yes);
}

#include "backend/cpu/tmpl/attend_tile_tmpl.h"

void frit_install_avx512_attend_tile(frit_kernels *k)
{
    k->attend_tile = attend_tile;
    k->attend_fold = fold;
    k->lanes = LANES;
}
