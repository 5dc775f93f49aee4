// SPDX-License-Identifier: MIT
// Coordinate descent (frit_descent) for AVX-512.
#include "backend/cpu/x86/vec/avx512.h"
#include "backend/cpu/x86/floats_avx512.h"

#include "backend/cpu/tmpl/descend_tmpl.h"

void frit_install_avx512_descend(frit_kernels *k)
{
    k->descend = descend;
    k->follow = follow;
}
