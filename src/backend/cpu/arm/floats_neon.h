// SPDX-License-Identifier: MIT
// backend/cpu/arm/floats_neon.h: the operations of math_tmpl.h, vector_tmpl.h, attend_rows_tmpl.h and float_tmpl.h on
// four numbers.
#pragma once
#include "backend/cpu/kernels.h"

#include <arm_neon.h>
#include <string.h>

typedef float32x4_t vec_f;

enum { FLOATS = 4 };

FRIT_INLINE float sum_lanes(vec_f v)
{
    return vaddvq_f32(v);
}

FRIT_INLINE float max_lanes(vec_f v)
{
    return vmaxvq_f32(v);
}

FRIT_INLINE vec_f load_f(const float *x)
{
    return vld1q_f32(x);
}

FRIT_INLINE void store_f(float *y, vec_f v)
{
    vst1q_f32(y, v);
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
    return vdupq_n_f32(0);
}

FRIT_INLINE vec_f all_f(float x)
{
    return vdupq_n_f32(x);
}

FRIT_INLINE vec_f add_f(vec_f a, vec_f b)
{
    return vaddq_f32(a, b);
}

FRIT_INLINE vec_f sub_f(vec_f a, vec_f b)
{
    return vsubq_f32(a, b);
}

FRIT_INLINE vec_f mul_f(vec_f a, vec_f b)
{
    return vmulq_f32(a, b);
}

FRIT_INLINE vec_f div_f(vec_f a, vec_f b)
{
    return vdivq_f32(a, b);
}

FRIT_INLINE vec_f mul_add(vec_f a, vec_f b, vec_f c)   // a * b + c
{
    return vfmaq_f32(c, a, b);
}

FRIT_INLINE vec_f mul_sub_from(vec_f a, vec_f b, vec_f c)   // c - a * b
{
    return vfmsq_f32(c, a, b);
}

FRIT_INLINE vec_f min_f(vec_f a, vec_f b)   // NaN where one of them is
{
    return vminq_f32(a, b);
}

FRIT_INLINE vec_f max_f(vec_f a, vec_f b)   // NaN where one of them is
{
    return vmaxq_f32(a, b);
}

FRIT_INLINE vec_f abs_f(vec_f a)
{
    return vabsq_f32(a);
}

FRIT_INLINE vec_f with_sign(vec_f size, vec_f sign)   // size is not negative
{
    return vbslq_f32(vdupq_n_u32(0x80000000), sign, size);
}

FRIT_INLINE vec_f nearest(vec_f a)
{
    return vrndnq_f32(a);
}

FRIT_INLINE vec_f power_of_two(vec_f n)   // n is an integer from -126 to 127
{
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)), 23));
}

FRIT_INLINE vec_f if_less(vec_f a, vec_f b, vec_f yes, vec_f no)
{
    return vbslq_f32(vcltq_f32(a, b), yes, no);
}

FRIT_INLINE vec_f first_of(vec_f v, int64_t n)   // zeros after them
{
    static const int32_t lanes[FLOATS] = {0, 1, 2, 3};
    const uint32x4_t mask = vcltq_s32(vld1q_s32(lanes), vdupq_n_s32((int32_t)n));
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(v), mask));
}

FRIT_INLINE void transpose_f(vec_f v[FLOATS])   // rows become columns
{
    const vec_f a = vtrn1q_f32(v[0], v[1]), b = vtrn2q_f32(v[0], v[1]);
    const vec_f c = vtrn1q_f32(v[2], v[3]), d = vtrn2q_f32(v[2], v[3]);
    v[0] = vcombine_f32(vget_low_f32(a), vget_low_f32(c));
    v[1] = vcombine_f32(vget_low_f32(b), vget_low_f32(d));
    v[2] = vcombine_f32(vget_high_f32(a), vget_high_f32(c));
    v[3] = vcombine_f32(vget_high_f32(b), vget_high_f32(d));
}

// Four elements of a type as f32: elements [i, i + 4), or for tails [i, i + n) and zeros after them.
typedef vec_f (*load_fn)(const uint8_t *elems, int64_t i);
typedef vec_f (*load_tail_fn)(const uint8_t *elems, int64_t i, int64_t n);

FRIT_INLINE vec_f load_f32(const uint8_t *elems, int64_t i)
{
    return vreinterpretq_f32_u8(vld1q_u8(elems + 4 * i));
}

FRIT_INLINE vec_f load_tail_f32(const uint8_t *elems, int64_t i, int64_t n)
{
    float part[FLOATS] = {0};
    memcpy(part, elems + 4 * i, (size_t)n * 4);
    return load_f(part);
}

FRIT_INLINE uint16x4_t load_halves(const uint8_t *elems, int64_t i)
{
    return vreinterpret_u16_u8(vld1_u8(elems + 2 * i));
}

FRIT_INLINE uint16x4_t load_tail_halves(const uint8_t *elems, int64_t i, int64_t n)
{
    uint16_t part[FLOATS] = {0};
    memcpy(part, elems + 2 * i, (size_t)n * 2);
    return vld1_u16(part);
}

FRIT_INLINE vec_f f16_to_f32(uint16x4_t v)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(v));
}

FRIT_INLINE vec_f bf16_to_f32(uint16x4_t v)
{
    return vreinterpretq_f32_u32(vshll_n_u16(v, 16));
}

FRIT_INLINE vec_f load_f16(const uint8_t *elems, int64_t i)
{
    return f16_to_f32(load_halves(elems, i));
}

FRIT_INLINE vec_f load_tail_f16(const uint8_t *elems, int64_t i, int64_t n)
{
    return f16_to_f32(load_tail_halves(elems, i, n));
}

FRIT_INLINE vec_f load_bf16(const uint8_t *elems, int64_t i)
{
    return bf16_to_f32(load_halves(elems, i));
}

FRIT_INLINE vec_f load_tail_bf16(const uint8_t *elems, int64_t i, int64_t n)
{
    return bf16_to_f32(load_tail_halves(elems, i, n));
}
