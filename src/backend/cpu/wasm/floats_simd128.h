// SPDX-License-Identifier: MIT
// backend/cpu/wasm/floats_simd128.h: the operations of math_tmpl.h, vector_tmpl.h, attend_rows_tmpl.h and float_tmpl.h
// on four numbers. No operation is fused or relaxed, so that every engine computes the same bits.
#pragma once
#include "backend/cpu/kernels.h"
#include "backend/cpu/wasm/f16_simd128.h"

#include <string.h>
#include <wasm_simd128.h>

typedef v128_t vec_f;

enum { FLOATS = 4 };

FRIT_INLINE float sum_lanes(vec_f v)
{
    const vec_f pairs = wasm_f32x4_add(v, wasm_i32x4_shuffle(v, v, 1, 0, 3, 2));
    return wasm_f32x4_extract_lane(pairs, 0) + wasm_f32x4_extract_lane(pairs, 2);
}

FRIT_INLINE float max_lanes(vec_f v)
{
    const vec_f pairs = wasm_f32x4_pmax(v, wasm_i32x4_shuffle(v, v, 2, 3, 0, 1));
    return wasm_f32x4_extract_lane(wasm_f32x4_pmax(pairs, wasm_i32x4_shuffle(pairs, pairs, 1, 0, 3, 2)), 0);
}

FRIT_INLINE vec_f load_f(const float *x)
{
    return wasm_v128_load(x);
}

FRIT_INLINE void store_f(float *y, vec_f v)
{
    wasm_v128_store(y, v);
}

// The first n of four numbers, zeros after them.
FRIT_INLINE vec_f load_part(const float *x, int64_t n)
{
    if (n >= FLOATS) return load_f(x);
    float part[FLOATS] = {0};
    memcpy(part, x, (size_t)n * sizeof *x);
    return load_f(part);
}

FRIT_INLINE void store_part(float *y, vec_f v, int64_t n)
{
    if (n >= FLOATS) {
        store_f(y, v);
        return;
    }
    float part[FLOATS];
    store_f(part, v);
    memcpy(y, part, (size_t)n * sizeof *y);
}

FRIT_INLINE vec_f zero_f(void)
{
    return wasm_f32x4_const_splat(0);
}

FRIT_INLINE vec_f all_f(float x)
{
    return wasm_f32x4_splat(x);
}

FRIT_INLINE vec_f add_f(vec_f a, vec_f b)
{
    return wasm_f32x4_add(a, b);
}

FRIT_INLINE vec_f sub_f(vec_f a, vec_f b)
{
    return wasm_f32x4_sub(a, b);
}

FRIT_INLINE vec_f mul_f(vec_f a, vec_f b)
{
    return wasm_f32x4_mul(a, b);
}

FRIT_INLINE vec_f div_f(vec_f a, vec_f b)
{
    return wasm_f32x4_div(a, b);
}

FRIT_INLINE vec_f mul_add(vec_f a, vec_f b, vec_f c)   // a * b + c, rounded twice
{
    return wasm_f32x4_add(wasm_f32x4_mul(a, b), c);
}

FRIT_INLINE vec_f mul_sub_from(vec_f a, vec_f b, vec_f c)   // c - a * b, rounded twice
{
    return wasm_f32x4_sub(c, wasm_f32x4_mul(a, b));
}

FRIT_INLINE vec_f min_f(vec_f a, vec_f b)   // b where one of them is NaN; one instruction on x86 and ARM
{
    return wasm_f32x4_pmin(b, a);
}

FRIT_INLINE vec_f max_f(vec_f a, vec_f b)   // b where one of them is NaN
{
    return wasm_f32x4_pmax(b, a);
}

FRIT_INLINE vec_f abs_f(vec_f a)
{
    return wasm_f32x4_abs(a);
}

FRIT_INLINE vec_f with_sign(vec_f size, vec_f sign)   // size is not negative
{
    return wasm_v128_bitselect(sign, size, wasm_u32x4_const_splat(0x80000000));
}

FRIT_INLINE vec_f nearest(vec_f a)
{
    return wasm_f32x4_nearest(a);
}

// n is an integer from -126 to 127. 1.5 * 2^23 + n + 127 has n + 127 in its lowest bits, from where a shift moves it to
// the exponent.
FRIT_INLINE vec_f power_of_two(vec_f n)
{
    return wasm_i32x4_shl(wasm_f32x4_add(n, wasm_f32x4_const_splat(0x1.8p23f + 127)), 23);
}

FRIT_INLINE vec_f if_less(vec_f a, vec_f b, vec_f yes, vec_f no)
{
    return wasm_v128_bitselect(yes, no, wasm_f32x4_lt(a, b));
}

FRIT_INLINE vec_f first_of(vec_f v, int64_t n)   // zeros after them
{
    return wasm_v128_and(v, wasm_i32x4_lt(wasm_i32x4_const(0, 1, 2, 3), wasm_i32x4_splat((int32_t)n)));
}

FRIT_INLINE void transpose_f(vec_f v[FLOATS])   // rows become columns
{
    const vec_f a = wasm_i32x4_shuffle(v[0], v[1], 0, 4, 1, 5), b = wasm_i32x4_shuffle(v[0], v[1], 2, 6, 3, 7);
    const vec_f c = wasm_i32x4_shuffle(v[2], v[3], 0, 4, 1, 5), d = wasm_i32x4_shuffle(v[2], v[3], 2, 6, 3, 7);
    v[0] = wasm_i64x2_shuffle(a, c, 0, 2);
    v[1] = wasm_i64x2_shuffle(a, c, 1, 3);
    v[2] = wasm_i64x2_shuffle(b, d, 0, 2);
    v[3] = wasm_i64x2_shuffle(b, d, 1, 3);
}

// Four elements of a type as f32: elements [i, i + 4), or for tails [i, i + n) and zeros after them.
typedef vec_f (*load_fn)(const uint8_t *elems, int64_t i);
typedef vec_f (*load_tail_fn)(const uint8_t *elems, int64_t i, int64_t n);

FRIT_INLINE vec_f load_f32(const uint8_t *elems, int64_t i)
{
    return wasm_v128_load(elems + 4 * i);
}

FRIT_INLINE vec_f load_tail_f32(const uint8_t *elems, int64_t i, int64_t n)
{
    float part[FLOATS] = {0};
    memcpy(part, elems + 4 * i, (size_t)n * 4);
    return load_f(part);
}

// Four elements of 16 bits in the upper halves of words.
FRIT_INLINE v128_t load_upper(const uint8_t *elems, int64_t i)
{
    return wasm_i32x4_shl(wasm_u32x4_load16x4(elems + 2 * i), 16);
}

FRIT_INLINE v128_t load_tail_upper(const uint8_t *elems, int64_t i, int64_t n)
{
    uint8_t part[2 * FLOATS] = {0};
    memcpy(part, elems + 2 * i, (size_t)n * 2);
    return load_upper(part, 0);
}

FRIT_INLINE vec_f load_f16(const uint8_t *elems, int64_t i)
{
    return upper_f16s_to_f32(load_upper(elems, i));
}

FRIT_INLINE vec_f load_tail_f16(const uint8_t *elems, int64_t i, int64_t n)
{
    return upper_f16s_to_f32(load_tail_upper(elems, i, n));
}

FRIT_INLINE vec_f load_bf16(const uint8_t *elems, int64_t i)
{
    return load_upper(elems, i);
}

FRIT_INLINE vec_f load_tail_bf16(const uint8_t *elems, int64_t i, int64_t n)
{
    return load_tail_upper(elems, i, n);
}
