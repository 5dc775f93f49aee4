// SPDX-License-Identifier: MIT
// Products with f32, f16, bf16 and fp8_128 weights for WebAssembly.
#include "backend/cpu/wasm/floats_simd128.h"
#include "backend/cpu/wasm/simd128.h"

enum {
    LANES = FLOATS,
    COLUMNS = 512,
    BAND_ROWS = 16,
    TILE_ROWS = 4,
    TILE_TOKENS = 2,
    IN_ORDER_ROWS = 4,
    IN_ORDER_AHEAD = 8 << 10,   // bytes
    ROWS_OF_TWO = 4,
    MAX_SUMS = 16,
};

FRIT_INLINE void prefetch(const uint8_t *p)   // WebAssembly has no instruction for it
{
    (void)p;
}

FRIT_INLINE void store_f32(float *y, vec_f v)
{
    store_f(y, v);
}

FRIT_INLINE vec_f sum_4(vec_f a, vec_f b, vec_f c, vec_f d)
{
    vec_f v[FLOATS] = {a, b, c, d};
    transpose_f(v);
    return add_f(add_f(v[0], v[1]), add_f(v[2], v[3]));
}

FRIT_INLINE void store_4(float *y, vec_f sums, bool add)   // add: to the values of y
{
    store_f(y, add ? add_f(sums, load_f(y)) : sums);
}

FRIT_INLINE float sum_1(vec_f v)   // adds in the order of sum_4
{
    return sum_lanes(v);
}

// LANES codes of e4m3, times `scale`. A code is an f16 number divided by 256.
FRIT_INLINE vec_f load_e4m3(const uint8_t *codes, float scale)
{
    const v128_t c = wasm_u32x4_make(codes[0], codes[1], codes[2], codes[3]);
    const v128_t sign = wasm_i32x4_shl(wasm_v128_and(c, wasm_u32x4_const_splat(0x80)), 24);
    const v128_t size = wasm_i32x4_shl(wasm_v128_and(c, wasm_u32x4_const_splat(0x7f)), 23);
    return wasm_f32x4_mul(upper_f16s_to_f32(wasm_v128_or(sign, size)), wasm_f32x4_splat(scale));
}

#include "backend/cpu/tmpl/float_tmpl.h"

void frit_install_simd128_float(frit_kernels *k)
{
    install(k, "simd128");
}
