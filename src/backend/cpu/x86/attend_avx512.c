// SPDX-License-Identifier: MIT
// Attention of few queries for AVX-512; the numbers of a head are the lanes.
//
//     scores   sixteen sums in registers: 4 queries x 4 keys, 2 x 8 or 1 x 16; all of them are folded at once
//     values   4 queries x 64 numbers in registers while positions run
#include "backend/cpu/x86/avx512.h"
#include "backend/cpu/x86/math_avx512.h"
#include "quant/blocks.h"
#include "quant/levels.h"

#include <math.h>
#include <string.h>

// Sixteen numbers as f32: elements [i, i + 16) where the mask is set, zeros elsewhere.
typedef __m512 (*load_fn)(const uint8_t *elems, int64_t i, __mmask16 mask);

FRIT_INLINE __m512 load_f32(const uint8_t *elems, int64_t i, __mmask16 mask)
{
    return _mm512_maskz_loadu_ps(mask, elems + 4 * i);
}

FRIT_INLINE __m512 load_f16(const uint8_t *elems, int64_t i, __mmask16 mask)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, elems + 2 * i));
}

FRIT_INLINE __m512 load_bf16(const uint8_t *elems, int64_t i, __mmask16 mask)
{
    const __m512i words = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, elems + 2 * i));
    return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
}

FRIT_INLINE __mmask16 first_lanes(int64_t n)
{
    return n >= 16 ? 0xffff : (__mmask16)((1u << n) - 1);
}

// Types with blocks of 32: i is a multiple of 16, and no number is masked. Low nibbles are the block's first sixteen.

FRIT_INLINE __m512 half_scale(const uint8_t *p)
{
    uint16_t half;
    memcpy(&half, p, 2);
    return _mm512_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
}

FRIT_INLINE __m128i load_nibbles(const uint8_t *qs, int64_t i)
{
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)qs);
    return _mm_and_si128(_mm_srli_epi16(bytes, i % 32 ? 4 : 0), _mm_set1_epi8(15));
}

FRIT_INLINE __m512i add_fifth_bits(__m512i codes, const uint8_t *qh, int64_t i)
{
    uint16_t bits;
    memcpy(&bits, qh + i % 32 / 8, 2);
    return _mm512_mask_add_epi32(codes, bits, codes, _mm512_set1_epi32(16));
}

FRIT_INLINE __m512 scaled(__m512i codes, int less, const uint8_t *d)
{
    return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(codes, _mm512_set1_epi32(less))), half_scale(d));
}

FRIT_INLINE __m512 scaled_from(__m512i codes, const uint8_t *d, const uint8_t *m)
{
    return _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(codes), half_scale(d)), half_scale(m));
}

#define BLOCK(type)       const uint8_t *b = elems + i / 32 * (int64_t)sizeof(type)
#define PART(type, field) (b + offsetof(type, field))

FRIT_INLINE __m512 load_q8_0(const uint8_t *elems, int64_t i, __mmask16 mask)
{
    (void)mask;
    BLOCK(frit_block_q8_0);
    const __m128i codes = _mm_loadu_si128((const __m128i *)(const void *)(PART(frit_block_q8_0, qs) + i % 32));
    return scaled(_mm512_cvtepi8_epi32(codes), 0, PART(frit_block_q8_0, d));
}

FRIT_INLINE __m512 load_q4_0(const uint8_t *elems, int64_t i, __mmask16 mask)
{
    (void)mask;
    BLOCK(frit_block_q4_0);
    const __m128i codes = load_nibbles(PART(frit_block_q4_0, qs), i);
    return scaled(_mm512_cvtepu8_epi32(codes), 8, PART(frit_block_q4_0, d));
}

FRIT_INLINE __m512 load_q4_1(const uint8_t *elems, int64_t i, __mmask16 mask)
{
    (void)mask;
    BLOCK(frit_block_q4_1);
    const __m128i codes = load_nibbles(PART(frit_block_q4_1, qs), i);
    return scaled_from(_mm512_cvtepu8_epi32(codes), PART(frit_block_q4_1, d), PART(frit_block_q4_1, m));
}

FRIT_INLINE __m512 load_iq4_nl(const uint8_t *elems, int64_t i, __mmask16 mask)
{
    (void)mask;
    BLOCK(frit_block_iq4_nl);
    const __m128i table = _mm_loadu_si128((const __m128i *)(const void *)frit_iq4_levels);
    const __m128i codes = _mm_shuffle_epi8(table, load_nibbles(PART(frit_block_iq4_nl, qs), i));
    return scaled(_mm512_cvtepi8_epi32(codes), 0, PART(frit_block_iq4_nl, d));
}

FRIT_INLINE __m512 load_q5_0(const uint8_t *elems, int64_t i, __mmask16 mask)
{
    (void)mask;
    BLOCK(frit_block_q5_0);
    const __m512i codes = _mm512_cvtepu8_epi32(load_nibbles(PART(frit_block_q5_0, qs), i));
    return scaled(add_fifth_bits(codes, PART(frit_block_q5_0, qh), i), 16, PART(frit_block_q5_0, d));
}

