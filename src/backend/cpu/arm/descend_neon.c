// SPDX-License-Identifier: MIT
// Coordinate descent (frit_descent) for NEON.
#include "backend/cpu/arm/floats_neon.h"
#include "backend/cpu/arm/neon.h"

#include "backend/cpu/tmpl/descend_tmpl.h"

void frit_install_neon_descend(frit_kernels *k)
{
    k->descend = descend;
    k->follow = follow;
}
