// SPDX-License-Identifier: MIT
// The products of attend_avx512bf16.h for AMX.
//
// Tile and vector instructions are interleaved, a few of each, so that both units work at the same time even if the
// processor's window is short (for example, shared with another thread): scores of 32 positions are multiplied while
// the scores of the previous 32 become weights, and weights are added to sixteen sums for each query while values are
// multiplied. As few tiles as possible are loaded, because beside a busy thread loads take as long as products.
#include "backend/cpu/x86/vec/amx.h"
#include "backend/cpu/x86/attend_avx512bf16.h"

#include <stdatomic.h>

static inline void fence(void)   // the compiler does not know the memory that tiles load and store
{
    atomic_signal_fence(memory_order_seq_cst);
}

static void open_tiles(void)   // all tiles have 16 rows of 64 bytes
{
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {TILE, TILE, TILE, TILE, TILE, TILE, TILE, TILE}};
    _tile_loadconfig(&config);
}

// ------------------------------------------------------------------------------- weights

typedef struct weighing {   // turns scores of 32 positions into weights
    const panel *p;
    const float *scores;
    uint16_t *weights;   // [32, 32]
    int32_t at;          // first position
    bool cut;            // some query does not see all positions
    __m512i all;         // bitwise or of all weights
} weighing;

// Weighs queries [from, to).
FRIT_INLINE void weigh_scores(weighing *w, int64_t from, int64_t to)
{
    const __m512i table = _mm512_load_si512(bends);
    const float *lift = w->p->t->lift + w->p->first;
    fence();
    FRIT_UNROLL_BY(4)
    for (int64_t i = from; i < to; i++) {
        const __mmask32 seen = w->cut ? seen_by(w->p->t, w->p->first + i, w->at) : 0xffffffff;
        const __m512i bits =
            weights_of(_mm512_load_ps(w->scores + i * 16), _mm512_load_ps(w->scores + (FRIT_BF16_QUERIES + i) * 16),
                       constant_16(lift[i]), table, (__mmask16)seen, (__mmask16)(seen >> 16));
        _mm512_store_si512(w->weights + i * STEP, bits);
        w->all = _mm512_or_si512(w->all, bits);
    }
    fence();
}

// ------------------------------------------------------------------------------- scores

// For heads of up to 64 elements the queries stay in tiles for all positions.
static void open_scores(const panel *p)
{
    const uint8_t *below = p->q + p->r->k_steps * FRIT_TILE_BYTES;
    if (p->r->k_steps > 2) return;
    _tile_loadd(4, p->q, 64);
    _tile_loadd(5, below, 64);
    if (p->r->k_steps < 2) return;
    _tile_loadd(6, p->q + FRIT_TILE_BYTES, 64);
    _tile_loadd(7, below + FRIT_TILE_BYTES, 64);
}

// Computes scores of 32 positions, [2, 32, 16], and turns the scores of `w`, if not NULL, into weights.
FRIT_INLINE void multiply_short(const panel *p, int step, float *scores, weighing *w, int k_steps)
{
    const uint32_t *keys = p->r->keys + step * p->r->page_words;
    for (int half = 0; half < 2; half++, keys += k_steps * TILE_WORDS, scores += FRIT_BF16_QUERIES * 16) {
        const int i = half * TILE;
        _tile_zero(0);
        _tile_zero(1);
        _tile_loadd(2, keys, 64);
        if (k_steps > 1) _tile_loadd(3, keys + TILE_WORDS, 64);
        _tile_dpbf16ps(0, 4, 2);
        if (w) weigh_scores(w, i, i + 4);
        _tile_dpbf16ps(1, 5, 2);
        if (w) weigh_scores(w, i + 4, i + 8);
        if (k_steps > 1) _tile_dpbf16ps(0, 6, 3);
        if (w) weigh_scores(w, i + 8, i + 12);
        if (k_steps > 1) _tile_dpbf16ps(1, 7, 3);
        if (w) weigh_scores(w, i + 12, i + 16);
        _tile_stored(0, scores, 64);
        _tile_stored(1, scores + TILE * 16, 64);
    }
}