FRIT_INLINE __m512 load_q5_1(const uint8_t *elems, int64_t i, __mmask16 mask)
{
    (void)mask;
    BLOCK(frit_block_q5_1);
    const __m512i codes = _mm512_cvtepu8_epi32(load_nibbles(PART(frit_block_q5_1, qs), i));
    return scaled_from(add_fifth_bits(codes, PART(frit_block_q5_1, qh), i), PART(frit_block_q5_1, d),
                       PART(frit_block_q5_1, m));
}

// ------------------------------------------------------------------------------- scores

// The sums of sixteen vectors, in the order 0...3, 8...11, 4...7, 12...15: each step adds two halves of all of them.
FRIT_INLINE __m512 fold(__m512 v[16])
{
    for (int i = 0; i < 8; i++)
        v[i] = _mm512_add_ps(_mm512_shuffle_f32x4(v[i], v[i + 8], 0x44), _mm512_shuffle_f32x4(v[i], v[i + 8], 0xee));
    for (int i = 0; i < 4; i++)
        v[i] = _mm512_add_ps(_mm512_shuffle_f32x4(v[i], v[i + 4], 0x88), _mm512_shuffle_f32x4(v[i], v[i + 4], 0xdd));
    for (int i = 0; i < 2; i++)
        v[i] = _mm512_add_ps(_mm512_unpacklo_ps(v[i], v[i + 2]), _mm512_unpackhi_ps(v[i], v[i + 2]));
    return _mm512_add_ps(_mm512_unpacklo_ps(v[0], v[1]), _mm512_unpackhi_ps(v[0], v[1]));
}

FRIT_INLINE void add_scores(__m512 sums[16], const float *q, int n_q, const uint8_t *const *rows, int64_t dim,
                            int64_t d, __mmask16 mask, load_fn load)
{
    const int n_p = 16 / n_q;
    for (int p = 0; p < n_p; p++) {
        const __m512 ks = load(rows[p], d, mask);
        for (int i = 0; i < n_q; i++) {
            const __m512 qs = _mm512_maskz_loadu_ps(mask, q + i * dim + d);
            sums[i * n_p + p] = _mm512_fmadd_ps(qs, ks, sums[i * n_p + p]);
        }
    }
}

// n_q (1, 2 or 4) queries and 16 / n_q keys; of the scores only those of n_p positions are stored.
FRIT_INLINE void score_tile(float *s, const float *q, int n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim,
                            load_fn load)
{
    static const int order[4] = {0, 8, 4, 12};
    const int in_tile = 16 / n_q;
    __m512 sums[16];
    for (int i = 0; i < 16; i++) sums[i] = _mm512_setzero_ps();
    int64_t d = 0;
    for (; d + 16 <= dim; d += 16) add_scores(sums, q, n_q, rows, dim, d, 0xffff, load);
    if (d < dim) add_scores(sums, q, n_q, rows, dim, d, first_lanes(dim - d), load);
    const __m512 all = fold(sums);
    const __m128 parts[4] = {_mm512_castps512_ps128(all), _mm512_extractf32x4_ps(all, 1),
                             _mm512_extractf32x4_ps(all, 2), _mm512_extractf32x4_ps(all, 3)};
    for (int g = 0; g < 4; g++) {
        const int i = order[g] / in_tile, p = order[g] % in_tile;
        const int64_t left = n_p - p;
        const __mmask8 mask = left >= 4 ? 0xf : left <= 0 ? 0 : (__mmask8)((1u << left) - 1);
        _mm_mask_storeu_ps(s + i * FRIT_ATTEND_ROWS + p, mask, parts[g]);
    }
}

// Keys behind the last one are not read: the last tiles of a page overlap.
FRIT_INLINE void score_rows(float *s, const float *q, int n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim,
                            load_fn load)
{
    const int in_tile = 16 / n_q;
    if (n_p >= in_tile) {
        for (int64_t p = 0; p < n_p; p += in_tile) {
            const int64_t at = p + in_tile <= n_p ? p : n_p - in_tile;
            score_tile(s + at, q, n_q, rows + at, in_tile, dim, load);
        }
        return;
    }
    for (int64_t p = 0; p < n_p; p++) {   // each key alone: it stands for all keys of its tile
        const uint8_t *same[16];
        for (int i = 0; i < in_tile; i++) same[i] = rows[p];
        score_tile(s + p, q, n_q, same, 1, dim, load);
    }
}

FRIT_INLINE void scores(float *s, const float *q, int64_t n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim,
                        load_fn load)
{
    int64_t i = 0;
    for (; i + 4 <= n_q; i += 4) score_rows(s + i * FRIT_ATTEND_ROWS, q + i * dim, 4, rows, n_p, dim, load);
    for (; i + 2 <= n_q; i += 2) score_rows(s + i * FRIT_ATTEND_ROWS, q + i * dim, 2, rows, n_p, dim, load);
    if (i < n_q) score_rows(s + i * FRIT_ATTEND_ROWS, q + i * dim, 1, rows, n_p, dim, load);
}

