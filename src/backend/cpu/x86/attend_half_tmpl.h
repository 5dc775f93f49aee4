// SPDX-License-Identifier: MIT
// backend/cpu/x86/attend_half_tmpl.h: attention of many queries by products of bfloat16, sixteen queries to a panel.
//
// All factors are words of two neighbours along the dimension that is summed over: the first in rows, the second with
// sixteen columns, one for each query.
//
//     scores [position, query]   = keys [position, dim]     x queries [dim / 2, query] words
//     sums [dim, query]         += values [dim, position]   x weights [position / 2, query] words
//
// So keys are rounded as they lie, values are transposed once for all panels, and two rows of weights become words
// without crossing lanes. Each including file defines how PANELS panels are multiplied:
//
//     multiply(y, y_panel, a, a_stride, b, b_panel, n_rows, n_words, n_panels, add)
//
// with n_rows a multiple of 16 and n_words of 16; panels of y are f32 [n_rows, 16].
#include "backend/cpu/x86/math_avx512.h"

#include <float.h>
#include <math.h>

enum { LANES = 16, PANELS = 2 };

typedef struct room {    // the scratch of a tile, in words
    uint32_t *keys;      // [positions, k_words]
    uint32_t *values;    // [v_dim, FRIT_ATTEND_SPAN / 2]
    uint32_t *queries;   // [PANELS, k_words, LANES]
    float *scores;       // [PANELS, FRIT_ATTEND_SPAN, LANES]
    uint32_t *weights;   // [PANELS, FRIT_ATTEND_SPAN / 2, LANES]
    int64_t k_words;     // of a row: k_dim / 2, filled up
} room;

static room rooms_of(const frit_attend_tile *t)
{
    room r = {.k_words = (t->k_dim + 31) / 32 * 16, .scores = (float *)(void *)t->scratch};
    r.weights = (uint32_t *)(void *)(r.scores + PANELS * FRIT_ATTEND_SPAN * LANES);
    r.keys = r.weights + PANELS * FRIT_ATTEND_SPAN / 2 * LANES;
    r.values = r.keys + FRIT_ATTEND_SPAN * r.k_words;
    r.queries = r.values + t->v_dim * FRIT_ATTEND_SPAN / 2;
    return r;
}

FRIT_INLINE __mmask16 first_lanes(int64_t n)
{
    return n >= 16 ? 0xffff : n <= 0 ? 0 : (__mmask16)((1u << n) - 1);
}

