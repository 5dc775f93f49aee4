// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/attend_rows_tmpl.h: attention by rows (ops/attend.h), in operations on vec_f, which the including
// file defines, and math_tmpl.h.
//
//     scores   4 queries x FLOATS keys in registers, or PAGE_VECTORS * FLOATS transposed keys; lanes are keys, and the
//              loop is over the dimensions of the head
//     values   4 queries x VALUES_OF_FOUR vectors, or 1 x MOST_VALUES, in registers; lanes are dimensions of the head,
//              and the loop is over positions
//
// load_f32, load_f16 and load_bf16 read elements i, i + 1, ... of a row; load_tail_* reads n elements, then zeros.
#include <math.h>

enum { NEAR_ROWS = 32 };

// ------------------------------------------------------------------------------- scores

// Scores of n_q queries, a constant where this is inlined, and FLOATS keys, which are the lanes; stores n_p of the
// scores. A score adds its products in order, as in attend_tile_tmpl.h.
FRIT_INLINE void score_tile(float *s, const float *q, int n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim,
                            load_fn load, load_tail_fn load_tail)
{
    vec_f sums[4], keys[FLOATS];
    for (int i = 0; i < n_q; i++) sums[i] = zero_f();
    int64_t d = 0;
    for (; d + FLOATS <= dim; d += FLOATS) {
        for (int p = 0; p < FLOATS; p++) keys[p] = load(rows[p], d);
        transpose_f(keys);
        FRIT_UNROLL(8)
        for (int k = 0; k < FLOATS; k++)
            for (int i = 0; i < n_q; i++) sums[i] = mul_add(all_f(q[i * dim + d + k]), keys[k], sums[i]);
    }
    if (d < dim) {
        for (int p = 0; p < FLOATS; p++) keys[p] = load_tail(rows[p], d, dim - d);
        transpose_f(keys);
        for (int k = 0; d + k < dim; k++)
            for (int i = 0; i < n_q; i++) sums[i] = mul_add(all_f(q[i * dim + d + k]), keys[k], sums[i]);
    }
    for (int i = 0; i < n_q; i++) store_part(s + i * FRIT_ATTEND_ROWS, sums[i], n_p);
}

// Reads no key after the last one; the last key fills the other lanes.
FRIT_INLINE void score_rows(float *s, const float *q, int n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim,
                            load_fn load, load_tail_fn load_tail)
{
    int64_t p = 0;
    for (; p + FLOATS <= n_p; p += FLOATS) score_tile(s + p, q, n_q, rows + p, FLOATS, dim, load, load_tail);
    if (p == n_p) return;
    const uint8_t *last[FLOATS];
    for (int64_t i = 0; i < FLOATS; i++) last[i] = rows[p + i < n_p ? p + i : n_p - 1];
    score_tile(s + p, q, n_q, last, n_p - p, dim, load, load_tail);
}

FRIT_INLINE void score_queries(float *s, const float *q, int64_t n_q, const uint8_t *const *rows, int64_t n_p,
                               int64_t dim, load_fn load, load_tail_fn load_tail)
{
    int64_t i = 0;
    for (; i + 4 <= n_q; i += 4) score_rows(s + i * FRIT_ATTEND_ROWS, q + i * dim, 4, rows, n_p, dim, load, load_tail);
    for (; i + 2 <= n_q; i += 2) score_rows(s + i * FRIT_ATTEND_ROWS, q + i * dim, 2, rows, n_p, dim, load, load_tail);
    if (i < n_q) score_rows(s + i * FRIT_ATTEND_ROWS, q + i * dim, 1, rows, n_p, dim, load, load_tail);
}

static void scores_f32(float *s, const float *q, int64_t n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim)
{
    score_queries(s, q, n_q, rows, n_p, dim, load_f32, load_tail_f32);
}

static void scores_bf16(float *s, const float *q, int64_t n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim)
{
    score_queries(s, q, n_q, rows, n_p, dim, load_bf16, load_tail_bf16);
}

static void scores_f16(float *s, const float *q, int64_t n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim)
{
    score_queries(s, q, n_q, rows, n_p, dim, load_f16, load_tail_f16);
}

// Scores of some vectors of a page of transposed keys: FRIT_PAGE_TOKENS positions of each dimension are contiguous.
FRIT_INLINE void score_page(float *s, const float *q, int n_q, const frit_attend_keys *keys, int64_t dim, int64_t first,
                            load_fn load)
{
    vec_f sums[4][PAGE_VECTORS];
    for (int i = 0; i < n_q; i++)
        for (int a = 0; a < PAGE_VECTORS; a++) sums[i][a] = zero_f();
    for (int64_t d = 0; d < dim; d++) {
        vec_f ks[PAGE_VECTORS];
        for (int a = 0; a < PAGE_VECTORS; a++) ks[a] = load(keys->page, d * FRIT_PAGE_TOKENS + first + a * FLOATS);
        if (first == 0)
            for (int i = 0; i < 2; i++) __builtin_prefetch(keys->ahead[i] + 64 * d);
        for (int i = 0; i < n_q; i++) {
            const vec_f qs = all_f(q[i * dim + d]);
            for (int a = 0; a < PAGE_VECTORS; a++) sums[i][a] = mul_add(qs, ks[a], sums[i][a]);
        }
    }
    for (int i = 0; i < n_q; i++)
        for (int a = 0; a < PAGE_VECTORS; a++) store_f(s + i * FRIT_ATTEND_ROWS + first + a * FLOATS, sums[i][a]);
}

