// SPDX-License-Identifier: MIT
// Attention of few queries for AVX2; the numbers of a head are the lanes.
//
//     scores   4 queries x 2 keys, or 1 x 4, in registers; the head's dimension runs
//     values   4 queries x 16 dimensions, or 1 x 64, in registers; positions run
#include "backend/cpu/x86/math_avx2.h"

#include <math.h>

enum { ROUND = _MM_FROUND_TO_NEAREST_INT, NEAR_ROWS = 32 };

// ------------------------------------------------------------------------------- scores

// n_q and n_p are constants where this is inlined.
FRIT_INLINE void score_tile(float *s, const float *q, int n_q, const uint8_t *const *rows, int n_p, int64_t dim,
                            load_fn load, load_tail_fn load_tail)
{
    __m256 sums[4][4];
    for (int i = 0; i < n_q; i++)
        for (int p = 0; p < n_p; p++) sums[i][p] = _mm256_setzero_ps();
    int64_t d = 0;
    for (; d + 8 <= dim; d += 8) {
        for (int p = 0; p < n_p; p++) {
            const __m256 ks = load(rows[p], d);
            for (int i = 0; i < n_q; i++)
                sums[i][p] = _mm256_fmadd_ps(_mm256_loadu_ps(q + i * dim + d), ks, sums[i][p]);
        }
    }
    if (d < dim) {
        for (int p = 0; p < n_p; p++) {
            const __m256 ks = load_tail(rows[p], d, dim - d);
            for (int i = 0; i < n_q; i++)
                sums[i][p] = _mm256_fmadd_ps(load_part(q + i * dim + d, dim - d), ks, sums[i][p]);
        }
    }
    for (int i = 0; i < n_q; i++)
        for (int p = 0; p < n_p; p++) s[i * FRIT_ATTEND_ROWS + p] = sum_8(sums[i][p]);
}

FRIT_INLINE void scores(float *s, const float *q, int64_t n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim,
                        load_fn load, load_tail_fn load_tail)
{
    int64_t i = 0, p;
    for (; i + 4 <= n_q; i += 4) {
        float *si = s + i * FRIT_ATTEND_ROWS;
        for (p = 0; p + 2 <= n_p; p += 2) score_tile(si + p, q + i * dim, 4, rows + p, 2, dim, load, load_tail);
        if (p < n_p) score_tile(si + p, q + i * dim, 4, rows + p, 1, dim, load, load_tail);
    }
    for (; i < n_q; i++) {
        float *si = s + i * FRIT_ATTEND_ROWS;
        for (p = 0; p + 4 <= n_p; p += 4) score_tile(si + p, q + i * dim, 1, rows + p, 4, dim, load, load_tail);
        for (; p < n_p; p++) score_tile(si + p, q + i * dim, 1, rows + p, 1, dim, load, load_tail);
    }
}

static void scores_f32(float *s, const float *q, int64_t n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim)
{
    scores(s, q, n_q, rows, n_p, dim, load_f32, load_tail_f32);
}

static void scores_bf16(float *s, const float *q, int64_t n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim)
{
    scores(s, q, n_q, rows, n_p, dim, load_bf16, load_tail_bf16);
}

static void scores_f16(float *s, const float *q, int64_t n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim)
{
    scores(s, q, n_q, rows, n_p, dim, load_f16, load_tail_f16);
}

// ------------------------------------------------------------------------------- values

// n_q queries and n_v vectors of eight dimensions are constants where this is inlined.
FRIT_INLINE void value_tile(float *acc, const float *s, int n_q, const uint8_t *const *rows, int64_t n_p, int64_t d,
                            int n_v, int64_t dim, load_fn load)
{
    __m256 sums[4][8];
    for (int i = 0; i < n_q; i++)
        for (int a = 0; a < n_v; a++) sums[i][a] = _mm256_loadu_ps(acc + i * dim + d + 8 * a);
    for (int64_t p = 0; p < n_p; p++) {
        __m256 weights[4];
        for (int i = 0; i < n_q; i++) weights[i] = _mm256_broadcast_ss(s + i * FRIT_ATTEND_ROWS + p);
        for (int a = 0; a < n_v; a++) {
            const __m256 vs = load(rows[p], d + 8 * a);
            for (int i = 0; i < n_q; i++) sums[i][a] = _mm256_fmadd_ps(weights[i], vs, sums[i][a]);
        }
    }
    for (int i = 0; i < n_q; i++)
        for (int a = 0; a < n_v; a++) _mm256_storeu_ps(acc + i * dim + d + 8 * a, sums[i][a]);
}

FRIT_INLINE void value_tail(float *acc, const float *s, int64_t n_q, const uint8_t *const *rows, int64_t n_p, int64_t d,
                            int64_t dim, load_tail_fn load_tail)
{
    for (int64_t i = 0; i < n_q; i++) {
        __m256 sum = load_part(acc + i * dim + d, dim - d);
        for (int64_t p = 0; p < n_p; p++)
            sum =
                _mm256_fmadd_ps(_mm256_broadcast_ss(s + i * FRIT_ATTEND_ROWS + p), load_tail(rows[p], d, dim - d), sum);
        store_part(acc + i * dim + d, sum, dim - d);
    }
}

