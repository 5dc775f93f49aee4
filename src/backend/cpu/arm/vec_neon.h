// SPDX-License-Identifier: MIT
// backend/cpu/arm/vec_neon.h: the plain operations of packed_tmpl.h on words of four rows, without products of bytes.
#pragma once
#include "backend/cpu/kernels.h"

#include <arm_neon.h>
#include <string.h>

typedef uint32x4_t vec;      // words, one for each row
typedef float32x4_t vec_f;   // floats, one for each row

#define LANES 4

FRIT_INLINE uint8x16_t bytes(vec v)
{
    return vreinterpretq_u8_u32(v);
}

FRIT_INLINE vec words(uint8x16_t v)
{
    return vreinterpretq_u32_u8(v);
}

FRIT_INLINE int8x16_t signed_bytes(vec v)
{
    return vreinterpretq_s8_u32(v);
}

FRIT_INLINE int32x4_t signed_words(vec v)
{
    return vreinterpretq_s32_u32(v);
}

FRIT_INLINE vec zero(void)
{
    return vdupq_n_u32(0);
}

FRIT_INLINE vec load(const void *p)
{
    return words(vld1q_u8(p));
}

FRIT_INLINE vec splat_bytes(int value)
{
    return words(vdupq_n_u8((uint8_t)value));
}

FRIT_INLINE vec splat_words(int value)
{
    return vdupq_n_u32((uint32_t)value);
}

FRIT_INLINE vec broadcast_word(const void *p)   // the word at p
{
    uint32_t word;
    memcpy(&word, p, 4);
    return vdupq_n_u32(word);
}

FRIT_INLINE void keep_order(vec *v)
{
    FRIT_KEEP_ORDER(v, "w");
}

FRIT_INLINE vec bit_and(vec a, vec b)
{
    return vandq_u32(a, b);
}

FRIT_INLINE vec bit_or(vec a, vec b)
{
    return vorrq_u32(a, b);
}

FRIT_INLINE vec masked_or(vec a, vec b, vec mask)   // a | (b & mask)
{
    return bit_or(a, bit_and(b, mask));
}

FRIT_INLINE vec bit_xor(vec a, vec b)
{
    return veorq_u32(a, b);
}

// Shifts are operators, because the intrinsics need a constant count even without optimization.
FRIT_INLINE vec shift_right(vec v, int n)   // shifts words; the caller masks bits that cross bytes
{
    return n ? v >> n : v;
}

FRIT_INLINE vec shift_left(vec v, int n)
{
    return n ? v << n : v;
}

FRIT_INLINE vec shift_right_signed(vec v, int n)
{
    return vreinterpretq_u32_s32(signed_words(v) >> n);
}

FRIT_INLINE vec add_bytes(vec a, vec b)
{
    return words(vaddq_u8(bytes(a), bytes(b)));
}

FRIT_INLINE vec sub_bytes(vec a, vec b)
{
    return words(vsubq_u8(bytes(a), bytes(b)));
}

FRIT_INLINE vec min_bytes(vec a, vec b)
{
    return words(vminq_u8(bytes(a), bytes(b)));
}

FRIT_INLINE vec max_words(vec a, vec b)
{
    return vreinterpretq_u32_s32(vmaxq_s32(signed_words(a), signed_words(b)));
}

FRIT_INLINE vec add_words(vec a, vec b)
{
    return vaddq_u32(a, b);
}

FRIT_INLINE vec sub_words(vec a, vec b)
{
    return vsubq_u32(a, b);
}

FRIT_INLINE vec shuffle(const uint8_t table[16], vec index)
{
    return words(vqtbl1q_u8(vld1q_u8(table), bytes(index)));
}

FRIT_INLINE vec broadcast_byte(vec v, int i)   // byte i of each word to all four
{
    static const uint8_t first[16] = {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12};
    return words(vqtbl1q_u8(bytes(v), vaddq_u8(vld1q_u8(first), vdupq_n_u8((uint8_t)i))));
}

FRIT_INLINE vec bytes_as_words(const uint8_t *p)
{
    return vmovl_u16(vget_low_u16(vmovl_u8(vget_low_u8(bytes(broadcast_word(p))))));
}

FRIT_INLINE void prefetch(const uint8_t *p)   // a cache line
{
    __builtin_prefetch(p);
}

FRIT_INLINE vec_f to_float(vec v)
{
    return vcvtq_f32_s32(signed_words(v));
}

FRIT_INLINE vec to_int(vec_f v)   // v has integers
{
    return vreinterpretq_u32_s32(vcvtq_s32_f32(v));
}

FRIT_INLINE vec_f as_float(vec bits)
{
    return vreinterpretq_f32_u32(bits);
}

FRIT_INLINE vec_f load_f16s(const uint8_t *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p)));
}

FRIT_INLINE vec_f low_f16s(vec v)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(v)));
}

FRIT_INLINE vec_f zero_f(void)
{
    return vdupq_n_f32(0);
}

FRIT_INLINE vec_f splat_f(float value)
{
    return vdupq_n_f32(value);
}

FRIT_INLINE vec_f mul(vec_f a, vec_f b)
{
    return vmulq_f32(a, b);
}

FRIT_INLINE vec_f mul_add(vec_f a, vec_f b, vec_f c)   // a * b + c
{
    return vfmaq_f32(c, a, b);
}

FRIT_INLINE vec_f mul_sub_from(vec_f a, vec_f b, vec_f c)   // c - a * b
{
    return vfmsq_f32(c, a, b);
}

// Takes the bias of 128 off.
FRIT_INLINE vec bias_to_signed(vec codes)
{
    return bit_xor(codes, splat_bytes(128));
}

FRIT_INLINE vec start_int8(const int32_t *minus_128)
{
    (void)minus_128;
    return zero();
}

FRIT_INLINE void store(float *y, vec_f v, int n)   // the first n lanes
{
    if (n >= LANES) {
        vst1q_f32(y, v);
        return;
    }
    float all[LANES];
    vst1q_f32(all, v);
    memcpy(y, all, (size_t)n * sizeof *y);
}
