// SPDX-License-Identifier: MIT
// Attention by tiles (ops/attend.h) for WebAssembly: four queries are the lanes of a vector.
#include "backend/cpu/wasm/math_simd128.h"
#include "backend/cpu/wasm/simd128.h"

typedef vec_f vec;

enum { LANES = FLOATS, ROWS = 4 };

FRIT_INLINE vec load(const float *p)
{
    return load_f(p);
}

FRIT_INLINE void store(float *p, vec v)
{
    store_f(p, v);
}

FRIT_INLINE vec same(float x)
{
    return all_f(x);
}

FRIT_INLINE vec relative(const int32_t *p, int32_t to)
{
    return wasm_f32x4_convert_i32x4(wasm_i32x4_sub(wasm_v128_load(p), wasm_i32x4_splat(to)));
}

FRIT_INLINE vec add_vec(vec a, vec b)
{
    return add_f(a, b);
}

FRIT_INLINE vec subtract(vec a, vec b)
{
    return sub_f(a, b);
}

FRIT_INLINE vec multiply_vec(vec a, vec b)
{
    return mul_f(a, b);
}

FRIT_INLINE vec divide(vec a, vec b)
{
    return div_f(a, b);
}

FRIT_INLINE vec multiply_add(vec a, vec b, vec c)
{
    return mul_add(a, b, c);
}

FRIT_INLINE vec larger(vec a, vec b)
{
    return max_f(a, b);
}

FRIT_INLINE bool any_larger(vec a, vec b)
{
    return wasm_v128_any_true(wasm_f32x4_gt(a, b));
}

FRIT_INLINE vec magnitude(vec a)
{
    return abs_f(a);
}

FRIT_INLINE vec exp_vec(vec a)
{
    return exp_f(a);
}

FRIT_INLINE vec tanh_vec(vec a)
{
    return tanh_f(a);
}

// `yes` in lanes with low <= at < high, `no` in the others.
FRIT_INLINE vec within(vec at, vec low, vec high, vec yes, vec no)
{
    return wasm_v128_bitselect(yes, no, wasm_v128_and(wasm_f32x4_ge(at, low), wasm_f32x4_lt(at, high)));
}

#include "backend/cpu/tmpl/attend_tile_tmpl.h"

void frit_install_simd128_attend_tile(frit_kernels *k)
{
    k->attend_tile = attend_tile;
    k->attend_fold = fold;
    k->lanes = LANES;
}