FRIT_INLINE void page_scores(float *s, const float *q, int64_t n_q, const frit_attend_keys *keys, int64_t dim,
                             load_fn load)
{
    for (int64_t first = 0; first < FRIT_PAGE_TOKENS; first += PAGE_VECTORS * FLOATS) {
        int64_t i = 0;
        for (; i + 4 <= n_q; i += 4) score_page(s + i * FRIT_ATTEND_ROWS, q + i * dim, 4, keys, dim, first, load);
        for (; i + 2 <= n_q; i += 2) score_page(s + i * FRIT_ATTEND_ROWS, q + i * dim, 2, keys, dim, first, load);
        if (i < n_q) score_page(s + i * FRIT_ATTEND_ROWS, q + i * dim, 1, keys, dim, first, load);
    }
}

static void page_scores_f32(float *s, const float *q, int64_t n_q, const frit_attend_keys *keys, int64_t dim)
{
    page_scores(s, q, n_q, keys, dim, load_f32);
}

static void page_scores_f16(float *s, const float *q, int64_t n_q, const frit_attend_keys *keys, int64_t dim)
{
    page_scores(s, q, n_q, keys, dim, load_f16);
}

static void page_scores_bf16(float *s, const float *q, int64_t n_q, const frit_attend_keys *keys, int64_t dim)
{
    page_scores(s, q, n_q, keys, dim, load_bf16);
}

// ------------------------------------------------------------------------------- values

// Adds weighted values: n_q queries, n_v vectors of dimensions, both constants where this is inlined.
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

// Each value is read once for each group of dimensions; a few rows at a time fit the L1 cache.
FRIT_INLINE void add_values(float *acc, const float *s, int64_t n_q, const uint8_t *const *rows, int64_t n_p,
                            int64_t dim, load_fn load, load_tail_fn load_tail)
{
    for (int64_t p = 0; p < n_p; p += NEAR_ROWS)
        value_rows(acc, s + p, n_q, rows + p, n_p - p < NEAR_ROWS ? n_p - p : NEAR_ROWS, dim, load, load_tail);
}

static void values_f32(float *acc, const float *s, int64_t n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim)
{
    add_values(acc, s, n_q, rows, n_p, dim, load_f32, load_tail_f32);
}

static void values_bf16(float *acc, const float *s, int64_t n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim)
{
    add_values(acc, s, n_q, rows, n_p, dim, load_bf16, load_tail_bf16);
}

static void values_f16(float *acc, const float *s, int64_t n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim)
{
    add_values(acc, s, n_q, rows, n_p, dim, load_f16, load_tail_f16);
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

static float weigh_scores(float *s, int64_t begin, int64_t end, int64_t n, float *top, float *sum)
{
    const float now = max(s + begin, end - begin), larger = now > *top ? now : *top;
    float lanes[FLOATS] = {1};
    if (now > *top) store_f(lanes, exp_f(all_f(*top - larger)));
    const float shrink = lanes[0];
    const int64_t first = begin / FLOATS * FLOATS, last = (end + FLOATS - 1) / FLOATS * FLOATS;
    for (int64_t i = first; i < last; i += FLOATS) store_f(s + i, exp_f(sub_f(load_f(s + i), all_f(larger))));
    for (int64_t i = 0; i < begin; i++) s[i] = 0;
    for (int64_t i = end; i < n || i < last; i++) s[i] = 0;
    vec_f part = zero_f();
    for (int64_t i = first; i < last; i += FLOATS) part = add_f(part, load_f(s + i));
    store_f(lanes, part);
    for (int distance = FLOATS / 2; distance > 0; distance /= 2)
        for (int i = 0; i < distance; i++) lanes[i] += lanes[i + distance];
    *top = larger;
    *sum = *sum * shrink + lanes[0];
    return shrink;
}

// ------------------------------------------------------------------------------- conversion

FRIT_INLINE void decode_rows(const uint8_t *x, float *y, int64_t n, load_fn load, load_tail_fn load_tail)
{
    int64_t i = 0;
    for (; i + FLOATS <= n; i += FLOATS) store_f(y + i, load(x, i));
    if (i < n) store_part(y + i, load_tail(x, i, n - i), n - i);
}

static void decode_f16(const uint8_t *x, float *y, int64_t n)
{
    decode_rows(x, y, n, load_f16, load_tail_f16);
}

static void decode_bf16(const uint8_t *x, float *y, int64_t n)
{
    decode_rows(x, y, n, load_bf16, load_tail_bf16);
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
    k->attend_page[FRIT_DTYPE_F32] = page_scores_f32;
    k->attend_page[FRIT_DTYPE_F16] = page_scores_f16;
    k->attend_page[FRIT_DTYPE_BF16] = page_scores_bf16;
    k->attend_weigh = weigh_scores;
    k->max = max;
    k->exp_sum = exp_sum;
}
