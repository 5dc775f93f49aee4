// SPDX-License-Identifier: MIT
// Coordinate descent (frit_descent) for WebAssembly.
#include "backend/cpu/wasm/floats_simd128.h"
#include "backend/cpu/wasm/simd128.h"

#include "backend/cpu/tmpl/descend_tmpl.h"

void frit_install_simd128_descend(frit_kernels *k)
{
    k->descend = descend;
    k->follow = follow;
}
