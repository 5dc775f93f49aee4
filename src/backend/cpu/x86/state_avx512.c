// SPDX-License-Identifier: MIT
// Recurrent layers for AVX-512.
#include "backend/cpu/x86/vec/avx512.h"
#include "backend/cpu/x86/floats_avx512.h"
#include "backend/cpu/x86/vec/flush_sse.h"
#include "backend/cpu/x86/vec/math_avx512.h"

FRIT_INLINE vec_f exp_f(vec_f x)
{
    return exp_16(x);
}

#include "backend/cpu/tmpl/state_tmpl.h"

void frit_install_avx512_state(frit_kernels *k)
{
    k->state_rows = state_rows;
}