// Words of the lanes' numbers: low in the lower half.
FRIT_INLINE __m512i pair(__m512 low, __m512 high)
{
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                           21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

// ------------------------------------------------------------------------------- factors

// Rows of n_p positions, then zeros up to a multiple of sixteen.
static void round_keys(const frit_attend_tile *t, const room *r)
{
    const int64_t n_rows = (t->n_p + 15) / 16 * 16;
    for (int64_t p = 0; p < n_rows; p++) {
        uint32_t *row = r->keys + p * r->k_words;
        const float *k = t->k + p * t->k_dim;
        for (int64_t d = 0; d < 2 * r->k_words; d += 32) {
            const int64_t left = p < t->n_p ? t->k_dim - d : 0;
            const __m512 low = _mm512_maskz_loadu_ps(first_lanes(left), k + d);
            const __m512 high = _mm512_maskz_loadu_ps(first_lanes(left - 16), k + d + 16);
            _mm512_storeu_si512(row + d / 2, (__m512i)_mm512_cvtne2ps_pbh(high, low));
        }
    }
}

// Sixteen rows of sixteen words, turned around.
FRIT_INLINE void transpose(__m512i v[16])
{
    __m512i w[16];
    for (int i = 0; i < 16; i += 2) {
        w[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        w[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int j = 0; j < 2; j++) {
            v[i + 2 * j] = _mm512_unpacklo_epi64(w[i + j], w[i + j + 2]);
            v[i + 2 * j + 1] = _mm512_unpackhi_epi64(w[i + j], w[i + j + 2]);
        }
    for (int i = 0; i < 4; i++) {   // lane c of v[i + 4 * j]: column 4 * c + i of rows 4 * j ...
        const __m512i a = _mm512_shuffle_i32x4(v[i], v[i + 4], 0x88), b = _mm512_shuffle_i32x4(v[i], v[i + 4], 0xdd);
        const __m512i c = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0x88);
        const __m512i d = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0xdd);
        w[i] = _mm512_shuffle_i32x4(a, c, 0x88);
        w[i + 8] = _mm512_shuffle_i32x4(a, c, 0xdd);
        w[i + 4] = _mm512_shuffle_i32x4(b, d, 0x88);
        w[i + 12] = _mm512_shuffle_i32x4(b, d, 0xdd);
    }
    for (int i = 0; i < 16; i++) v[i] = w[i];
}

// Words of two positions, transposed to [v_dim, positions / 2]; zeros up to a multiple of 32 positions.
static void turn_values(const frit_attend_tile *t, const room *r)
{
    const int64_t stride = FRIT_ATTEND_SPAN / 2;
    for (int64_t p = 0; p < t->n_p; p += 32) {
        for (int64_t d = 0; d < t->v_dim; d += 16) {
            __m512i words[16];
            for (int i = 0; i < 16; i++) {
                const int64_t at = p + 2 * i;
                const float *v = t->v + at * t->v_dim + d;
                words[i] = pair(_mm512_maskz_loadu_ps(at < t->n_p ? 0xffff : 0, v),
                                _mm512_maskz_loadu_ps(at + 1 < t->n_p ? 0xffff : 0, v + t->v_dim));
            }
            transpose(words);
            for (int i = 0; i < 16; i++) _mm512_storeu_si512(r->values + (d + i) * stride + p / 2, words[i]);
        }
    }
}

static void round_queries(const frit_attend_tile *t, const room *r, int64_t panel, uint32_t *to)
{
    const float *q = t->q + panel * t->k_dim * LANES;
    for (int64_t w = 0; w < r->k_words; w++, q += 2 * LANES) {
        const __m512 low = _mm512_maskz_loadu_ps(2 * w < t->k_dim ? 0xffff : 0, q);
        const __m512 high = _mm512_maskz_loadu_ps(2 * w + 1 < t->k_dim ? 0xffff : 0, q + LANES);
        _mm512_storeu_si512(to + w * LANES, pair(low, high));
    }
}

// ------------------------------------------------------------------------------- weights

// exp(x) to five digits for x <= 0, which is more than a weight keeps: 2^n times a polynomial.
FRIT_INLINE __m512 exp_rough(__m512 x)
{
    const __m512 t = _mm512_mul_ps(_mm512_max_ps(x, constant_16(FRIT_LEAST_WEIGHT)), constant_16(1.44269504f));
    const __m512 n = _mm512_roundscale_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m512 f = _mm512_sub_ps(t, n);
    __m512 p = constant_16(9.6181291e-3f);   // powers of ln 2 over factorials
    p = _mm512_fmadd_ps(p, f, constant_16(5.5504109e-2f));
    p = _mm512_fmadd_ps(p, f, constant_16(2.4022651e-1f));
    p = _mm512_fmadd_ps(p, f, constant_16(6.9314718e-1f));
    p = _mm512_fmadd_ps(p, f, constant_16(1));
    return _mm512_scalef_ps(p, n);
}

typedef struct lanes_of {   // what each lane of a panel sees, counted from the tile's first position
    __m512 begin, end, slot, slope;
} lanes_of;

FRIT_INLINE __m512 relative(const int32_t *p, int32_t to)
{
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_loadu_si512(p), _mm512_set1_epi32(to)));
}

FRIT_INLINE __mmask16 seen_by(const lanes_of *l, int64_t p)
{
    const __m512 at = constant_16((float)p);
    return _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(at, l->begin, _CMP_GE_OQ), at, l->end, _CMP_LT_OQ);
}

// What comes between the product and the maximum, in place.
static void adjust(const frit_attend_tile *t, const lanes_of *l, float *s, int64_t begin, int64_t end)
{
    for (int64_t p = begin; p < end; p++) {
        __m512 x = _mm512_loadu_ps(s + p * LANES);
        if (t->softcap != 0)
            x = _mm512_mul_ps(constant_16(t->softcap), tanh_16(_mm512_mul_ps(x, constant_16(1 / t->softcap))));
        if (t->slope) x = _mm512_fnmadd_ps(l->slope, _mm512_abs_ps(_mm512_sub_ps(l->slot, constant_16((float)p))), x);
        if (t->cut) x = _mm512_mask_blend_ps(seen_by(l, p), constant_16(-INFINITY), x);
        _mm512_storeu_ps(s + p * LANES, x);
    }
}

// Two rows of weights as words; returns their sum. Exponentials do not reach zero: what is not seen is set to it.
FRIT_INLINE __m512 weigh_two(const lanes_of *l, const float *s, int64_t p, __m512 base, bool cut, uint32_t *words)
{
    __m512 low = exp_rough(_mm512_sub_ps(_mm512_loadu_ps(s + p * LANES), base));
    __m512 high = exp_rough(_mm512_sub_ps(_mm512_loadu_ps(s + (p + 1) * LANES), base));
    if (cut) {
        low = _mm512_maskz_mov_ps(seen_by(l, p), low);
        high = _mm512_maskz_mov_ps(seen_by(l, p + 1), high);
    }
    _mm512_storeu_si512(words + p / 2 * LANES, pair(low, high));
    return _mm512_add_ps(low, high);
}

static void shrink_sums(float *acc, int64_t n, __m512 shrink)
{
    for (int64_t d = 0; d < n; d++)
        _mm512_storeu_ps(acc + d * LANES, _mm512_mul_ps(_mm512_loadu_ps(acc + d * LANES), shrink));
}