// ------------------------------------------------------------------------------- values

// n_q queries and n_v vectors of sixteen numbers are constants where this is inlined; `mask` is that of the last
// vector.
FRIT_INLINE void value_tile(float *acc, const float *s, int n_q, const uint8_t *const *rows, int64_t n_p, int64_t d,
                            int n_v, int64_t dim, __mmask16 mask, load_fn load)
{
    __m512 sums[4][4];
    for (int i = 0; i < n_q; i++)
        for (int a = 0; a < n_v; a++)
            sums[i][a] = _mm512_maskz_loadu_ps(a == n_v - 1 ? mask : 0xffff, acc + i * dim + d + 16 * a);
    for (int64_t p = 0; p < n_p; p++) {
        __m512 vs[4];
        for (int a = 0; a < n_v; a++) vs[a] = load(rows[p], d + 16 * a, a == n_v - 1 ? mask : 0xffff);
        for (int i = 0; i < n_q; i++) {
            const __m512 weight = _mm512_set1_ps(s[i * FRIT_ATTEND_ROWS + p]);
            for (int a = 0; a < n_v; a++) sums[i][a] = _mm512_fmadd_ps(weight, vs[a], sums[i][a]);
        }
    }
    for (int i = 0; i < n_q; i++)
        for (int a = 0; a < n_v; a++)
            _mm512_mask_storeu_ps(acc + i * dim + d + 16 * a, a == n_v - 1 ? mask : 0xffff, sums[i][a]);
}

FRIT_INLINE void value_rows(float *acc, const float *s, int n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim,
                            load_fn load)
{
    int64_t d = 0;
    for (; d + 64 <= dim; d += 64) value_tile(acc, s, n_q, rows, n_p, d, 4, dim, 0xffff, load);
    for (; d < dim; d += 16) value_tile(acc, s, n_q, rows, n_p, d, 1, dim, first_lanes(dim - d), load);
}

FRIT_INLINE void values(float *acc, const float *s, int64_t n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim,
                        load_fn load)
{
    int64_t i = 0;
    for (; i + 4 <= n_q; i += 4) value_rows(acc + i * dim, s + i * FRIT_ATTEND_ROWS, 4, rows, n_p, dim, load);
    for (; i < n_q; i++) value_rows(acc + i * dim, s + i * FRIT_ATTEND_ROWS, 1, rows, n_p, dim, load);
}

// ------------------------------------------------------------------------------- softmax

static float max(const float *x, int64_t n)
{
    __m512 top = _mm512_set1_ps(-INFINITY);
    for (int64_t i = 0; i < n; i += 16)
        top = _mm512_mask_max_ps(top, first_lanes(n - i), top, _mm512_maskz_loadu_ps(first_lanes(n - i), x + i));
    return _mm512_reduce_max_ps(top);
}

static float exp_sum(float *x, float top, int64_t n)
{
    const __m512 t = _mm512_set1_ps(top);
    __m512 sum = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 mask = first_lanes(n - i);
        const __m512 e = exp_16(_mm512_sub_ps(_mm512_maskz_loadu_ps(mask, x + i), t));
        _mm512_mask_storeu_ps(x + i, mask, e);
        sum = _mm512_mask_add_ps(sum, mask, sum, e);
    }
    return _mm512_reduce_add_ps(sum);
}

// ------------------------------------------------------------------------------- types

#define TYPES(ROW)      \
    ROW(F32, f32)       \
    ROW(F16, f16)       \
    ROW(BF16, bf16)     \
    ROW(Q8_0, q8_0)     \
    ROW(Q4_0, q4_0)     \
    ROW(Q4_1, q4_1)     \
    ROW(IQ4_NL, iq4_nl) \
    ROW(Q5_0, q5_0)     \
    ROW(Q5_1, q5_1)

#define DEFINE(NAME, name)                                                                                      \
    static void scores_##name(float *s, const float *q, int64_t n_q, const uint8_t *const *rows, int64_t n_p,   \
                              int64_t dim)                                                                      \
    {                                                                                                           \
        scores(s, q, n_q, rows, n_p, dim, load_##name);                                                         \
    }                                                                                                           \
    static void values_##name(float *acc, const float *s, int64_t n_q, const uint8_t *const *rows, int64_t n_p, \
                              int64_t dim)                                                                      \
    {                                                                                                           \
        values(acc, s, n_q, rows, n_p, dim, load_##name);                                                       \
    }
TYPES(DEFINE)
#undef DEFINE

void frit_install_avx512_attend(frit_kernels *k)
{
#define INSTALL(NAME, name)                              \
    k->attend_scores[FRIT_DTYPE_##NAME] = scores_##name; \
    k->attend_values[FRIT_DTYPE_##NAME] = values_##name;
    TYPES(INSTALL)
#undef INSTALL
    k->max = max;
    k->exp_sum = exp_sum;
}
