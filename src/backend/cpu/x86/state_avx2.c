// SPDX-License-Identifier: MIT
// Recurrent layers for AVX2.
#include "backend/cpu/x86/vec/flush_sse.h"
#include "backend/cpu/x86/vec/math_avx2.h"

#include "backend/cpu/tmpl/state_tmpl.h"

void frit_install_avx2_state(frit_kernels *k)
{
    k->state_rows = state_rows;
}
