// SPDX-License-Identifier: MIT
// backend/cpu/x86/vec/vec_avx512vnni.h: the plain operations of packed_tmpl.h on words of sixteen rows, without
// products of bytes.
#pragma once
#include "backend/cpu/kernels.h"

#include <immintrin.h>
#include <string.h>

typedef __m512i vec;    // words, one for each row
typedef __m512 vec_f;   // floats, one for each row
typedef const int8_t *x_quads;

#define LANES 16

FRIT_INLINE vec zero(void)
{
    return _mm512_setzero_si512();
}

FRIT_INLINE vec load(const void *p)
{
    return _mm512_loadu_si512(p);
}

FRIT_INLINE vec splat_bytes(int value)
{
    return _mm512_set1_epi8((char)value);
}

FRIT_INLINE vec broadcast_word(const void *p)   // the word at p
{
    int32_t word;
    memcpy(&word, p, 4);
    return _mm512_set1_epi32(word);
}

FRIT_INLINE void keep_order(vec *v)
{
    FRIT_KEEP_ORDER(v, "v");
}

FRIT_INLINE x_quads four_quads(const int8_t *p)
{
    return p;
}

FRIT_INLINE vec bit_and(vec a, vec b)
{
    return _mm512_and_si512(a, b);
}

FRIT_INLINE vec bit_or(vec a, vec b)
{
    return _mm512_or_si512(a, b);
}

FRIT_INLINE vec masked_or(vec a, vec b, vec mask)   // a | (b & mask)
{
    return _mm512_ternarylogic_epi32(a, b, mask, 0xf8);
}

FRIT_INLINE vec shift_right(vec v, int n)   // shifts words; the caller masks bits that cross bytes
{
    return n ? _mm512_srli_epi32(v, (unsigned)n) : v;
}

FRIT_INLINE vec shift_left(vec v, int n)
{
    return n ? _mm512_slli_epi32(v, (unsigned)n) : v;
}

FRIT_INLINE vec add_bytes(vec a, vec b)
{
    return _mm512_add_epi8(a, b);
}

FRIT_INLINE vec sub_bytes(vec a, vec b)
{
    return _mm512_sub_epi8(a, b);
}

FRIT_INLINE vec bit_xor(vec a, vec b)
{
    return _mm512_xor_si512(a, b);
}

FRIT_INLINE vec shuffle(const uint8_t table[16], vec index)
{
    const __m128i t = _mm_loadu_si128((const __m128i *)(const void *)table);
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(t), index);
}

FRIT_INLINE vec shift_right_signed(vec v, int n)
{
    return _mm512_srai_epi32(v, (unsigned)n);
}

FRIT_INLINE vec min_bytes(vec a, vec b)
{
    return _mm512_min_epu8(a, b);
}

FRIT_INLINE vec splat_words(int value)
{
    return _mm512_set1_epi32(value);
}

FRIT_INLINE vec broadcast_byte(vec v, int i)   // byte i of each word to all four
{
    const __m128i pick =
        _mm_add_epi8(_mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12), _mm_set1_epi8((char)i));
    return _mm512_shuffle_epi8(v, _mm512_broadcast_i32x4(pick));
}

FRIT_INLINE void prefetch(const uint8_t *p)   // a cache line
{
    _mm_prefetch((const char *)p, _MM_HINT_T0);
}

FRIT_INLINE vec_f to_float(vec v)
{
    return _mm512_cvtepi32_ps(v);
}

FRIT_INLINE vec to_int(vec_f v)   // v has integers
{
    return _mm512_cvtps_epi32(v);
}

FRIT_INLINE vec_f as_float(vec bits)
{
    return _mm512_castsi512_ps(bits);
}

FRIT_INLINE vec_f load_f16s(const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

FRIT_INLINE vec_f low_f16s(vec v)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v));
}

FRIT_INLINE vec bytes_as_words(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}

FRIT_INLINE vec max_words(vec a, vec b)
{
    return _mm512_max_epi32(a, b);
}

FRIT_INLINE vec add_words(vec a, vec b)
{
    return _mm512_add_epi32(a, b);
}

FRIT_INLINE vec sub_words(vec a, vec b)
{
    return _mm512_sub_epi32(a, b);
}

FRIT_INLINE vec_f zero_f(void)
{
    return _mm512_setzero_ps();
}

FRIT_INLINE vec_f splat_f(float value)
{
    return _mm512_set1_ps(value);
}

FRIT_INLINE vec_f mul(vec_f a, vec_f b)
{
    return _mm512_mul_ps(a, b);
}

FRIT_INLINE vec_f mul_add(vec_f a, vec_f b, vec_f c)   // a * b + c
{
    return _mm512_fmadd_ps(a, b, c);
}

FRIT_INLINE vec_f mul_sub_from(vec_f a, vec_f b, vec_f c)   // c - a * b
{
    return _mm512_fnmadd_ps(a, b, c);
}

FRIT_INLINE void store(float *y, vec_f v, int n)   // the first n lanes
{
    if (n == LANES)
        _mm512_storeu_ps(y, v);
    else
        _mm512_mask_storeu_ps(y, (__mmask16)((1u << n) - 1), v);
}
