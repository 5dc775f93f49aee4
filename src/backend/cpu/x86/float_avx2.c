// SPDX-License-Identifier: MIT
// Products with f32, f16, bf16 and fp8_128 weights for AVX2.
#include "backend/cpu/x86/vec/avx2.h"

typedef __m256 vec_f;

enum {
    LANES = 8,
    COLUMNS = 512,
    BAND_ROWS = 8,
    TILE_ROWS = 4,
    TILE_TOKENS = 3,
    IN_ORDER_ROWS = 2,
    IN_ORDER_AHEAD = 32 << 10,   // bytes
    ROWS_OF_TWO = 4,
    MAX_SUMS = 12,
};

FRIT_INLINE vec_f zero_f(void)
{
    return _mm256_setzero_ps();
}

FRIT_INLINE vec_f mul_add(vec_f a, vec_f b, vec_f c)   // a * b + c
{
    return _mm256_fmadd_ps(a, b, c);
}

FRIT_INLINE void prefetch(const uint8_t *p)
{
    _mm_prefetch((const char *)p, _MM_HINT_T0);
}

FRIT_INLINE void store_f32(float *y, vec_f v)
{
    _mm256_storeu_ps(y, v);
}

// The sums of the lanes of four vectors, added within 128 bits first.
FRIT_INLINE __m128 sum_4(vec_f a, vec_f b, vec_f c, vec_f d)
{
    const vec_f ab = _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    const vec_f cd = _mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    const vec_f all = _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
    return _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
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
    const __m128i c = _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)(const void *)codes));
    const __m128i sign = _mm_slli_epi16(_mm_and_si128(c, _mm_set1_epi16(0x80)), 8);
    const __m128i size = _mm_slli_epi16(_mm_and_si128(c, _mm_set1_epi16(0x7f)), 7);
    return _mm256_mul_ps(_mm256_cvtph_ps(_mm_or_si128(sign, size)), _mm256_set1_ps(scale));
}

#include "backend/cpu/tmpl/float_tmpl.h"

void frit_install_avx2_float(frit_kernels *k)
{
    install(k, "avx2");
}
