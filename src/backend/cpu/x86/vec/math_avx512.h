// SPDX-License-Identifier: MIT
// backend/cpu/x86/vec/math_avx512.h: exponential and hyperbolic tangent of sixteen floats, as in tmpl/math_tmpl.h.
#pragma once
#include "backend/cpu/kernels.h"

#include <immintrin.h>

FRIT_INLINE __m512 constant_16(float x)
{
    return _mm512_set1_ps(x);
}

FRIT_INLINE __m512 exp_16(__m512 x)
{
    x = _mm512_min_ps(constant_16(88.3f), _mm512_max_ps(constant_16(FRIT_LEAST_WEIGHT), x));
    const __m512 n =
        _mm512_roundscale_ps(_mm512_mul_ps(x, constant_16(1.44269504f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 r = _mm512_fnmadd_ps(n, constant_16(0.693145752f), x);
    r = _mm512_fnmadd_ps(n, constant_16(1.42860677e-6f), r);
    __m512 p = constant_16(1.0f / 5040);
    p = _mm512_fmadd_ps(p, r, constant_16(1.0f / 720));
    p = _mm512_fmadd_ps(p, r, constant_16(1.0f / 120));
    p = _mm512_fmadd_ps(p, r, constant_16(1.0f / 24));
    p = _mm512_fmadd_ps(p, r, constant_16(1.0f / 6));
    p = _mm512_fmadd_ps(p, r, constant_16(0.5f));
    p = _mm512_fmadd_ps(p, r, constant_16(1));
    p = _mm512_fmadd_ps(p, r, constant_16(1));
    return _mm512_scalef_ps(p, n);
}

// Weights of attention, exp(x) for x <= 0, in 12 instructions instead of 15: 2^t = 2^n p(t - n) with n = floor(t). p
// has an error of 2e-9 and is exact at 0. t is rounded, so the relative error of a weight is |x| / 2^24, at most 2^-25
// of the largest weight. NaN stays NaN.
FRIT_INLINE __m512 weight_16(__m512 x)
{
    const __m512 t = _mm512_max_ps(constant_16(-100), _mm512_mul_ps(x, constant_16(1.44269504f)));
    const __m512 r = _mm512_sub_ps(t, _mm512_roundscale_ps(t, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));
    __m512 p = constant_16(0.000216129149f);
    p = _mm512_fmadd_ps(p, r, constant_16(0.0012467847f));
    p = _mm512_fmadd_ps(p, r, constant_16(0.00967545155f));
    p = _mm512_fmadd_ps(p, r, constant_16(0.0554852821f));
    p = _mm512_fmadd_ps(p, r, constant_16(0.240229309f));
    p = _mm512_fmadd_ps(p, r, constant_16(0.693147063f));
    p = _mm512_fmadd_ps(p, r, constant_16(1));
    return _mm512_scalef_ps(p, t);   // by 2^floor(t)
}

FRIT_INLINE __m512 tanh_16(__m512 x)
{
    const __m512 e = exp_16(_mm512_add_ps(x, x));
    const __m512 far = _mm512_sub_ps(constant_16(1), _mm512_div_ps(constant_16(2), _mm512_add_ps(e, constant_16(1))));
    const __m512 x2 = _mm512_mul_ps(x, x);
    __m512 p = constant_16(-1382.0f / 155925);
    p = _mm512_fmadd_ps(p, x2, constant_16(62.0f / 2835));
    p = _mm512_fmadd_ps(p, x2, constant_16(-17.0f / 315));
    p = _mm512_fmadd_ps(p, x2, constant_16(2.0f / 15));
    p = _mm512_fmadd_ps(p, x2, constant_16(-1.0f / 3));
    const __m512 near = _mm512_fmadd_ps(_mm512_mul_ps(p, x2), x, x);
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x2, constant_16(0.09f), _CMP_LT_OQ), far, near);
}
