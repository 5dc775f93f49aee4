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

// Codes of 16 numbers.
FRIT_INLINE v128_t round_16(const float *x, vec_f inverse)
{
    v128_t w[4];
    for (int i = 0; i < 4; i++) w[i] = round_4(x + 4 * i, inverse);
    return wasm_i8x16_narrow_i16x8(wasm_i16x8_narrow_i32x4(w[0], w[1]), wasm_i16x8_narrow_i32x4(w[2], w[3]));
}

FRIT_INLINE int sum_16(v128_t codes)
{
    const v128_t words = wasm_i32x4_extadd_pairwise_i16x8(wasm_i16x8_extadd_pairwise_i8x16(codes));
    const v128_t pairs = wasm_i32x4_add(words, wasm_i32x4_shuffle(words, words, 2, 3, 0, 1));
    return wasm_i32x4_extract_lane(pairs, 0) + wasm_i32x4_extract_lane(pairs, 1);
}

// Codes of 32 numbers, the sums of 16 of them; returns the scale.
static float quantize_line(const float *x, int8_t *codes, int sums[2])
{
    const float top = max_abs_32(x), inverse = top > 0x1p-100f ? 127 / top : 0;
    for (int i = 0; i < 2; i++) {
        const v128_t part = round_16(x + 16 * i, all_f(inverse));
        wasm_v128_store(codes + 16 * i, part);
        sums[i] = sum_16(part);
    }
    return inverse > 0 ? top / 127 : 0;
}

static void convert_q8(const float *x, uint8_t *out, int64_t n)
{
    float *scales = (float *)(void *)(out + n), *factors = scales + n / 32;
    for (int64_t b = 0; b < n / 32; b++) {
        int sums[2];
        scales[b] = quantize_line(x + b * 32, (int8_t *)out + b * 32, sums);
        for (int i = 0; i < 2; i++) factors[2 * b + i] = scales[b] * (float)sums[i];
    }
}

static void convert_q8_lines(const float *x, uint8_t *out, int64_t n)
{
    frit_q8_line *line = (void *)out;
    for (int64_t b = 0; b < n / 32; b++, line++) {
        int sums[2];
        line->scale = quantize_line(x + b * 32, line->codes, sums);
        line->sum = line->scale * (float)(sums[0] + sums[1]);
        for (int i = 0; i < 2; i++) {
            line->sums_16[i] = line->scale * (float)sums[i];
            line->minus_32[i] = -32 * sums[i];
            line->sums[i] = (int16_t)sums[i];
        }
        line->minus_128 = -128 * (sums[0] + sums[1]);
    }
}

void frit_install_simd128_convert(frit_kernels *k)
{
    k->convert[FRIT_FORM_Q8] = convert_q8;
    k->convert[FRIT_FORM_Q8_LINES] = convert_q8_lines;
}
