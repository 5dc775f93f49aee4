// SPDX-License-Identifier: MIT
// The relaxed module leaves out the products of packed weights for plain vectors. An engine that can load this module
// has the products of the row `relaxed`.
#include "backend/cpu/wasm/simd128.h"

void frit_install_simd128_packed(frit_kernels *k)
{
    (void)k;
}
