// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/attend_few_tmpl.h: attention of few queries, in operations on vec_f, which the including file
// defines, and math_tmpl.h; the numbers of a head are the lanes.
//
//     scores   4 queries x KEYS_OF_FOUR keys, or 1 x MOST_KEYS, in registers; the head's dimension runs
//     values   4 queries x VALUES_OF_FOUR vectors, or 1 x MOST_VALUES, in registers; positions run
//
// load_f32, load_f16 and load_bf16 give numbers i .. of a row, load_tail_* only n of them, then zeros.
#include <math.h>

enum { NEAR_ROWS = 32 };

// ------------------------------------------------------------------------------- scores

// n_q and n_p are constants where this is inlined.
FRIT_INLINE void score_tile(float *s, const float *q, int n_q, const uint8_t *const *rows, int n_p, int64_t dim,
                            load_fn load, load_tail_fn load_tail)
{
    vec_f sums[4][MOST_KEYS];
    for (int i = 0; i < n_q; i++)
        for (int p = 0; p < n_p; p++) sums[i][p] = zero_f();
    int64_t d = 0;
    for (; d + FLOATS <= dim; d += FLOATS) {
        for (int p = 0; p < n_p; p++) {
            const vec_f ks = load(rows[p], d);
            for (int i = 0; i < n_q; i++) sums[i][p] = mul_add(load_f(q + i * dim + d), ks, sums[i][p]);
        }
    }
    if (d < dim) {
        for (int p = 0; p < n_p; p++) {
            const vec_f ks = load_tail(rows[p], d, dim - d);
            for (int i = 0; i < n_q; i++) sums[i][p] = mul_add(load_part(q + i * dim + d, dim - d), ks, sums[i][p]);
        }
    }
    for (int i = 0; i < n_q; i++)
        for (int p = 0; p < n_p; p++) s[i * FRIT_ATTEND_ROWS + p] = sum_lanes(sums[i][p]);
}

