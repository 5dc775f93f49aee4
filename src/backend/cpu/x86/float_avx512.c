// SPDX-License-Identifier: MIT
// Products with f32, f16, bf16 and fp8_128 weights for AVX-512. AVX512-BF16 is not used: its instruction has a quarter
// of vfmadd's rate on Sapphire Rapids, and would round every activation to eight bits.
#include "backend/cpu/x86/vec/avx512.h"

#include <immintrin.h>

typedef __m512 vec_f;
typedef vec_f (*load_fn)(const uint8_t *elems, int64_t i);
typedef vec_f (*load_tail_fn)(const uint8_t *elems, int64_t i, int64_t n);

enum {
    LANES = 16,
    COLUMNS = 1024,
    BAND_ROWS = 16,
    TILE_ROWS = 4,
    TILE_TOKENS = 6,
    IN_ORDER_ROWS = 1,
    IN_ORDER_AHEAD = 8 << 10,   // bytes
    ROWS_OF_TWO = 8,
    MAX_SUMS = 24,
};

FRIT_INLINE __mmask16 mask_of(int64_t n)
{
    return (__mmask16)((1u << n) - 1);
}

FRIT_INLINE vec_f zero_f(void)
{
    return _mm512_setzero_ps();
}

FRIT_INLINE vec_f mul_add(vec_f a, vec_f b, vec_f c)   // a * b + c
{
    return _mm512_fmadd_ps(a, b, c);
}

FRIT_INLINE void prefetch(const uint8_t *p)
{
    _mm_prefetch((const char *)p, _MM_HINT_T0);
}

FRIT_INLINE void store_f32(float *y, vec_f v)
{
    _mm512_storeu_ps(y, v);
}

FRIT_INLINE vec_f load_f32(const uint8_t *elems, int64_t i)
{
    return _mm512_loadu_ps(elems + 4 * i);
}

FRIT_INLINE vec_f load_tail_f32(const uint8_t *elems, int64_t i, int64_t n)
{
    return _mm512_maskz_loadu_ps(mask_of(n), elems + 4 * i);
}

FRIT_INLINE vec_f load_f16(const uint8_t *elems, int64_t i)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(elems + 2 * i)));
}

FRIT_INLINE vec_f load_tail_f16(const uint8_t *elems, int64_t i, int64_t n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask_of(n), elems + 2 * i));
}

FRIT_INLINE vec_f of_bf16(__m256i v)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
}

FRIT_INLINE vec_f load_bf16(const uint8_t *elems, int64_t i)
{
    return of_bf16(_mm256_loadu_si256((const __m256i *)(const void *)(elems + 2 * i)));
}

FRIT_INLINE vec_f load_tail_bf16(const uint8_t *elems, int64_t i, int64_t n)
{
    return of_bf16(_mm256_maskz_loadu_epi16(mask_of(n), elems + 2 * i));
}

// The sums of the lanes of four vectors, added within 128 bits first.
FRIT_INLINE __m128 sum_4(vec_f a, vec_f b, vec_f c, vec_f d)
{
    const vec_f ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    const vec_f cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    const vec_f all = _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
    return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

FRIT_INLINE void store_4(float *y, __m128 sums, bool add)   // add: to the values of y
{
    _mm_storeu_ps(y, add ? _mm_add_ps(sums, _mm_loadu_ps(y)) : sums);
}

FRIT_INLINE float sum_1(vec_f v)   // adds in the order of sum_4
{
    return _mm_cvtss_f32(sum_4(v, v, v, v));
}

// LANES codes of e4m3, times `scale`. A code is an f16 number divided by 256.
FRIT_INLINE vec_f load_e4m3(const uint8_t *codes, float scale)
{
    const __m256i c = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)codes));
    const __m256i sign = _mm256_slli_epi16(_mm256_and_si256(c, _mm256_set1_epi16(0x80)), 8);
    const __m256i size = _mm256_slli_epi16(_mm256_and_si256(c, _mm256_set1_epi16(0x7f)), 7);
    return _mm512_mul_ps(_mm512_cvtph_ps(_mm256_or_si256(sign, size)), _mm512_set1_ps(scale));
}

#include "backend/cpu/tmpl/float_tmpl.h"

void frit_install_avx512(frit_kernels *k)
{
    frit_install_avx512_attend(k);
    frit_install_avx512_attend_tile(k);
    frit_install_avx512_state(k);
    frit_install_avx512_descend(k);
    install(k, "avx512");
}