FRIT_INLINE void multiply_long(const panel *p, int step, float *scores, weighing *w)
{
    const int64_t k_steps = p->r->k_steps;
    const uint32_t *keys = p->r->keys + step * p->r->page_words, *more_keys = keys + k_steps * TILE_WORDS;
    const uint8_t *q = p->q, *below = q + k_steps * FRIT_TILE_BYTES;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t s = 0; s < k_steps; s++) {
        _tile_loadd(4, q + s * FRIT_TILE_BYTES, 64);
        _tile_loadd(6, keys + s * TILE_WORDS, 64);
        _tile_loadd(5, below + s * FRIT_TILE_BYTES, 64);
        _tile_loadd(7, more_keys + s * TILE_WORDS, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 5, 6);
        _tile_dpbf16ps(2, 4, 7);
        _tile_dpbf16ps(3, 5, 7);
        if (w) weigh_scores(w, FRIT_BF16_QUERIES * s / k_steps, FRIT_BF16_QUERIES * (s + 1) / k_steps);
    }
    _tile_stored(0, scores, 64);
    _tile_stored(1, scores + TILE * 16, 64);
    _tile_stored(2, scores + FRIT_BF16_QUERIES * 16, 64);
    _tile_stored(3, scores + (FRIT_BF16_QUERIES + TILE) * 16, 64);
}

FRIT_INLINE void multiply_scores(const panel *p, int step, float *scores, weighing *w)
{
    if (p->r->k_steps == 2)
        multiply_short(p, step, scores, w, 2);
    else if (p->r->k_steps == 1)
        multiply_short(p, step, scores, w, 1);
    else
        multiply_long(p, step, scores, w);
}

// Computes the weights of steps [begin, end). Returns true if a weight is too large for the lift.
FRIT_INLINE bool weigh_steps(const panel *p, int begin, int end, bool cut)
{
    const bool adjusts = p->t->softcap != 0 || p->t->slope;
    weighing w = {.p = p, .weights = p->r->weights, .cut = cut, .all = _mm512_setzero_si512()};
    fence();
    multiply_scores(p, begin, p->r->scores[0], NULL);
    for (int step = begin; step < end; step++, w.weights += FRIT_BF16_QUERIES * STEP) {
        float *now = p->r->scores[(step - begin) & 1];
        w.scores = now, w.at = p->t->first + step * STEP;
        fence();
        prefetch_ahead(p->r);
        if (adjusts) adjust(p, now, w.at);
        if (step + 1 < end)
            multiply_scores(p, step + 1, p->r->scores[(step - begin + 1) & 1], &w);
        else
            weigh_scores(&w, 0, FRIT_BF16_QUERIES);
    }
    fence();
    return _mm512_test_epi16_mask(w.all, _mm512_set1_epi16((short)TOO_LARGE)) != 0;
}

static bool weigh_all(const panel *p, int begin, int end, bool cut)
{
    return cut ? weigh_steps(p, begin, end, true) : weigh_steps(p, begin, end, false);
}

static void compute_scores(const panel *p, int step, float *scores)
{
    fence();
    multiply_scores(p, step, scores, NULL);
    fence();
}

// ------------------------------------------------------------------------------- sums

// Adds the weights of four of sixteen queries.
FRIT_INLINE void add_four(__m512 *total, int first, const uint16_t *weights)
{
    const __m512bh one = (__m512bh)_mm512_set1_epi16(0x3f80);
    fence();
    FRIT_UNROLL(4)
    for (int i = first; i < first + 4; i++)
        total[i] = _mm512_dpbf16_ps(total[i], (__m512bh)_mm512_load_si512(weights + i * STEP), one);
    fence();
}

