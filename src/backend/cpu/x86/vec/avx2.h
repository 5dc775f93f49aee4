// SPDX-License-Identifier: MIT
// backend/cpu/x86/vec/avx2.h: shared by the kernel files for AVX2 (with FMA and F16C). Only they include it.
#pragma once
#include "backend/cpu/kernels.h"

#include <immintrin.h>
#include <string.h>

// The parts of frit_install_avx2.
void frit_install_avx2_float(frit_kernels *kernels);      // products with f32, f16 and bf16
void frit_install_avx2_block32(frit_kernels *kernels);    // products with types in blocks of 32
void frit_install_avx2_block256(frit_kernels *kernels);   // products with types in blocks of 256
void frit_install_avx2_packed(frit_kernels *kernels);     // products with packed weights
void frit_install_avx2_convert(frit_kernels *kernels);
void frit_install_avx2_vector(frit_kernels *kernels);
void frit_install_avx2_attend(frit_kernels *kernels);        // attention by rows
void frit_install_avx2_attend_tile(frit_kernels *kernels);   // attention by tiles
void frit_install_avx2_state(frit_kernels *kernels);
void frit_install_avx2_descend(frit_kernels *kernels);

FRIT_INLINE float sum_8(__m256 v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

FRIT_INLINE float max_8(__m256 v)
{
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

// The first n lanes.
FRIT_INLINE __m256i mask_of(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// Eight elements of a type as f32: elements [i, i + 8), or for tails [i, i + n) and zeros after them.
typedef __m256 (*load_fn)(const uint8_t *elems, int64_t i);
typedef __m256 (*load_tail_fn)(const uint8_t *elems, int64_t i, int64_t n);

FRIT_INLINE __m256 load_f32(const uint8_t *elems, int64_t i)
{
    return _mm256_loadu_ps((const float *)(const void *)(elems + 4 * i));
}

FRIT_INLINE __m256 load_tail_f32(const uint8_t *elems, int64_t i, int64_t n)
{
    return _mm256_maskload_ps((const float *)(const void *)(elems + 4 * i), mask_of(n));
}

FRIT_INLINE __m128i load_16_bit(const uint8_t *elems, int64_t i)
{
    return _mm_loadu_si128((const __m128i *)(const void *)(elems + 2 * i));
}

FRIT_INLINE __m128i load_tail_16_bit(const uint8_t *elems, int64_t i, int64_t n)
{
    uint16_t part[8] = {0};
    memcpy(part, elems + 2 * i, (size_t)n * 2);
    return _mm_loadu_si128((const __m128i *)(const void *)part);
}

FRIT_INLINE __m256 load_f16(const uint8_t *elems, int64_t i)
{
    return _mm256_cvtph_ps(load_16_bit(elems, i));
}

FRIT_INLINE __m256 load_tail_f16(const uint8_t *elems, int64_t i, int64_t n)
{
    return _mm256_cvtph_ps(load_tail_16_bit(elems, i, n));
}

FRIT_INLINE __m256 bf16_to_f32(__m128i v)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
}

FRIT_INLINE __m256 load_bf16(const uint8_t *elems, int64_t i)
{
    return bf16_to_f32(load_16_bit(elems, i));
}

FRIT_INLINE __m256 load_tail_bf16(const uint8_t *elems, int64_t i, int64_t n)
{
    return bf16_to_f32(load_tail_16_bit(elems, i, n));
}

// An f16 at any address.
FRIT_INLINE float f16_at(const void *p)
{
    uint16_t half;
    memcpy(&half, p, 2);
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
}

FRIT_INLINE __m256i load_32_bytes(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}
