// SPDX-License-Identifier: MIT
// Attention by tiles (ops/attend.h) for WebAssembly: four queries are the lanes of a vector.
#include "backend/cpu/wasm/math_simd128.h"
#include "backend/cpu/wasm/simd128.h"

enum { ROWS = 4 };

FRIT_INLINE vec_f relative(const int32_t *p, int32_t to)
{
    return wasm_f32x4_convert_i32x4(wasm_i32x4_sub(wasm_v128_load(p), wasm_i32x4_splat(to)));
}

FRIT_INLINE bool any_larger(vec_f a, vec_f b)
{
    return wasm_v128_any_true(wasm_f32x4_gt(a, b));
}

FRIT_INLINE vec_f within(vec_f at, vec_f low, vec_f high, vec_f yes, vec_f no)
{
    return wasm_v128_bitselect(yes, no, wasm_v128_and(wasm_f32x4_ge(at, low), wasm_f32x4_lt(at, high)));
}

#include "backend/cpu/tmpl/attend_tile_tmpl.h"

void frit_install_simd128_attend_tile(frit_kernels *k)
{
    k->attend_tile = attend_tile;
    k->attend_fold = fold;
    k->lanes = FLOATS;
}
