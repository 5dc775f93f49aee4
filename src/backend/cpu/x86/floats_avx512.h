// SPDX-License-Identifier: MIT
// backend/cpu/x86/floats_avx512.h: the operations of state_tmpl.h and descend_tmpl.h on sixteen numbers.
#pragma once
#include "backend/cpu/kernels.h"

#include <immintrin.h>

typedef __m512 vec_f;

enum { FLOATS = 16 };

FRIT_INLINE float sum_lanes(vec_f v)
{
    return _mm512_reduce_add_ps(v);
}

FRIT_INLINE vec_f load_f(const float *p)
{
    return _mm512_loadu_ps(p);
}

FRIT_INLINE void store_f(float *p, vec_f v)
{
    _mm512_storeu_ps(p, v);
}

FRIT_INLINE vec_f all_f(float x)
{
    return _mm512_set1_ps(x);
}

FRIT_INLINE vec_f add_f(vec_f a, vec_f b)
{
    return _mm512_add_ps(a, b);
}

FRIT_INLINE vec_f sub_f(vec_f a, vec_f b)
{
    return _mm512_sub_ps(a, b);
}

FRIT_INLINE vec_f mul_f(vec_f a, vec_f b)
{
    return _mm512_mul_ps(a, b);
}

FRIT_INLINE vec_f div_f(vec_f a, vec_f b)
{
    return _mm512_div_ps(a, b);
}

FRIT_INLINE vec_f mul_add(vec_f a, vec_f b, vec_f c)
{
    return _mm512_fmadd_ps(a, b, c);
}

FRIT_INLINE vec_f min_f(vec_f a, vec_f b)   // b if it is NaN
{
    return _mm512_min_ps(a, b);
}

FRIT_INLINE vec_f max_f(vec_f a, vec_f b)   // b if it is NaN
{
    return _mm512_max_ps(a, b);
}

FRIT_INLINE vec_f nearest(vec_f a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

FRIT_INLINE vec_f if_less(vec_f a, vec_f b, vec_f yes, vec_f no)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
}