FRIT_INLINE void scores(float *s, const float *q, int64_t n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim,
                        load_fn load, load_tail_fn load_tail)
{
    int64_t i = 0, p;
    for (; i + 4 <= n_q; i += 4) {
        float *si = s + i * FRIT_ATTEND_ROWS;
        for (p = 0; p + KEYS_OF_FOUR <= n_p; p += KEYS_OF_FOUR)
            score_tile(si + p, q + i * dim, 4, rows + p, KEYS_OF_FOUR, dim, load, load_tail);
        for (; p < n_p; p++) score_tile(si + p, q + i * dim, 4, rows + p, 1, dim, load, load_tail);
    }
    for (; i < n_q; i++) {
        float *si = s + i * FRIT_ATTEND_ROWS;
        for (p = 0; p + MOST_KEYS <= n_p; p += MOST_KEYS)
            score_tile(si + p, q + i * dim, 1, rows + p, MOST_KEYS, dim, load, load_tail);
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

// n_q queries and n_v vectors of dimensions are constants where this is inlined.
FRIT_INLINE void value_tile(float *acc, const float *s, int n_q, const uint8_t *const *rows, int64_t n_p, int64_t d,
                            int n_v, int64_t dim, load_fn load)
{
    vec_f sums[4][MOST_VALUES];
    for (int i = 0; i < n_q; i++)
        for (int a = 0; a < n_v; a++) sums[i][a] = load_f(acc + i * dim + d + FLOATS * a);
    for (int64_t p = 0; p < n_p; p++) {
        vec_f weights[4];
        for (int i = 0; i < n_q; i++) weights[i] = all_f(s[i * FRIT_ATTEND_ROWS + p]);
        for (int a = 0; a < n_v; a++) {
            const vec_f vs = load(rows[p], d + FLOATS * a);
            for (int i = 0; i < n_q; i++) sums[i][a] = mul_add(weights[i], vs, sums[i][a]);
        }
    }
    for (int i = 0; i < n_q; i++)
        for (int a = 0; a < n_v; a++) store_f(acc + i * dim + d + FLOATS * a, sums[i][a]);
}

FRIT_INLINE void value_tail(float *acc, const float *s, int64_t n_q, const uint8_t *const *rows, int64_t n_p, int64_t d,
                            int64_t dim, load_tail_fn load_tail)
{
    for (int64_t i = 0; i < n_q; i++) {
        vec_f sum = load_part(acc + i * dim + d, dim - d);
        for (int64_t p = 0; p < n_p; p++)
            sum = mul_add(all_f(s[i * FRIT_ATTEND_ROWS + p]), load_tail(rows[p], d, dim - d), sum);
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
        for (d = 0; d + VALUES_OF_FOUR * FLOATS <= dim; d += VALUES_OF_FOUR * FLOATS)
            value_tile(acc_i, si, 4, rows, n_p, d, VALUES_OF_FOUR, dim, load);
        for (; d + FLOATS <= dim; d += FLOATS) value_tile(acc_i, si, 4, rows, n_p, d, 1, dim, load);
        if (d < dim) value_tail(acc_i, si, 4, rows, n_p, d, dim, load_tail);
    }
    for (; i < n_q; i++) {
        float *acc_i = acc + i * dim;
        const float *si = s + i * FRIT_ATTEND_ROWS;
        for (d = 0; d + MOST_VALUES * FLOATS <= dim; d += MOST_VALUES * FLOATS)
            value_tile(acc_i, si, 1, rows, n_p, d, MOST_VALUES, dim, load);
        for (; d + FLOATS <= dim; d += FLOATS) value_tile(acc_i, si, 1, rows, n_p, d, 1, dim, load);
        if (d < dim) value_tail(acc_i, si, 1, rows, n_p, d, dim, load_tail);
    }
}

// Each value is read once for every few of its numbers: a few rows at a time stay in the first cache.
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
    vec_f top = all_f(-INFINITY);
    int64_t i = 0;
    for (; i + FLOATS <= n; i += FLOATS) top = max_f(top, load_f(x + i));
    float m = max_lanes(top);
    for (; i < n; i++) m = x[i] > m ? x[i] : m;
    return m;
}

static float exp_sum(float *x, float top, int64_t n)
{
    const vec_f t = all_f(top);
    vec_f sum = zero_f();
    int64_t i = 0;
    for (; i + FLOATS <= n; i += FLOATS) {
        const vec_f e = exp_f(sub_f(load_f(x + i), t));
        store_f(x + i, e);
        sum = add_f(sum, e);
    }
    if (i < n) {
        const vec_f e = exp_f(sub_f(load_part(x + i, n - i), t));
        store_part(x + i, e, n - i);
        sum = add_f(sum, first_of(e, n - i));
    }
    return sum_lanes(sum);
}

// ------------------------------------------------------------------------------- numbers as they are cached

FRIT_INLINE void decode(const uint8_t *x, float *y, int64_t n, load_fn load, load_tail_fn load_tail)
{
    int64_t i = 0;
    for (; i + FLOATS <= n; i += FLOATS) store_f(y + i, load(x, i));
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

FRIT_INLINE void install_attend(frit_kernels *k)
{
    k->decode[FRIT_DTYPE_F16] = decode_f16;
    k->decode[FRIT_DTYPE_BF16] = decode_bf16;
    k->attend_scores[FRIT_DTYPE_F32] = scores_f32;
    k->attend_scores[FRIT_DTYPE_F16] = scores_f16;
    k->attend_scores[FRIT_DTYPE_BF16] = scores_bf16;
    k->attend_values[FRIT_DTYPE_F32] = values_f32;
    k->attend_values[FRIT_DTYPE_F16] = values_f16;
    k->attend_values[FRIT_DTYPE_BF16] = values_bf16;
    k->max = max;
    k->exp_sum = exp_sum;
}