// Turns the scores of one panel into weights, and rescales what it has so far. Positions begin at a multiple of 32;
// rows up to the next multiple become zero.
static void weigh_panel(const frit_attend_tile *t, int64_t panel, float *s, uint32_t *words, int64_t begin, int64_t end)
{
    const int64_t lane = panel * LANES;
    const lanes_of l = {relative(t->begin + lane, t->first), relative(t->end + lane, t->first),
                        relative(t->slot + lane, t->first),
                        t->slope ? _mm512_loadu_ps(t->slope + lane) : constant_16(0)};
    if (t->softcap != 0 || t->slope || t->cut) adjust(t, &l, s, begin, end);

    const __m512 before = _mm512_loadu_ps(t->max + lane);
    __m512 tops[4] = {before, before, before, before};
    for (int64_t p = begin; p < end; p++) tops[p & 3] = _mm512_max_ps(tops[p & 3], _mm512_loadu_ps(s + p * LANES));
    const __m512 top = _mm512_max_ps(_mm512_max_ps(tops[0], tops[1]), _mm512_max_ps(tops[2], tops[3]));
    const __m512 base = _mm512_max_ps(top, constant_16(-FLT_MAX));   // a lane that has seen nothing has no maximum
    __m512 sum = _mm512_loadu_ps(t->sum + lane);
    if (_mm512_cmp_ps_mask(top, before, _CMP_GT_OQ)) {
        const __m512 shrink = exp_16(_mm512_sub_ps(before, base));
        shrink_sums(t->acc + panel * t->v_dim * LANES, t->v_dim, shrink);
        sum = _mm512_mul_ps(sum, shrink);
        _mm512_storeu_ps(t->max + lane, top);
    }
    int64_t p = begin;
    if (t->cut)
        for (; p + 2 <= end; p += 2) sum = _mm512_add_ps(sum, weigh_two(&l, s, p, base, true, words));
    else
        for (; p + 2 <= end; p += 2) sum = _mm512_add_ps(sum, weigh_two(&l, s, p, base, false, words));
    if (p < end) {
        __m512 last = exp_rough(_mm512_sub_ps(_mm512_loadu_ps(s + p * LANES), base));
        if (t->cut) last = _mm512_maskz_mov_ps(seen_by(&l, p), last);
        _mm512_storeu_si512(words + p / 2 * LANES, pair(last, constant_16(0)));
        sum = _mm512_add_ps(sum, last);
        p += 2;
    }
    for (; p % 32 != 0; p += 2) _mm512_storeu_si512(words + p / 2 * LANES, _mm512_setzero_si512());
    _mm512_storeu_ps(t->sum + lane, sum);
}

// ------------------------------------------------------------------------------- tiles

// The positions of the tile that some lane of these panels sees, from a multiple of 32.
static void seen_positions(const frit_attend_tile *t, int64_t panel, int n_panels, int64_t *begin, int64_t *end)
{
    *begin = 0, *end = t->n_p;
    if (!t->cut) return;
    int64_t low = t->n_p, high = 0;
    for (int64_t i = panel * LANES; i < (panel + n_panels) * LANES; i++) {
        const int64_t first = t->begin[i] - t->first, last = t->end[i] - t->first;
        if (last <= 0 || first >= t->n_p || first >= last) continue;
        low = first < low ? first : low;
        high = last > high ? last : high;
    }
    *begin = low < 0 ? 0 : low / 32 * 32;
    *end = high < t->n_p ? high : t->n_p;
}

FRIT_INLINE void attend_panels(const frit_attend_tile *t, const room *r, int64_t panel, int n_panels)
{
    int64_t begin, end;
    seen_positions(t, panel, n_panels, &begin, &end);
    if (begin >= end) return;
    for (int j = 0; j < n_panels; j++) round_queries(t, r, panel + j, r->queries + j * r->k_words * LANES);
    multiply(r->scores + begin * LANES, FRIT_ATTEND_SPAN * LANES, r->keys + begin * r->k_words, r->k_words, r->queries,
             r->k_words * LANES, (end - begin + 15) / 16 * 16, r->k_words, n_panels, false);
    for (int j = 0; j < n_panels; j++)
        weigh_panel(t, panel + j, r->scores + j * FRIT_ATTEND_SPAN * LANES,
                    r->weights + j * FRIT_ATTEND_SPAN / 2 * LANES, begin, end);
    multiply(t->acc + panel * t->v_dim * LANES, t->v_dim * LANES, r->values + begin / 2, FRIT_ATTEND_SPAN / 2,
             r->weights + begin / 2 * LANES, FRIT_ATTEND_SPAN / 2 * LANES, t->v_dim, (end - begin + 31) / 32 * 16,
             n_panels, true);
}

static void attend_tile(const frit_attend_tile *t)
{
    const room r = rooms_of(t);
    int64_t panel = 0;
    round_keys(t, &r);
    turn_values(t, &r);
    open_products();
    for (; panel + PANELS <= t->n_panels; panel += PANELS) attend_panels(t, &r, panel, PANELS);
    for (; panel < t->n_panels; panel++) attend_panels(t, &r, panel, 1);
    close_products();
}
