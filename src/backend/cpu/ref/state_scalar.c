// SPDX-License-Identifier: MIT
// Recurrent layers in plain C.
#include "backend/cpu/ref/floats_scalar.h"

FRIT_INLINE vec_f exp_f(vec_f x)
{
    return expf(x);
}

// Plain C cannot flush subnormal numbers.
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
