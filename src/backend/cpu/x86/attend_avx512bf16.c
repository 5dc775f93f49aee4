// SPDX-License-Identifier: MIT
// The products of attend_avx512bf16.h for AVX-512 BF16, by vdpbf16ps, which multiplies twice as many elements as vfmadd
// in the same time. Eight queries are computed together: lanes are sixteen positions or sixteen elements of values, and
// a word of a query or of its weights is broadcast.
#include "backend/cpu/x86/vec/avx512bf16.h"
#include "backend/cpu/x86/attend_avx512bf16.h"

enum { GROUP = 8, COLUMNS = 2 };   // queries, and vectors of sixteen elements, whose sums are in registers

FRIT_INLINE __m512bh same_words(const uint32_t *word)
{
    return (__m512bh)_mm512_set1_epi32((int)*word);
}

FRIT_INLINE __m512bh load_words(const void *words)
{
    return (__m512bh)_mm512_load_si512(words);
}

// ------------------------------------------------------------------------------- scores

typedef struct scored {   // scores of 32 positions
    __m512 low[GROUP], high[GROUP];
} scored;

// Scores queries [first, first + GROUP) of the panel.
FRIT_INLINE scored multiply_group(const panel *p, int step, int first)
{
    const int64_t k_steps = p->r->k_steps;
    const uint32_t *low = p->r->keys + step * p->r->page_words, *high = low + k_steps * TILE_WORDS;
    const uint32_t *q = (const uint32_t *)(const void *)p->q + first / TILE * k_steps * TILE_WORDS + first % TILE * 16;
    scored s;
    FRIT_UNROLL(8)
    for (int i = 0; i < GROUP; i++) s.low[i] = s.high[i] = _mm512_setzero_ps();
    for (int64_t k = 0; k < k_steps; k++, low += TILE_WORDS, high += TILE_WORDS, q += TILE_WORDS) {
        FRIT_UNROLL(4)
        for (int d = 0; d < TILE; d++) {
            const __m512bh a = load_words(low + d * 16), b = load_words(high + d * 16);
            FRIT_UNROLL(8)
            for (int i = 0; i < GROUP; i++) {
                const __m512bh x = same_words(q + i * 16 + d);
                s.low[i] = _mm512_dpbf16_ps(s.low[i], a, x);
                s.high[i] = _mm512_dpbf16_ps(s.high[i], b, x);
            }
        }
    }
    return s;
}

static void compute_scores(const panel *p, int step, float *scores)
{
    for (int first = 0; first < FRIT_BF16_QUERIES; first += GROUP) {
        const scored s = multiply_group(p, step, first);
        FRIT_UNROLL(8)
        for (int i = 0; i < GROUP; i++) {
            _mm512_store_ps(scores + (first + i) * 16, s.low[i]);
            _mm512_store_ps(scores + (FRIT_BF16_QUERIES + first + i) * 16, s.high[i]);
        }
    }
}

static scored load_group(const float *scores, int first)
{
    scored s;
    for (int i = 0; i < GROUP; i++) {
        s.low[i] = _mm512_load_ps(scores + (first + i) * 16);
        s.high[i] = _mm512_load_ps(scores + (FRIT_BF16_QUERIES + first + i) * 16);
    }
    return s;
}

FRIT_INLINE __m512i weigh_group(const panel *p, const scored *s, int first, int32_t at, bool cut, uint16_t *weights)
{
    const __m512i table = _mm512_load_si512(bends);
    const float *lift = p->t->lift + p->first + first;
    __m512i all = _mm512_setzero_si512();
    FRIT_UNROLL(8)
    for (int i = 0; i < GROUP; i++) {
        const __mmask32 seen = cut ? seen_by(p->t, p->first + first + i, at) : 0xffffffff;
        const __m512i bits =
            weights_of(s->low[i], s->high[i], constant_16(lift[i]), table, (__mmask16)seen, (__mmask16)(seen >> 16));
        _mm512_store_si512(weights + (first + i) * STEP, bits);
        all = _mm512_or_si512(all, bits);
    }
    return all;
}

