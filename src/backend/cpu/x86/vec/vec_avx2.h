// SPDX-License-Identifier: MIT
// backend/cpu/x86/vec/vec_avx2.h: the plain operations of packed_tmpl.h on words of eight rows, without products of
// bytes.
#pragma once
#include "backend/cpu/kernels.h"

#include <immintrin.h>
#include <string.h>

typedef __m256i vec;    // words, one for each row
typedef __m256 vec_f;   // floats, one for each row
typedef const int8_t *x_quads;

#define LANES               8
#define MAX_TOKENS          2   // larger blocks of tokens are multiplied by two strips at once
#define MAX_TOKENS_G16      2
#define BLOCK_SUMS          192
#define TOKEN_GROUP         1
#define DIRECT_TOKENS       2
#define ACCUMULATORS        1
#define PAIRS_ONLY_IN_ORDER 0

FRIT_INLINE vec zero(void)
{
    return _mm256_setzero_si256();
}

FRIT_INLINE vec load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

FRIT_INLINE vec splat_bytes(int value)
{
    return _mm256_set1_epi8((char)value);
}

FRIT_INLINE vec splat_words(int value)
{
    return _mm256_set1_epi32(value);
}

FRIT_INLINE vec broadcast_word(const void *p)   // the word at p
{
    int32_t word;
    memcpy(&word, p, 4);
    return _mm256_set1_epi32(word);
}

FRIT_INLINE void keep_order(vec *v)
{
    FRIT_KEEP_ORDER(v, "x");
}

FRIT_INLINE vec broadcast_in_order(const void *p)
{
    vec words = broadcast_word(p);
    keep_order(&words);
    return words;
}

// The word at p in all words, by a separate instruction that the compiler neither moves nor merges.
FRIT_INLINE vec broadcast_by_load(const int8_t *p)
{
    const int32_t *word = (const void *)p;
    vec words;
    __asm__("vpbroadcastd %1, %0" : "=x"(words) : "m"(*word));
    return words;
}

FRIT_INLINE x_quads four_quads(const int8_t *p)
{
    return p;
}

FRIT_INLINE vec bit_and(vec a, vec b)
{
    return _mm256_and_si256(a, b);
}

FRIT_INLINE vec bit_or(vec a, vec b)
{
    return _mm256_or_si256(a, b);
}

FRIT_INLINE vec masked_or(vec a, vec b, vec mask)   // a | (b & mask)
{
    return bit_or(a, bit_and(b, mask));
}

FRIT_INLINE vec bit_xor(vec a, vec b)
{
    return _mm256_xor_si256(a, b);
}

FRIT_INLINE vec shift_right(vec v, int n)   // shifts words; the caller masks bits that cross bytes
{
    return n ? _mm256_srli_epi32(v, n) : v;
}

FRIT_INLINE vec shift_left(vec v, int n)
{
    return n ? _mm256_slli_epi32(v, n) : v;
}

FRIT_INLINE vec shift_right_signed(vec v, int n)
{
    return _mm256_srai_epi32(v, n);
}

FRIT_INLINE vec add_bytes(vec a, vec b)
{
    return _mm256_add_epi8(a, b);
}

FRIT_INLINE vec sub_bytes(vec a, vec b)
{
    return _mm256_sub_epi8(a, b);
}

FRIT_INLINE vec min_bytes(vec a, vec b)
{
    return _mm256_min_epu8(a, b);
}

FRIT_INLINE vec max_words(vec a, vec b)
{
    return _mm256_max_epi32(a, b);
}

FRIT_INLINE vec add_words(vec a, vec b)
{
    return _mm256_add_epi32(a, b);
}

FRIT_INLINE vec sub_words(vec a, vec b)
{
    return _mm256_sub_epi32(a, b);
}

FRIT_INLINE vec shuffle(const uint8_t table[16], vec index)
{
    const __m128i t = _mm_loadu_si128((const __m128i *)(const void *)table);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(t), index);
}

FRIT_INLINE vec broadcast_byte(vec v, int i)   // byte i of each word to all four
{
    const __m128i first = _mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12);
    const __m128i pick = _mm_add_epi8(first, _mm_set1_epi8((char)i));
    return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(pick));
}

FRIT_INLINE vec bytes_as_words(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}

FRIT_INLINE void prefetch(const uint8_t *p)   // a cache line
{
    _mm_prefetch((const char *)p, _MM_HINT_T0);
}

FRIT_INLINE vec_f to_float(vec v)
{
    return _mm256_cvtepi32_ps(v);
}

FRIT_INLINE vec to_int(vec_f v)   // v has integers
{
    return _mm256_cvtps_epi32(v);
}

FRIT_INLINE vec_f as_float(vec bits)
{
    return _mm256_castsi256_ps(bits);
}

FRIT_INLINE vec_f load_f16s(const uint8_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}

FRIT_INLINE vec_f low_f16s(vec v)
{
    const vec low = bit_and(v, splat_words(0xffff));
    return _mm256_cvtph_ps(_mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1)));
}

FRIT_INLINE vec_f zero_f(void)
{
    return _mm256_setzero_ps();
}

FRIT_INLINE vec_f splat_f(float value)
{
    return _mm256_set1_ps(value);
}

FRIT_INLINE vec_f mul(vec_f a, vec_f b)
{
    return _mm256_mul_ps(a, b);
}

FRIT_INLINE vec_f mul_add(vec_f a, vec_f b, vec_f c)   // a * b + c
{
    return _mm256_fmadd_ps(a, b, c);
}

FRIT_INLINE vec_f mul_sub_from(vec_f a, vec_f b, vec_f c)   // c - a * b
{
    return _mm256_fnmadd_ps(a, b, c);
}

// Stores the first n lanes. A masked store takes 11 cycles on Zen 3.
FRIT_INLINE void store(float *y, vec_f v, int n)
{
    if (n == LANES) {
        _mm256_storeu_ps(y, v);
        return;
    }
    const vec lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_maskstore_ps(y, _mm256_cmpgt_epi32(splat_words(n), lanes), v);
}
