// SPDX-License-Identifier: MIT
// backend/cpu/x86/math_avx2.h: exponential, hyperbolic tangent and activation functions of eight numbers, by
// polynomials. Errors are below 3e-7 relative to the largest term; NaN stays NaN. exp saturates at both ends, below at
// FRIT_LEAST_WEIGHT.
#pragma once
#include "backend/cpu/x86/avx2.h"

FRIT_INLINE __m256 constant(float x)
{
    return _mm256_set1_ps(x);
}

// exp(x) = 2^n exp(r) with n = round(x / ln 2) and |r| <= ln 2 / 2, where eight terms of the series are enough.
FRIT_INLINE __m256 exp_8(__m256 x)
{
    x = _mm256_min_ps(constant(88.3f),
                      _mm256_max_ps(constant(FRIT_LEAST_WEIGHT), x));   // in this order NaN passes through
    const __m256 n =
        _mm256_round_ps(_mm256_mul_ps(x, constant(1.44269504f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fnmadd_ps(n, constant(0.693145752f), x);   // ln 2 in two parts, the first with trailing zeros
    r = _mm256_fnmadd_ps(n, constant(1.42860677e-6f), r);
    __m256 p = constant(1.0f / 5040);
    p = _mm256_fmadd_ps(p, r, constant(1.0f / 720));
    p = _mm256_fmadd_ps(p, r, constant(1.0f / 120));
    p = _mm256_fmadd_ps(p, r, constant(1.0f / 24));
    p = _mm256_fmadd_ps(p, r, constant(1.0f / 6));
    p = _mm256_fmadd_ps(p, r, constant(0.5f));
    p = _mm256_fmadd_ps(p, r, constant(1));
    p = _mm256_fmadd_ps(p, r, constant(1));
    const __m256i power = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
    return _mm256_mul_ps(p, _mm256_castsi256_ps(power));
}

// 1 - 2 / (exp(2x) + 1), which loses digits around zero: there the series, up to x^11.
FRIT_INLINE __m256 tanh_8(__m256 x)
{
    const __m256 e = exp_8(_mm256_add_ps(x, x));
    const __m256 far = _mm256_sub_ps(constant(1), _mm256_div_ps(constant(2), _mm256_add_ps(e, constant(1))));
    const __m256 x2 = _mm256_mul_ps(x, x);
    __m256 p = constant(-1382.0f / 155925);
    p = _mm256_fmadd_ps(p, x2, constant(62.0f / 2835));
    p = _mm256_fmadd_ps(p, x2, constant(-17.0f / 315));
    p = _mm256_fmadd_ps(p, x2, constant(2.0f / 15));
    p = _mm256_fmadd_ps(p, x2, constant(-1.0f / 3));
    const __m256 near = _mm256_fmadd_ps(_mm256_mul_ps(p, x2), x, x);
    return _mm256_blendv_ps(far, near, _mm256_cmp_ps(x2, constant(0.09f), _CMP_LT_OQ));
}

FRIT_INLINE __m256 sigmoid_8(__m256 x)
{
    return _mm256_div_ps(constant(1), _mm256_add_ps(constant(1), exp_8(_mm256_sub_ps(_mm256_setzero_ps(), x))));
}

FRIT_INLINE __m256 silu_8(__m256 x)
{
    return _mm256_mul_ps(x, sigmoid_8(x));
}

FRIT_INLINE __m256 gelu_quick_8(__m256 x)
{
    return _mm256_mul_ps(x, sigmoid_8(_mm256_mul_ps(x, constant(1.702f))));
}

// (1 + tanh u) / 2 is sigmoid(2u).
FRIT_INLINE __m256 gelu_tanh_8(__m256 x)
{
    const __m256 cubic = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_mul_ps(x, x), constant(0.044715f)), x, x);
    return _mm256_mul_ps(x, sigmoid_8(_mm256_mul_ps(cubic, constant(1.59576912f))));   // 2 sqrt(2 / pi)
}

// erf by formula 7.1.26 of Abramowitz and Stegun, off by 1.5e-7 at most.
FRIT_INLINE __m256 gelu_8(__m256 x)
{
    const __m256 sign = constant(-0.0f), z = _mm256_mul_ps(x, constant(0.707106781f));
    const __m256 a = _mm256_andnot_ps(sign, z);
    const __m256 t = _mm256_div_ps(constant(1), _mm256_fmadd_ps(constant(0.3275911f), a, constant(1)));
    __m256 p = constant(1.061405429f);
    p = _mm256_fmadd_ps(p, t, constant(-1.453152027f));
    p = _mm256_fmadd_ps(p, t, constant(1.421413741f));
    p = _mm256_fmadd_ps(p, t, constant(-0.284496736f));
    p = _mm256_fmadd_ps(p, t, constant(0.254829592f));
    const __m256 e = exp_8(_mm256_sub_ps(_mm256_setzero_ps(), _mm256_mul_ps(a, a)));
    const __m256 erf = _mm256_sub_ps(constant(1), _mm256_mul_ps(_mm256_mul_ps(p, t), e));
    const __m256 signed_erf = _mm256_or_ps(erf, _mm256_and_ps(sign, z));
    return _mm256_mul_ps(_mm256_mul_ps(constant(0.5f), x), _mm256_add_ps(constant(1), signed_erf));
}

FRIT_INLINE __m256 relu_8(__m256 x)
{
    return _mm256_max_ps(_mm256_setzero_ps(), x);
}

FRIT_INLINE __m256 relu2_8(__m256 x)
{
    const __m256 r = relu_8(x);
    return _mm256_mul_ps(r, r);
}
