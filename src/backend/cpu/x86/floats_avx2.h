// SPDX-License-Identifier: MIT
// backend/cpu/x86/floats_avx2.h: the operations of math_tmpl.h, vector_tmpl.h and attend_rows_tmpl.h on eight numbers.
#pragma once
#include "backend/cpu/x86/vec/avx2.h"

typedef __m256 vec_f;

enum { FLOATS = 8 };

FRIT_INLINE float sum_lanes(vec_f v)
{
    return sum_8(v);
}

FRIT_INLINE float max_lanes(vec_f v)
{
    return max_8(v);
}

// The first n of eight numbers, zeros after them.
FRIT_INLINE vec_f load_part(const float *x, int64_t n)
{
    return _mm256_maskload_ps(x, mask_of(n));
}

FRIT_INLINE void store_part(float *y, vec_f v, int64_t n)
{
    _mm256_maskstore_ps(y, mask_of(n), v);
}

FRIT_INLINE vec_f load_f(const float *x)
{
    return _mm256_loadu_ps(x);
}

FRIT_INLINE void store_f(float *y, vec_f v)
{
    _mm256_storeu_ps(y, v);
}

FRIT_INLINE vec_f zero_f(void)
{
    return _mm256_setzero_ps();
}

FRIT_INLINE vec_f all_f(float x)
{
    return _mm256_set1_ps(x);
}

FRIT_INLINE vec_f add_f(vec_f a, vec_f b)
{
    return _mm256_add_ps(a, b);
}

FRIT_INLINE vec_f sub_f(vec_f a, vec_f b)
{
    return _mm256_sub_ps(a, b);
}

FRIT_INLINE vec_f mul_f(vec_f a, vec_f b)
{
    return _mm256_mul_ps(a, b);
}

FRIT_INLINE vec_f div_f(vec_f a, vec_f b)
{
    return _mm256_div_ps(a, b);
}

FRIT_INLINE vec_f mul_add(vec_f a, vec_f b, vec_f c)   // a * b + c
{
    return _mm256_fmadd_ps(a, b, c);
}

FRIT_INLINE vec_f mul_sub_from(vec_f a, vec_f b, vec_f c)   // c - a * b
{
    return _mm256_fnmadd_ps(a, b, c);
}

FRIT_INLINE vec_f min_f(vec_f a, vec_f b)   // b where that is not a number
{
    return _mm256_min_ps(a, b);
}

FRIT_INLINE vec_f max_f(vec_f a, vec_f b)   // b where that is not a number
{
    return _mm256_max_ps(a, b);
}

FRIT_INLINE vec_f abs_f(vec_f a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}

FRIT_INLINE vec_f with_sign(vec_f size, vec_f sign)   // size is not negative
{
    return _mm256_or_ps(size, _mm256_and_ps(_mm256_set1_ps(-0.0f), sign));
}

FRIT_INLINE vec_f nearest(vec_f a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

FRIT_INLINE vec_f power_of_two(vec_f n)   // n is an integer from -126 to 127
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
}

FRIT_INLINE vec_f if_less(vec_f a, vec_f b, vec_f yes, vec_f no)
{
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}

FRIT_INLINE vec_f first_of(vec_f v, int64_t n)   // zeros after them
{
    return _mm256_and_ps(v, _mm256_castsi256_ps(mask_of(n)));
}

FRIT_INLINE void transpose_f(vec_f v[FLOATS])   // rows become columns
{
    vec_f t[FLOATS];
    for (int i = 0; i < FLOATS; i += 4) {   // columns 0 and 4, 1 and 5, 2 and 6, 3 and 7 of four rows
        const vec_f a = _mm256_unpacklo_ps(v[i], v[i + 1]), b = _mm256_unpacklo_ps(v[i + 2], v[i + 3]);
        const vec_f c = _mm256_unpackhi_ps(v[i], v[i + 1]), d = _mm256_unpackhi_ps(v[i + 2], v[i + 3]);
        t[i] = _mm256_shuffle_ps(a, b, 0x44);
        t[i + 1] = _mm256_shuffle_ps(a, b, 0xee);
        t[i + 2] = _mm256_shuffle_ps(c, d, 0x44);
        t[i + 3] = _mm256_shuffle_ps(c, d, 0xee);
    }
    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x20);
        v[i + 4] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x31);
    }
}