FRIT_INLINE void value_rows(float *acc, const float *s, int64_t n_q, const uint8_t *const *rows, int64_t n_p,
                            int64_t dim, load_fn load, load_tail_fn load_tail)
{
    int64_t i = 0, d;
    for (; i + 4 <= n_q; i += 4) {
        float *acc_i = acc + i * dim;
        const float *si = s + i * FRIT_ATTEND_ROWS;
        for (d = 0; d + 16 <= dim; d += 16) value_tile(acc_i, si, 4, rows, n_p, d, 2, dim, load);
        for (; d + 8 <= dim; d += 8) value_tile(acc_i, si, 4, rows, n_p, d, 1, dim, load);
        if (d < dim) value_tail(acc_i, si, 4, rows, n_p, d, dim, load_tail);
    }
    for (; i < n_q; i++) {
        float *acc_i = acc + i * dim;
        const float *si = s + i * FRIT_ATTEND_ROWS;
        for (d = 0; d + 64 <= dim; d += 64) value_tile(acc_i, si, 1, rows, n_p, d, 8, dim, load);
        for (; d + 8 <= dim; d += 8) value_tile(acc_i, si, 1, rows, n_p, d, 1, dim, load);
        if (d < dim) value_tail(acc_i, si, 1, rows, n_p, d, dim, load_tail);
    }
}

// Each value is read once for every sixteen of its numbers: a few rows at a time stay in the first cache.
FRIT_INLINE void values(float *acc, const float *s, int64_t n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim,
                        load_fn load, load_tail_fn load_tail)
{
    for (int64_t p = 0; p < n_p; p += NEAR_ROWS)
        value_rows(acc, s + p, n_q, rows + p, n_p - p < NEAR_ROWS ? n_p - p : NEAR_ROWS, dim, load, load_tail);
}

static void values_f32(float *acc, const float *s, int64_t n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim)
{
    values(acc, s, n_q, rows, n_p, dim, load_f32, load_tail_f32);
}

static void values_bf16(float *acc, const float *s, int64_t n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim)
{
    values(acc, s, n_q, rows, n_p, dim, load_bf16, load_tail_bf16);
}

static void values_f16(float *acc, const float *s, int64_t n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim)
{
    values(acc, s, n_q, rows, n_p, dim, load_f16, load_tail_f16);
}

// ------------------------------------------------------------------------------- softmax

static float max(const float *x, int64_t n)
{
    __m256 top = constant(-INFINITY);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) top = _mm256_max_ps(top, _mm256_loadu_ps(x + i));
    float m = max_8(top);
    for (; i < n; i++) m = x[i] > m ? x[i] : m;
    return m;
}

static float exp_sum(float *x, float top, int64_t n)
{
    const __m256 t = constant(top);
    __m256 sum = _mm256_setzero_ps();
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 e = exp_8(_mm256_sub_ps(_mm256_loadu_ps(x + i), t));
        _mm256_storeu_ps(x + i, e);
        sum = _mm256_add_ps(sum, e);
    }
    if (i < n) {
        const __m256 e = exp_8(_mm256_sub_ps(load_part(x + i, n - i), t));
        store_part(x + i, e, n - i);
        sum = _mm256_add_ps(sum, _mm256_and_ps(e, _mm256_castsi256_ps(mask_of(n - i))));
    }
    return sum_8(sum);
}

// ------------------------------------------------------------------------------- numbers as they are cached

static void encode_f16(const float *x, uint8_t *y, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(y + 2 * i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), ROUND));
    for (; i < n; i++) {
        const uint16_t half = (uint16_t)_mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(x[i]), ROUND), 0);
        memcpy(y + 2 * i, &half, 2);
    }
}

FRIT_INLINE void decode(const uint8_t *x, float *y, int64_t n, load_fn load, load_tail_fn load_tail)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, load(x, i));
    if (i < n) store_part(y + i, load_tail(x, i, n - i), n - i);
}

static void decode_f16(const uint8_t *x, float *y, int64_t n)
{
    decode(x, y, n, load_f16, load_tail_f16);
}

static void decode_bf16(const uint8_t *x, float *y, int64_t n)
{
    decode(x, y, n, load_bf16, load_tail_bf16);
}

void frit_install_avx2_attend(frit_kernels *k)
{
    k->encode[FRIT_DTYPE_F16] = encode_f16;
    k->decode[FRIT_DTYPE_F16] = decode_f16;
    k->decode[FRIT_DTYPE_BF16] = decode_bf16;
    k->attend_scores[FRIT_DTYPE_F32] = scores_f32;
    k->attend_scores[FRIT_DTYPE_F16] = scores_f16;
    k->attend_scores[FRIT_DTYPE_BF16] = scores_bf16;
    k->attend_values[FRIT_DTYPE_BF16] = values_bf16;
    k->attend_values[FRIT_DTYPE_F32] = values_f32;
    k->attend_values[FRIT_DTYPE_F16] = values_f16;
    k->max = max;
    k->exp_sum = exp_sum;
}