FRIT_INLINE bool weigh_steps(const panel *p, int begin, int end, bool cut)
{
    const bool adjusts = p->t->softcap != 0 || p->t->slope;
    float *scores = p->r->scores[0];
    uint16_t *weights = p->r->weights;
    __m512i all = _mm512_setzero_si512();
    for (int step = begin; step < end; step++, weights += FRIT_BF16_QUERIES * STEP) {
        const int32_t at = p->t->first + step * STEP;
        prefetch_ahead(p->r);
        if (adjusts) {
            compute_scores(p, step, scores);
            adjust(p, scores, at);
        }
        for (int first = 0; first < FRIT_BF16_QUERIES; first += GROUP) {
            const scored s = adjusts ? load_group(scores, first) : multiply_group(p, step, first);
            all = _mm512_or_si512(all, weigh_group(p, &s, first, at, cut, weights));
        }
    }
    return _mm512_test_epi16_mask(all, _mm512_set1_epi16((short)TOO_LARGE)) != 0;
}

static bool weigh(const panel *p, int begin, int end, bool cut)
{
    return cut ? weigh_steps(p, begin, end, true) : weigh_steps(p, begin, end, false);
}

// ------------------------------------------------------------------------------- sums

typedef struct summed {   // sums of GROUP queries
    const uint16_t *weights;
    const uint32_t *values;
    float *sums;   // rows at a distance of `stride`
    int64_t stride;
    int n_steps;
} summed;

// Adds n_columns vectors of values, step by step.
FRIT_INLINE void add_columns(const room *r, const summed *s, int n_columns)
{
    const uint32_t *values = s->values;
    const uint16_t *weights = s->weights;
    __m512 sum[GROUP][COLUMNS];
    FRIT_UNROLL(8)
    for (int i = 0; i < GROUP; i++)
        for (int c = 0; c < n_columns; c++) sum[i][c] = _mm512_loadu_ps(s->sums + i * s->stride + c * TILE);
    for (int step = 0; step < s->n_steps; step++, values += r->page_words, weights += FRIT_BF16_QUERIES * STEP) {
        FRIT_UNROLL(4)
        for (int k = 0; k < TILE; k++) {
            __m512bh v[COLUMNS];
            for (int c = 0; c < n_columns; c++) v[c] = load_words(values + c * TILE_WORDS + k * 16);
            FRIT_UNROLL(8)
            for (int i = 0; i < GROUP; i++) {
                const __m512bh x = same_words((const uint32_t *)(const void *)(weights + i * STEP) + k);
                for (int c = 0; c < n_columns; c++) sum[i][c] = _mm512_dpbf16_ps(sum[i][c], x, v[c]);
            }
        }
    }
    FRIT_UNROLL(8)
    for (int i = 0; i < GROUP; i++)
        for (int c = 0; c < n_columns; c++) _mm512_storeu_ps(s->sums + i * s->stride + c * TILE, sum[i][c]);
}

static void add_two_columns(const room *r, const summed *s)
{
    add_columns(r, s, 2);
}

static void add_weights(const summed *s, float *totals)
{
    const __m512bh one = (__m512bh)_mm512_set1_epi16(0x3f80);
    __m512 total[GROUP];
    FRIT_UNROLL(8)
    for (int i = 0; i < GROUP; i++) total[i] = _mm512_loadu_ps(totals + i * s->stride);
    const uint16_t *weights = s->weights;
    for (int step = 0; step < s->n_steps; step++, weights += FRIT_BF16_QUERIES * STEP) {
        FRIT_UNROLL(8)
        for (int i = 0; i < GROUP; i++) total[i] = _mm512_dpbf16_ps(total[i], load_words(weights + i * STEP), one);
    }
    FRIT_UNROLL(8)
    for (int i = 0; i < GROUP; i++) _mm512_storeu_ps(totals + i * s->stride, total[i]);
}

static void add_values(const panel *p, int begin, int end)
{
    const room *r = p->r;
    const int64_t stride = p->t->v_dim + SUM_COLUMNS;
    for (int first = 0; first < FRIT_BF16_QUERIES; first += GROUP) {
        summed s = {.weights = r->weights + first * STEP,
                    .values = r->values + begin * r->page_words,
                    .sums = p->t->acc + (p->first + first) * stride,
                    .stride = stride,
                    .n_steps = end - begin};
        add_weights(&s, s.sums + p->t->v_dim);
        int64_t column = 0;
        for (; column + 1 < r->n_blocks; column += 2, s.values += 2 * TILE_WORDS, s.sums += 2 * TILE)
            add_two_columns(r, &s);
        if (column < r->n_blocks) add_columns(r, &s, 1);
    }
}

static void attend_bf16(const frit_attend_bf16 *t)
{
    static const bf16_products products = {NULL, compute_scores, weigh, add_values};
    attend_panels(t, &products);
}

void frit_install_avx512bf16_attend(frit_kernels *k)
{
    k->attend_bf16 = attend_bf16;
    k->attend_bf16_if_long = true;
}
