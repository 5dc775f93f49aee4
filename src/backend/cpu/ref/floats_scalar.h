// SPDX-License-Identifier: MIT
// backend/cpu/ref/floats_scalar.h: the operations of tmpl/state_tmpl.h and tmpl/descend_tmpl.h on one number.
#pragma once
#include "backend/cpu/kernels.h"

#include <math.h>

typedef float vec_f;

enum { FLOATS = 1 };

FRIT_INLINE float sum_lanes(vec_f v)
{
    return v;
}

FRIT_INLINE vec_f load_f(const float *p)
{
    return *p;
}

FRIT_INLINE void store_f(float *p, vec_f v)
{
    *p = v;
}

FRIT_INLINE vec_f all_f(float x)
{
    return x;
}

FRIT_INLINE vec_f add_f(vec_f a, vec_f b)
{
    return a + b;
}

FRIT_INLINE vec_f sub_f(vec_f a, vec_f b)
{
    return a - b;
}

FRIT_INLINE vec_f mul_f(vec_f a, vec_f b)
{
    return a * b;
}

FRIT_INLINE vec_f div_f(vec_f a, vec_f b)
{
    return a / b;
}

FRIT_INLINE vec_f mul_add(vec_f a, vec_f b, vec_f c)
{
    return a * b + c;
}

FRIT_INLINE vec_f min_f(vec_f a, vec_f b)   // b if it is NaN
{
    return a < b ? a : b;
}

FRIT_INLINE vec_f max_f(vec_f a, vec_f b)   // b if it is NaN
{
    return a > b ? a : b;
}

FRIT_INLINE vec_f nearest(vec_f a)
{
    return rintf(a);
}

FRIT_INLINE vec_f if_less(vec_f a, vec_f b, vec_f yes, vec_f no)
{
    return a < b ? yes : no;
}
