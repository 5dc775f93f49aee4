// SPDX-License-Identifier: MIT
// backend/cpu/wasm/vec_simd128.h: the plain operations of packed_tmpl.h on words of four rows, without products of
// bytes.
#pragma once
#include "backend/cpu/kernels.h"
#include "backend/cpu/wasm/f16_simd128.h"

#include <string.h>
#include <wasm_simd128.h>

typedef v128_t vec;     // words, one for each row
typedef v128_t vec_f;   // floats, one for each row

#define LANES 4

FRIT_INLINE vec zero(void)
{
    return wasm_i32x4_const_splat(0);
}

FRIT_INLINE vec load(const void *p)
{
    return wasm_v128_load(p);
}

FRIT_INLINE vec splat_bytes(int value)
{
    return wasm_i8x16_splat((int8_t)value);
}

FRIT_INLINE vec splat_words(int value)
{
    return wasm_i32x4_splat(value);
}

FRIT_INLINE vec broadcast_word(const void *p)   // the word at p
{
    return wasm_v128_load32_splat(p);
}

FRIT_INLINE void keep_order(vec *v)   // inline assembly of WebAssembly has no vectors
{
    (void)v;
}

FRIT_INLINE vec bit_and(vec a, vec b)
{
    return wasm_v128_and(a, b);
}

FRIT_INLINE vec bit_or(vec a, vec b)
{
    return wasm_v128_or(a, b);
}

FRIT_INLINE vec masked_or(vec a, vec b, vec mask)   // a | (b & mask)
{
    return bit_or(a, bit_and(b, mask));
}

FRIT_INLINE vec bit_xor(vec a, vec b)
{
    return wasm_v128_xor(a, b);
}

FRIT_INLINE vec shift_right(vec v, int n)   // shifts words; the caller masks bits that cross bytes
{
    return wasm_u32x4_shr(v, (uint32_t)n);
}

FRIT_INLINE vec shift_left(vec v, int n)
{
    return wasm_i32x4_shl(v, (uint32_t)n);
}

FRIT_INLINE vec shift_right_signed(vec v, int n)
{
    return wasm_i32x4_shr(v, (uint32_t)n);
}

FRIT_INLINE vec add_bytes(vec a, vec b)
{
    return wasm_i8x16_add(a, b);
}

FRIT_INLINE vec sub_bytes(vec a, vec b)
{
    return wasm_i8x16_sub(a, b);
}

FRIT_INLINE vec min_bytes(vec a, vec b)
{
    return wasm_u8x16_min(a, b);
}

FRIT_INLINE vec max_words(vec a, vec b)
{
    return wasm_i32x4_max(a, b);
}

FRIT_INLINE vec add_words(vec a, vec b)
{
    return wasm_i32x4_add(a, b);
}

FRIT_INLINE vec sub_words(vec a, vec b)
{
    return wasm_i32x4_sub(a, b);
}

FRIT_INLINE vec shuffle(const uint8_t table[16], vec index)   // indexes below 16
{
    return wasm_i8x16_swizzle(load(table), index);
}

FRIT_INLINE vec broadcast_byte(vec v, int i)   // byte i of each word to all four
{
    const vec first = wasm_u8x16_const(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12);
    return wasm_i8x16_swizzle(v, add_bytes(first, splat_bytes(i)));
}

FRIT_INLINE vec bytes_as_words(const uint8_t *p)
{
    return wasm_u32x4_extend_low_u16x8(wasm_u16x8_extend_low_u8x16(wasm_v128_load32_zero(p)));
}

FRIT_INLINE void prefetch(const uint8_t *p)   // WebAssembly has no instruction for it
{
    (void)p;
}

FRIT_INLINE vec_f to_float(vec v)
{
    return wasm_f32x4_convert_i32x4(v);
}

FRIT_INLINE vec to_int(vec_f v)   // v has integers
{
    return wasm_i32x4_trunc_sat_f32x4(v);
}

FRIT_INLINE vec_f as_float(vec bits)
{
    return bits;
}

FRIT_INLINE vec as_words(vec_f bits)
{
    return bits;
}

FRIT_INLINE vec_f load_f16s(const uint8_t *p)
{
    return upper_f16s_to_f32(shift_left(wasm_u32x4_load16x4(p), 16));
}

FRIT_INLINE vec_f low_f16s(vec v)
{
    return upper_f16s_to_f32(shift_left(v, 16));
}

FRIT_INLINE vec_f zero_f(void)
{
    return wasm_f32x4_const_splat(0);
}

FRIT_INLINE vec_f splat_f(float value)
{
    return wasm_f32x4_splat(value);
}

FRIT_INLINE vec_f mul(vec_f a, vec_f b)
{
    return wasm_f32x4_mul(a, b);
}

FRIT_INLINE vec_f mul_add(vec_f a, vec_f b, vec_f c)   // a * b + c, rounded twice
{
    return wasm_f32x4_add(wasm_f32x4_mul(a, b), c);
}

FRIT_INLINE vec_f mul_sub_from(vec_f a, vec_f b, vec_f c)   // c - a * b, rounded twice
{
    return wasm_f32x4_sub(c, wasm_f32x4_mul(a, b));
}

FRIT_INLINE vec bias_to_signed(vec codes)   // signed already
{
    return codes;
}

FRIT_INLINE vec start_int8(const int32_t *minus_128)
{
    (void)minus_128;
    return zero();
}

FRIT_INLINE void store(float *y, vec_f v, int n)   // the first n lanes
{
    if (n >= LANES) {
        wasm_v128_store(y, v);
        return;
    }
    float all[LANES];
    wasm_v128_store(all, v);
    memcpy(y, all, (size_t)n * sizeof *y);
}

// ------------------------------------------------------------------------------- sums of int16

// Codes of few bits count from zero, as on AVX2.
#define INT16_SUMS        1
#define BIASED(code)      ((uint8_t)(code))
#define FROM_ZERO(shift)  shift
#define BIAS(low, others) low
#define PIN(v)            (void)(v)

// Bytes i and j of each word, zero-extended, as two int16.
FRIT_INLINE vec bytes_to_int16(vec v, int i, int j)
{
    const vec low = bit_and(shift_right(v, 8 * i), splat_words(0xff));
    const vec high = bit_and(j < 2 ? shift_left(v, 16 - 8 * j) : shift_right(v, 8 * j - 16), splat_words(0xff0000));
    return bit_or(low, high);
}

FRIT_INLINE vec dot_int16(vec a, vec b)   // a[2 i] * b[2 i] + a[2 i + 1] * b[2 i + 1] of int16
{
    return wasm_i32x4_dot_i16x8(a, b);
}
