// SPDX-License-Identifier: MIT
// Coordinate descent (frit_descent) in plain C.
#include "backend/cpu/ref/floats_scalar.h"

#include "backend/cpu/tmpl/descend_tmpl.h"

void frit_install_scalar_descend(frit_kernels *k)
{
    k->descend = descend;
    k->follow = follow;
}
