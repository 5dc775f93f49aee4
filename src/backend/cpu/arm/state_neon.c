// SPDX-License-Identifier: MIT
// Recurrent layers for NEON.
#include "backend/cpu/arm/flush_neon.h"
#include "backend/cpu/arm/math_neon.h"
#include "backend/cpu/arm/neon.h"

#include "backend/cpu/tmpl/state_tmpl.h"

void frit_install_neon_state(frit_kernels *k)
{
    k->state_rows = state_rows;
}
