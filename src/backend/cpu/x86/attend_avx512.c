// SPDX-License-Identifier: MIT
// Attention by rows (ops/attend.h) for AVX-512.
//
//     scores   4 queries x 32 transposed keys in registers, or 4 x 16 others; lanes are keys
//     values   4 queries x 64 elements in registers, in a loop over positions; lanes are elements
#include "backend/cpu/x86/vec/avx512.h"
#include "backend/cpu/x86/vec/math_avx512.h"
#include "quant/blocks.h"
#include "quant/levels.h"

#include <math.h>
#include <string.h>

// Loads elements [i, i + 16) as f32; zeros where the mask is not set.
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
    return n >= 16 ? 0xffff : n <= 0 ? 0 : (__mmask16)((1u << n) - 1);
}

// For types with blocks of 32: i is a multiple of 16, and no element is masked. Low nibbles are elements 0 to 15.

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

// Transposes 16 x 16.
FRIT_INLINE void transpose_16(__m512 v[16])
{
    __m512 t[16];
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {   // columns 0, 1, 2, 3 of four rows, and 4, 8, 12 columns on
        const __m512d low[2] = {_mm512_castps_pd(t[i]), _mm512_castps_pd(t[i + 2])};
        const __m512d high[2] = {_mm512_castps_pd(t[i + 1]), _mm512_castps_pd(t[i + 3])};
        v[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(low[0], low[1]));
        v[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low[0], low[1]));
        v[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high[0], high[1]));
        v[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high[0], high[1]));
    }
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_f32x4(v[i], v[4 + i], 0x88);
        t[4 + i] = _mm512_shuffle_f32x4(v[i], v[4 + i], 0xdd);
        t[8 + i] = _mm512_shuffle_f32x4(v[8 + i], v[12 + i], 0x88);
        t[12 + i] = _mm512_shuffle_f32x4(v[8 + i], v[12 + i], 0xdd);
    }
    for (int i = 0; i < 4; i++) {
        v[i] = _mm512_shuffle_f32x4(t[i], t[8 + i], 0x88);
        v[4 + i] = _mm512_shuffle_f32x4(t[4 + i], t[12 + i], 0x88);
        v[8 + i] = _mm512_shuffle_f32x4(t[i], t[8 + i], 0xdd);
        v[12 + i] = _mm512_shuffle_f32x4(t[4 + i], t[12 + i], 0xdd);
    }
}

// Scores of n_q queries, a constant where this is inlined, and sixteen keys; stores n_p of the scores. A score adds its
// products in order, as in attend_tile_tmpl.h.
FRIT_INLINE void score_tile(float *s, const float *q, int n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim,
                            load_fn load)
{
    __m512 sums[4], keys[16];
    for (int i = 0; i < n_q; i++) sums[i] = _mm512_setzero_ps();
    int64_t d = 0;
    for (; d + 16 <= dim; d += 16) {
        for (int p = 0; p < 16; p++) keys[p] = load(rows[p], d, 0xffff);
        transpose_16(keys);
        FRIT_UNROLL(16)
        for (int k = 0; k < 16; k++)
            for (int i = 0; i < n_q; i++)
                sums[i] = _mm512_fmadd_ps(_mm512_set1_ps(q[i * dim + d + k]), keys[k], sums[i]);
    }
    if (d < dim) {
        for (int p = 0; p < 16; p++) keys[p] = load(rows[p], d, first_lanes(dim - d));
        transpose_16(keys);
        for (int k = 0; d + k < dim; k++)
            for (int i = 0; i < n_q; i++)
                sums[i] = _mm512_fmadd_ps(_mm512_set1_ps(q[i * dim + d + k]), keys[k], sums[i]);
    }
    for (int i = 0; i < n_q; i++) _mm512_mask_storeu_ps(s + i * FRIT_ATTEND_ROWS, first_lanes(n_p), sums[i]);
}

// Reads no key after the last one; the last key fills the other lanes.
FRIT_INLINE void score_rows(float *s, const float *q, int n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim,
                            load_fn load)
{
    int64_t p = 0;
    for (; p + 16 <= n_p; p += 16) score_tile(s + p, q, n_q, rows + p, 16, dim, load);
    if (p == n_p) return;
    const uint8_t *last[16];
    for (int64_t i = 0; i < 16; i++) last[i] = rows[p + i < n_p ? p + i : n_p - 1];
    score_tile(s + p, q, n_q, last, n_p - p, dim, load);
}

