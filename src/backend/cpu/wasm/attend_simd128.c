// SPDX-License-Identifier: MIT
// Attention by rows (ops/attend.h) for WebAssembly.
#include "backend/cpu/wasm/math_simd128.h"
#include "backend/cpu/wasm/simd128.h"

enum {
    PAGE_VECTORS = 4,
    VALUES_OF_FOUR = 2,
    MOST_VALUES = 8,
};

#include "backend/cpu/tmpl/attend_rows_tmpl.h"

void frit_install_simd128_attend(frit_kernels *k)
{
    install_attend(k);
}
