// SPDX-License-Identifier: MIT
// Recurrent layers without vectors.
#include "backend/cpu/kernels.h"

#include <math.h>

typedef float vec_f;

enum { FLOATS = 1 };

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

FRIT_INLINE vec_f mul_f(vec_f a, vec_f b)
{
    return a * b;
}

FRIT_INLINE vec_f mul_add(vec_f a, vec_f b, vec_f c)
{
    return a * b + c;
}

FRIT_INLINE float sum_lanes(vec_f v)
{
    return v;
}

FRIT_INLINE vec_f exp_f(vec_f x)
{
    return expf(x);
}

// Plain C has no way to ask for it.
static uint64_t flush_begin(void)
{
    return 0;
}

static void flush_end(uint64_t before)
{
    (void)before;
}

#include "backend/cpu/tmpl/state_tmpl.h"

void frit_install_scalar_state(frit_kernels *k)
{
    k->state_rows = state_rows;
}
