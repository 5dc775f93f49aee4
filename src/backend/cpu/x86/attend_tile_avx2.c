// SPDX-License-Identifier: MIT
// Attention by tiles (ops/attend.h) for AVX2: eight queries are the lanes of a vector.
#include "backend/cpu/x86/vec/math_avx2.h"

typedef __m256 vec;

enum { LANES = 8, ROWS = 4 };

FRIT_INLINE vec load(const float *p)
{
    return _mm256_loadu_ps(p);
}

FRIT_INLINE void store(float *p, vec v)
{
    _mm256_storeu_ps(p, v);
}

FRIT_INLINE vec same(float x)
{
    return _mm256_set1_ps(x);
}

FRIT_INLINE vec relative(const int32_t *p, int32_t to)
{
    return _mm256_cvtepi32_ps(
        _mm256_sub_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p), _mm256_set1_epi32(to)));
}

FRIT_INLINE vec add_vec(vec a, vec b)
{
    return _mm256_add_ps(a, b);
}

FRIT_INLINE vec subtract(vec a, vec b)
{
    return _mm256_sub_ps(a, b);
}

FRIT_INLINE vec multiply_vec(vec a, vec b)
{
    return _mm256_mul_ps(a, b);
}

FRIT_INLINE vec divide(vec a, vec b)
{
    return _mm256_div_ps(a, b);
}

FRIT_INLINE vec multiply_add(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}

FRIT_INLINE vec larger(vec a, vec b)
{
    return _mm256_max_ps(a, b);
}

FRIT_INLINE bool any_larger(vec a, vec b)
{
    return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)) != 0;
}

FRIT_INLINE vec magnitude(vec a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}

FRIT_INLINE vec exp_vec(vec a)
{
    return exp_f(a);
}

FRIT_INLINE vec tanh_vec(vec a)
{
    return tanh_f(a);
}

// `yes` in lanes with low <= at < high, `no` in the others.
FRIT_INLINE vec within(vec at, vec low, vec high, vec yes, vec no)
{
    const vec mask = _mm256_and_ps(_mm256_cmp_ps(at, low, _CMP_GE_OQ), _mm256_cmp_ps(at, high, _CMP_LT_OQ));
    return _mm256_blendv_ps(no, yes, mask);
}

#include "backend/cpu/tmpl/attend_tile_tmpl.h"

void frit_install_avx2_attend_tile(frit_kernels *k)
{
    k->attend_tile = attend_tile;
    k->attend_fold = fold;
    k->lanes = LANES;
}
