// SPDX-License-Identifier: MIT
// Recurrent layers for WebAssembly, which cannot flush subnormal numbers to zero.
#include "backend/cpu/wasm/math_simd128.h"
#include "backend/cpu/wasm/simd128.h"

FRIT_INLINE uint64_t flush_begin(void)
{
    return 0;
}

FRIT_INLINE void flush_end(uint64_t before)
{
    (void)before;
}

#include "backend/cpu/tmpl/state_tmpl.h"

void frit_install_simd128_state(frit_kernels *k)
{
    k->state_rows = state_rows;
}
