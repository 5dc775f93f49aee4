// SPDX-License-Identifier: MIT
// Conversion of activations to the forms Q8 and Q8_LINES for WebAssembly: the same bits as the scalar conversion.
#include "backend/cpu/wasm/floats_simd128.h"
#include "backend/cpu/wasm/simd128.h"

static float max_abs_32(const float *x)
{
    vec_f top = abs_f(load_f(x));
    for (int i = 4; i < 32; i += 4) top = max_f(top, abs_f(load_f(x + i)));
    return max_lanes(top);
}

// round(x * inverse) of four numbers up to 127: 1.5 * 2^23 + n has the integer n in its lowest 16 bits.
FRIT_INLINE v128_t round_4(const float *x, vec_f inverse)
{
    const vec_f shifted = add_f(mul_f(load_f(x), inverse), wasm_f32x4_const_splat(0x1.8p23f));
    return wasm_i32x4_sub(shifted, wasm_f32x4_const_splat(0x1.8p23f));
}

FRIT_INLINE int sum_16(v128_t codes)
{
    const v128_t words = wasm_i32x4_extadd_pairwise_i16x8(wasm_i16x8_extadd_pairwise_i8x16(codes));
    const v128_t pairs = wasm_i32x4_add(words, wasm_i32x4_shuffle(words, words, 2, 3, 0, 1));
    return wasm_i32x4_extract_lane(pairs, 0) + wasm_i32x4_extract_lane(pairs, 1);
}

FRIT_INLINE int quantize_16(const float *x, float inverse, int8_t *codes)
{
    v128_t w[4];
    for (int i = 0; i < 4; i++) w[i] = round_4(x + 4 * i, all_f(inverse));
    const v128_t low = wasm_i16x8_narrow_i32x4(w[0], w[1]), high = wasm_i16x8_narrow_i32x4(w[2], w[3]);
    const v128_t part = wasm_i8x16_narrow_i16x8(low, high);
    wasm_v128_store(codes, part);
    return sum_16(part);
}

#include "backend/cpu/tmpl/convert_tmpl.h"

void frit_install_simd128_convert(frit_kernels *k)
{
    k->convert[FRIT_FORM_Q8] = convert_q8;
    k->convert[FRIT_FORM_Q8_LINES] = convert_q8_lines;
}
