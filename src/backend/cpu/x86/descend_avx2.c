// SPDX-License-Identifier: MIT
// Coordinate descent (frit_descent) for AVX2.
#include "backend/cpu/x86/floats_avx2.h"

#include "backend/cpu/tmpl/descend_tmpl.h"

void frit_install_avx2_descend(frit_kernels *k)
{
    k->descend = descend;
    k->follow = follow;
}