// Adds the values of steps [begin, end) to 32 rows of n_columns tiles of the sums, and the weights of the first (0) or
// second (1) sixteen queries, or of none (-1).
FRIT_INLINE void add_columns(const panel *p, int begin, int end, int64_t column, int n_columns, int half)
{
    const int64_t stride = p->t->v_dim + SUM_COLUMNS, next = p->r->page_words;
    const size_t stride_bytes = (size_t)stride * sizeof(float);
    float *rows = p->t->acc + p->first * stride, *sums = rows + column * TILE, *below = sums + TILE * stride;
    float *totals = rows + (half > 0 ? TILE * stride : 0) + p->t->v_dim;
    const uint32_t *values = p->r->values + begin * next + column * TILE_WORDS;
    const uint16_t *weights = p->r->weights;
    __m512 total[TILE];
    _tile_loadd(0, sums, stride_bytes);
    _tile_loadd(1, below, stride_bytes);
    if (n_columns > 1) _tile_loadd(2, sums + TILE, stride_bytes);
    if (n_columns > 1) _tile_loadd(3, below + TILE, stride_bytes);
    if (half >= 0) {
        FRIT_UNROLL(16)
        for (int i = 0; i < TILE; i++) total[i] = _mm512_loadu_ps(totals + i * stride);
    }
    for (int step = begin; step < end; step++, values += next, weights += FRIT_BF16_QUERIES * STEP) {
        const uint16_t *mine = weights + (half > 0 ? TILE * STEP : 0);
        fence();
        _tile_loadd(4, weights, 64);
        _tile_loadd(6, values, 64);
        _tile_loadd(5, weights + TILE * STEP, 64);
        if (n_columns > 1) _tile_loadd(7, values + TILE_WORDS, 64);
        _tile_dpbf16ps(0, 4, 6);
        if (half >= 0) add_four(total, 0, mine);
        _tile_dpbf16ps(1, 5, 6);
        if (half >= 0) add_four(total, 4, mine);
        if (n_columns > 1) _tile_dpbf16ps(2, 4, 7);
        if (half >= 0) add_four(total, 8, mine);
        if (n_columns > 1) _tile_dpbf16ps(3, 5, 7);
        if (half >= 0) add_four(total, 12, mine);
    }
    _tile_stored(0, sums, stride_bytes);
    _tile_stored(1, below, stride_bytes);
    if (n_columns > 1) _tile_stored(2, sums + TILE, stride_bytes);
    if (n_columns > 1) _tile_stored(3, below + TILE, stride_bytes);
    fence();
    if (half < 0) return;
    FRIT_UNROLL(16)
    for (int i = 0; i < TILE; i++) _mm512_storeu_ps(totals + i * stride, total[i]);
}

// Adds the weights of the second sixteen queries if there were too few columns to interleave it.
static void add_weights(const panel *p, int begin, int end)
{
    const int64_t stride = p->t->v_dim + SUM_COLUMNS;
    const __m512bh one = (__m512bh)_mm512_set1_epi16(0x3f80);
    float *total = p->t->acc + (p->first + TILE) * stride + p->t->v_dim;
    for (int i = 0; i < TILE; i++, total += stride) {
        const uint16_t *weights = p->r->weights + (TILE + i) * STEP;
        __m512 sum = _mm512_loadu_ps(total);
        for (int step = begin; step < end; step++, weights += FRIT_BF16_QUERIES * STEP)
            sum = _mm512_dpbf16_ps(sum, (__m512bh)_mm512_load_si512(weights), one);
        _mm512_storeu_ps(total, sum);
    }
}

static void add_values(const panel *p, int begin, int end)
{
    const int64_t n = p->r->n_blocks;
    if (n == 1) {
        add_columns(p, begin, end, 0, 1, 0);
        add_weights(p, begin, end);
        return;
    }
    add_columns(p, begin, end, 0, 2, 0);
    if (n < 4) add_weights(p, begin, end);
    if (n >= 4) add_columns(p, begin, end, 2, 2, 1);
    int64_t column = n < 4 ? 2 : 4;
    for (; column + 1 < n; column += 2) add_columns(p, begin, end, column, 2, -1);
    if (column < n) add_columns(p, begin, end, column, 1, -1);
}

// ------------------------------------------------------------------------------- spans

static void attend_bf16(const frit_attend_bf16 *t)
{
    static const bf16_products products = {open_scores, compute_scores, weigh_all, add_values};
    fence();
    open_tiles();
    attend_panels(t, &products);
    _tile_release();   // a context switch need not save tiles
}

void frit_install_amx_attend(frit_kernels *k)
{
    k->attend_bf16 = attend_bf16;
    k->attend_bf16_if_long = false;
}