FRIT_INLINE void scores(float *s, const float *q, int64_t n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim,
                        load_fn load)
{
    int64_t i = 0;
    for (; i + 4 <= n_q; i += 4) score_rows(s + i * FRIT_ATTEND_ROWS, q + i * dim, 4, rows, n_p, dim, load);
    for (; i + 2 <= n_q; i += 2) score_rows(s + i * FRIT_ATTEND_ROWS, q + i * dim, 2, rows, n_p, dim, load);
    if (i < n_q) score_rows(s + i * FRIT_ATTEND_ROWS, q + i * dim, 1, rows, n_p, dim, load);
}

// Scores of a page of transposed keys: FRIT_PAGE_TOKENS positions of each dimension are contiguous.
FRIT_INLINE void score_page(float *s, const float *q, int n_q, const frit_attend_keys *k, int64_t dim, load_fn load)
{
    __m512 sums[4][2];
    for (int i = 0; i < n_q; i++) sums[i][0] = sums[i][1] = _mm512_setzero_ps();
    for (int64_t d = 0; d < dim; d++) {
        const __m512 ks[2] = {load(k->page, d * FRIT_PAGE_TOKENS, 0xffff),
                              load(k->page, d * FRIT_PAGE_TOKENS + 16, 0xffff)};
        _mm_prefetch((const char *)k->ahead[0] + 64 * d, _MM_HINT_T0);
        _mm_prefetch((const char *)k->ahead[1] + 64 * d, _MM_HINT_T1);
        for (int i = 0; i < n_q; i++) {
            const __m512 qs = _mm512_set1_ps(q[i * dim + d]);
            for (int half = 0; half < 2; half++) sums[i][half] = _mm512_fmadd_ps(qs, ks[half], sums[i][half]);
        }
    }
    for (int i = 0; i < n_q; i++)
        for (int half = 0; half < 2; half++) _mm512_storeu_ps(s + i * FRIT_ATTEND_ROWS + 16 * half, sums[i][half]);
}

FRIT_INLINE void page_scores(float *s, const float *q, int64_t n_q, const frit_attend_keys *keys, int64_t dim,
                             load_fn load)
{
    int64_t i = 0;
    for (; i + 4 <= n_q; i += 4) score_page(s + i * FRIT_ATTEND_ROWS, q + i * dim, 4, keys, dim, load);
    for (; i + 2 <= n_q; i += 2) score_page(s + i * FRIT_ATTEND_ROWS, q + i * dim, 2, keys, dim, load);
    if (i < n_q) score_page(s + i * FRIT_ATTEND_ROWS, q + i * dim, 1, keys, dim, load);
}

#define DEFINE_PAGE(NAME, name)                                                                                      \
    static void page_scores_##name(float *s, const float *q, int64_t n_q, const frit_attend_keys *keys, int64_t dim) \
    {                                                                                                                \
        page_scores(s, q, n_q, keys, dim, load_##name);                                                              \
    }
DEFINE_PAGE(F32, f32)
DEFINE_PAGE(F16, f16)
DEFINE_PAGE(BF16, bf16)
#undef DEFINE_PAGE

// ------------------------------------------------------------------------------- values

// Adds weighted values: n_q queries, n_v vectors of sixteen elements, both constants where this is inlined. `mask` is
// for the last vector.
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

static float weigh_scores(float *s, int64_t begin, int64_t end, int64_t n, float *top, float *sum)
{
    __m512 most = _mm512_set1_ps(-INFINITY);
    for (int64_t i = begin; i < end; i += 16)
        most = _mm512_mask_max_ps(most, first_lanes(end - i), most, _mm512_maskz_loadu_ps(first_lanes(end - i), s + i));
    const float now = _mm512_reduce_max_ps(most), larger = now > *top ? now : *top;
    const float shrink = now > *top ? _mm512_cvtss_f32(weight_16(_mm512_set1_ps(*top - larger))) : 1;
    __m512 part = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 seen = first_lanes(end - i) & (__mmask16)~first_lanes(begin - i);
        const __m512 e = weight_16(_mm512_sub_ps(_mm512_maskz_loadu_ps(seen, s + i), _mm512_set1_ps(larger)));
        _mm512_storeu_ps(s + i, _mm512_maskz_mov_ps(seen, e));
        part = _mm512_mask_add_ps(part, seen, part, e);
    }
    float lanes[16];
    _mm512_storeu_ps(lanes, part);
    for (int half = 8; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lanes[i] += lanes[i + half];
    *top = larger;
    *sum = *sum * shrink + lanes[0];
    return shrink;
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
    k->attend_page[FRIT_DTYPE_F32] = page_scores_f32;
    k->attend_page[FRIT_DTYPE_F16] = page_scores_f16;
    k->attend_page[FRIT_DTYPE_BF16] = page_scores_bf16;
    k->attend_weigh = weigh_scores;
    k->max = max;
    k->exp_sum = exp_sum;
}
