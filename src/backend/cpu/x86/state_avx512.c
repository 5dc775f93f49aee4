// SPDX-License-Identifier: MIT
// Recurrent layers for AVX-512.
#include "backend/cpu/x86/avx512.h"
#include "backend/cpu/x86/flush_sse.h"
#include "backend/cpu/x86/math_avx512.h"

typedef __m512 vec_f;

enum { FLOATS = 16 };

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

FRIT_INLINE vec_f mul_f(vec_f a, vec_f b)
{
    return _mm512_mul_ps(a, b);
}

FRIT_INLINE vec_f mul_add(vec_f a, vec_f b, vec_f c)
{
    return _mm512_fmadd_ps(a, b, c);
}

FRIT_INLINE float sum_lanes(vec_f v)
{
    return _mm512_reduce_add_ps(v);
}

FRIT_INLINE vec_f exp_f(vec_f x)
{
    return exp_16(x);
}

#include "backend/cpu/tmpl/state_tmpl.h"

void frit_install_avx512_state(frit_kernels *k)
{
    k->state_rows = state_rows;
}
