// SPDX-License-Identifier: MIT
// Attention of many queries for AMX, 32 queries after the other, over a span of positions whose keys and values were
// packed into tiles before, page by page:
//
//     scores [query, position]    = queries [query, dim]       x keys [dim / 2, position] words of two dims
//     weights                     = scores + lift, rounded, their fraction bent
//     sums [query, dim]          += weights [query, position]  x values [position / 2, dim] words of two positions
//
// Tiles and vectors work at the same time, a few instructions of either after each other, because at times (perhaps
// when another thread has half of its window) the processor does not see far: scores of 32 positions are multiplied
// while those of the 32 before become weights, and weights are added up while values are multiplied, to sixteen sums
// for each query. Tiles are loaded four at a time, as few as there can be: beside a busy neighbour that takes as long
// as to multiply them.
//
// A panel of 32 queries goes through FRIT_BF16_BLOCK positions at a time, whose weights fit into the first cache.
//
// Weights are packed from two vectors, which mixes the order of 32 positions: of each 128 bits four are from the first
// sixteen, four from the others. Values lie in the same order, see pack_values_of.
#include "backend/cpu/x86/amx.h"
#include "backend/cpu/x86/math_avx512.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { TILE = 16, STEP = 32, TILE_WORDS = TILE * 16, SUM_COLUMNS = 16, LINE = 64, TOO_LARGE = 0xc000 };
enum { BLOCK_STEPS = FRIT_BF16_BLOCK / STEP };
_Static_assert((int)STEP == (int)FRIT_PAGE_TOKENS, "a step is a page");

typedef struct room {              // the tiles and the scratch
    const uint32_t *keys;          // of each page [2, k_steps] tiles: of sixteen positions
    const uint32_t *values;        // of each page [v_dim / 16] tiles
    int64_t page_words;            // from one page to the next
    float *scores[2];              // [2, 32, 16]: of 32 positions, sixteen after the other
    uint16_t *weights;             // [FRIT_BF16_BLOCK / 32, 32, 32]
    int64_t k_steps, n_blocks;     // of 32 dims of a key, of 16 dims of a value
    const uint8_t *ahead;          // what is still to be brought closer,
    int64_t n_ahead, step_ahead;   // in lines: all, in a step
} room;

static int64_t k_steps_of(int64_t k_dim)
{
    return (k_dim + STEP - 1) / STEP;
}

static room rooms_of(const frit_attend_bf16 *t)
{
    room r = {.k_steps = k_steps_of(t->k_dim), .n_blocks = t->v_dim / TILE};
    r.page_words = (int64_t)(frit_bf16_page_bytes(t->k_dim, t->v_dim) / sizeof(uint32_t));
    r.keys = (const uint32_t *)(const void *)t->tiles;
    r.values = r.keys + 2 * r.k_steps * TILE_WORDS;
    r.ahead = t->ahead, r.n_ahead = t->ahead ? (int64_t)(t->n_ahead / LINE) : 0;
    const int64_t n_steps = t->n_queries / FRIT_BF16_QUERIES * ((t->end - t->first + STEP - 1) / STEP);
    r.step_ahead = (r.n_ahead + n_steps - 1) / n_steps;
    r.scores[0] = (float *)(void *)t->scratch;
    r.scores[1] = r.scores[0] + FRIT_BF16_QUERIES * STEP;
    r.weights = (uint16_t *)(void *)(r.scores[1] + FRIT_BF16_QUERIES * STEP);
    return r;
}

static inline void fence(void)   // compilers do not see what tiles load and store
{
    atomic_signal_fence(memory_order_seq_cst);
}

static void open_tiles(void)   // all of 16 rows of 64 bytes
{
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {TILE, TILE, TILE, TILE, TILE, TILE, TILE, TILE}};
    _tile_loadconfig(&config);
}

// ------------------------------------------------------------------------------- keys and values

FRIT_INLINE __mmask32 first_32(int64_t n)
{
    return n >= 32 ? 0xffffffff : n <= 0 ? 0 : (__mmask32)((1u << n) - 1);
}

// Numbers [d, d + 32) of a row as bfloat16, zeros where the mask is not set.
FRIT_INLINE __m512i load_32(frit_dtype type, const uint8_t *row, int64_t d, __mmask32 mask)
{
    if (type == FRIT_DTYPE_BF16) return _mm512_maskz_loadu_epi16(mask, row + 2 * d);
    __m512 low, high;
    if (type == FRIT_DTYPE_F16) {
        low = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16((__mmask16)mask, row + 2 * d));
        high = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16((__mmask16)(mask >> 16), row + 2 * d + 32));
    } else {
        low = _mm512_maskz_loadu_ps((__mmask16)mask, row + 4 * d);
        high = _mm512_maskz_loadu_ps((__mmask16)(mask >> 16), row + 4 * d + 64);
    }
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

// Numbers [d, d + 16) of two rows, as words of both.
FRIT_INLINE __m512i load_pairs(frit_dtype type, const uint8_t *const rows[2], int64_t d, const __mmask16 seen[2])
{
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                           21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    __m512i both;
    if (type == FRIT_DTYPE_BF16) {
        const __m256i a = _mm256_maskz_loadu_epi16(seen[0], rows[0] + 2 * d);
        both = _mm512_inserti64x4(_mm512_castsi256_si512(a), _mm256_maskz_loadu_epi16(seen[1], rows[1] + 2 * d), 1);
    } else {
        __m512 x[2];
        for (int i = 0; i < 2; i++)
            x[i] = type == FRIT_DTYPE_F16 ? _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(seen[i], rows[i] + 2 * d))
                                          : _mm512_maskz_loadu_ps(seen[i], rows[i] + 4 * d);
        both = (__m512i)_mm512_cvtne2ps_pbh(x[1], x[0]);
    }
    return _mm512_permutexvar_epi16(order, both);
}

// Sixteen rows of sixteen words, transposed.
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

// Row i of a page, and whether it may be read; memory beside those rows may hold anything.
FRIT_INLINE const uint8_t *row_at(const frit_bf16_page *page, const uint8_t *rows, uint64_t row_bytes, int i, bool *may)
{
    *may = i >= page->begin && i < page->end;
    return *may ? rows + (uint64_t)i * row_bytes : rows;
}

// Transposed keys: pairs of dimensions of sixteen positions are rows of a tile already.
FRIT_INLINE void pack_transposed_keys_of(const frit_bf16_page *page, frit_dtype type)
{
    const int64_t step = FRIT_PAGE_TOKENS * (type == FRIT_DTYPE_F32 ? 4 : 2);
    uint32_t *tile = (uint32_t *)(void *)page->tiles;
    for (int p = 0; p < FRIT_PAGE_TOKENS; p += TILE) {
        const __mmask16 positions = (__mmask16)(first_32(page->end - p) & ~first_32(page->begin - p));
        for (int64_t d = 0; d < page->k_dim; d += STEP, tile += TILE_WORDS)
            for (int i = 0; i < TILE; i++) {
                const int64_t at = d + 2 * i;
                const uint8_t *const rows[2] = {page->k + at * step, page->k + (at + 1) * step};
                const __mmask16 seen[2] = {at < page->k_dim ? positions : 0, at + 1 < page->k_dim ? positions : 0};
                _mm512_store_si512(tile + i * 16, load_pairs(type, rows, p, seen));
            }
    }
}

FRIT_INLINE void pack_keys_of(const frit_bf16_page *page, frit_dtype type)
{
    if (page->k_transposed) {
        pack_transposed_keys_of(page, type);
        return;
    }
    uint32_t *tile = (uint32_t *)(void *)page->tiles;
    for (int p = 0; p < FRIT_PAGE_TOKENS; p += TILE) {
        for (int64_t d = 0; d < page->k_dim; d += STEP, tile += TILE_WORDS) {
            const __mmask32 mask = first_32(page->k_dim - d);
            __m512i rows[TILE];
            for (int i = 0; i < TILE; i++) {
                bool may;
                const uint8_t *row = row_at(page, page->k, page->k_bytes, p + i, &may);
                rows[i] = load_32(type, row, d, may ? mask : 0);
            }
            transpose(rows);
            for (int i = 0; i < TILE; i++) _mm512_store_si512(tile + i * 16, rows[i]);
        }
    }
}

FRIT_INLINE void pack_values_of(const frit_bf16_page *page, frit_dtype type)
{
    uint32_t *tiles = (uint32_t *)(void *)page->tiles + 2 * k_steps_of(page->k_dim) * TILE_WORDS;
    for (int i = 0; i < TILE; i++) {   // of 128 bits of weights: pairs of the first sixteen, pairs of the others
        const int p = i % 4 < 2 ? i / 4 * 4 + i % 4 * 2 : TILE + i / 4 * 4 + (i % 4 - 2) * 2;
        bool may[2];
        const uint8_t *const rows[2] = {row_at(page, page->v, page->v_bytes, p, &may[0]),
                                        row_at(page, page->v, page->v_bytes, p + 1, &may[1])};
        const __mmask16 seen[2] = {may[0] ? 0xffff : 0, may[1] ? 0xffff : 0};
        for (int64_t d = 0; d < page->v_dim; d += TILE)
            _mm512_store_si512(tiles + d / TILE * TILE_WORDS + i * 16, load_pairs(type, rows, d, seen));
    }
}

static void pack_kv_page(const frit_bf16_page *page)
{
    if (page->k_type == FRIT_DTYPE_F16)
        pack_keys_of(page, FRIT_DTYPE_F16);
    else if (page->k_type == FRIT_DTYPE_BF16)
        pack_keys_of(page, FRIT_DTYPE_BF16);
    else
        pack_keys_of(page, FRIT_DTYPE_F32);
    if (page->v_type == FRIT_DTYPE_F16)
        pack_values_of(page, FRIT_DTYPE_F16);
    else if (page->v_type == FRIT_DTYPE_BF16)
        pack_values_of(page, FRIT_DTYPE_BF16);
    else
        pack_values_of(page, FRIT_DTYPE_F32);
}

// ------------------------------------------------------------------------------- panels

typedef struct panel {   // 32 queries
    const frit_attend_bf16 *t;
    room *r;
    const uint8_t *q;             // two rows of k_steps tiles
    int64_t first;                // query
    int begin, end;               // steps of 32 positions that some of them see
    int whole_begin, whole_end;   // that all of them see, all 32
} panel;

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

// The steps of 32 positions that queries of the panel see.
static void find_steps(panel *p)
{
    const frit_attend_bf16 *t = p->t;
    int begin = t->end, end = t->begin, whole_begin = t->begin, whole_end = t->end;
    for (int64_t i = p->first; i < p->first + FRIT_BF16_QUERIES; i += 16) {
        const __m512i from = _mm512_loadu_si512(t->seen_begin + i), to = _mm512_loadu_si512(t->seen_end + i);
        const __mmask16 any = _mm512_cmplt_epi32_mask(from, to);
        begin = smaller(begin, _mm512_mask_reduce_min_epi32(any, from));
        end = larger(end, _mm512_mask_reduce_max_epi32(any, to));
        whole_begin = larger(whole_begin, _mm512_reduce_max_epi32(from));
        whole_end = smaller(whole_end, _mm512_reduce_min_epi32(to));
    }
    begin = larger(begin, t->begin), end = smaller(end, t->end);
    p->begin = (begin - t->first) / STEP;
    p->end = begin < end ? (end - t->first + STEP - 1) / STEP : p->begin;
    p->whole_begin = (whole_begin - t->first + STEP - 1) / STEP;
    p->whole_end = whole_end > t->first ? (whole_end - t->first) / STEP : 0;
}

// ------------------------------------------------------------------------------- weights

// How much a fraction of m / 128 lies above that of 2^(m / 128), in 128ths; for two neighbouring m each.
static const uint8_t bends[64] __attribute__((aligned(64))) = {
    0,  1,  1,  2,  2,  3,  4,  4,  5,  5,  5,  6,  6,  7,  7,  8,  8,  8,  9,  9,  9,  9,
    10, 10, 10, 10, 10, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 10, 10, 10,
    10, 10, 9,  9,  9,  8,  8,  8,  7,  7,  6,  6,  5,  5,  4,  3,  3,  2,  1,  1,
};

// Weights of 32 positions, in the order of packed vectors.
FRIT_INLINE __m512i weights_of(__m512 low, __m512 high, __m512 lift, __m512i table, __mmask16 seen_low,
                               __mmask16 seen_high)
{
    const __m512i a = _mm512_maskz_cvtps_epi32(seen_low, _mm512_add_ps(low, lift));
    const __m512i b = _mm512_maskz_cvtps_epi32(seen_high, _mm512_add_ps(high, lift));
    const __m512i bits = _mm512_packus_epi32(a, b);   // below zero: no weight at all
    const __mmask64 low_bytes = 0x5555555555555555;
    return _mm512_sub_epi16(bits, _mm512_maskz_permutexvar_epi8(low_bytes, _mm512_srli_epi16(bits, 1), table));
}

// Which of 32 positions from `at` on a query sees.
FRIT_INLINE __mmask32 seen_by(const frit_attend_bf16 *t, int64_t query, int32_t at)
{
    const int32_t begin = t->seen_begin[query] > t->begin ? t->seen_begin[query] : t->begin;
    const int32_t end = t->seen_end[query] < t->end ? t->seen_end[query] : t->end;
    return first_32(end - at) & ~first_32(begin - at);
}

// What comes between the product and the weights, in place: 32 positions from `at` on.
static void adjust(const panel *p, float *scores, int32_t at)
{
    const frit_attend_bf16 *t = p->t;
    const __m512 lanes = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (int i = 0; i < 2 * FRIT_BF16_QUERIES; i++) {   // sixteen positions of each query, then sixteen more
        const int64_t query = p->first + i % FRIT_BF16_QUERIES;
        __m512 x = _mm512_load_ps(scores + i * 16);
        if (t->softcap != 0)
            x = _mm512_mul_ps(constant_16(t->softcap), tanh_16(_mm512_mul_ps(x, constant_16(1 / t->softcap))));
        if (t->slope) {
            const __m512 own_position = constant_16((float)(t->own_position[query] - at - i / FRIT_BF16_QUERIES * 16));
            x = _mm512_fnmadd_ps(constant_16(t->slope[query]), _mm512_abs_ps(_mm512_sub_ps(own_position, lanes)), x);
        }
        _mm512_store_ps(scores + i * 16, x);
    }
}

typedef struct weighing {   // of the scores of 32 positions
    const panel *p;
    const float *scores;
    uint16_t *weights;   // [32, 32]
    int32_t at;          // the first position
    bool cut;            // some query does not see all positions
    __m512i all;         // all bits that some weight has
} weighing;

// Queries [from, to).
FRIT_INLINE void weigh(weighing *w, int64_t from, int64_t to)
{
    const __m512i table = _mm512_load_si512(bends);
    const float *lift = w->p->t->lift + w->p->first;
    fence();
#pragma GCC unroll 4
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

// Heads of up to 64 numbers: the queries stay in tiles while positions pass.
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

// Scores of 32 positions, [2, 32, 16], while those of `w`, if there are any, become weights.
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
        if (w) weigh(w, i, i + 4);
        _tile_dpbf16ps(1, 5, 2);
        if (w) weigh(w, i + 4, i + 8);
        if (k_steps > 1) _tile_dpbf16ps(0, 6, 3);
        if (w) weigh(w, i + 8, i + 12);
        if (k_steps > 1) _tile_dpbf16ps(1, 7, 3);
        if (w) weigh(w, i + 12, i + 16);
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
        if (w) weigh(w, FRIT_BF16_QUERIES * s / k_steps, FRIT_BF16_QUERIES * (s + 1) / k_steps);
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

static void bring_closer(room *r)
{
    const int64_t n = r->n_ahead < r->step_ahead ? r->n_ahead : r->step_ahead;
    for (int64_t i = 0; i < n; i++) _mm_prefetch((const char *)r->ahead + i * LINE, _MM_HINT_T1);
    r->ahead += n * LINE;
    r->n_ahead -= n;
}

// Weights of the steps [begin, end). Returns whether some weight needs more room.
FRIT_INLINE bool weigh_all(const panel *p, int begin, int end, bool cut)
{
    const bool adjusts = p->t->softcap != 0 || p->t->slope;
    weighing w = {.p = p, .weights = p->r->weights, .cut = cut, .all = _mm512_setzero_si512()};
    fence();
    multiply_scores(p, begin, p->r->scores[0], NULL);
    for (int step = begin; step < end; step++, w.weights += FRIT_BF16_QUERIES * STEP) {
        float *now = p->r->scores[(step - begin) & 1];
        w.scores = now, w.at = p->t->first + step * STEP;
        fence();
        bring_closer(p->r);
        if (adjusts) adjust(p, now, w.at);
        if (step + 1 < end)
            multiply_scores(p, step + 1, p->r->scores[(step - begin + 1) & 1], &w);
        else
            weigh(&w, 0, FRIT_BF16_QUERIES);
    }
    fence();
    return _mm512_test_epi16_mask(w.all, _mm512_set1_epi16((short)TOO_LARGE)) != 0;
}

// ------------------------------------------------------------------------------- sums

// The weights of four of sixteen queries.
FRIT_INLINE void add_four(__m512 *total, int first, const uint16_t *weights)
{
    const __m512bh one = (__m512bh)_mm512_set1_epi16(0x3f80);
    fence();
#pragma GCC unroll 4
    for (int i = first; i < first + 4; i++)
        total[i] = _mm512_dpbf16_ps(total[i], (__m512bh)_mm512_load_si512(weights + i * STEP), one);
    fence();
}

// Adds the values of the steps [begin, end) to 32 rows of n_columns tiles of the sums, and of sixteen queries the
// weights: the first, the second, or none (-1).
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
#pragma GCC unroll 16
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
#pragma GCC unroll 16
    for (int i = 0; i < TILE; i++) _mm512_storeu_ps(totals + i * stride, total[i]);
}

// The weights of the second sixteen queries, where there were not columns enough to add them meanwhile.
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

// ------------------------------------------------------------------------------- room

// Sums of weights that were relative to a smaller score.
static void shrink(float *sums, int64_t n, float octaves)
{
    const __m512 factor = constant_16(octaves < -126 ? 0 : exp2f(octaves));
    for (int64_t d = 0; d < n; d += 16) _mm512_storeu_ps(sums + d, _mm512_mul_ps(_mm512_loadu_ps(sums + d), factor));
}

// Lowers the lift of all queries whose weights come to 2 or more.
static void make_room(const panel *p, int begin, int end)
{
    const frit_attend_bf16 *t = p->t;
    float tops[FRIT_BF16_QUERIES], *scores = p->r->scores[0];
    for (int i = 0; i < FRIT_BF16_QUERIES; i++) tops[i] = -INFINITY;
    for (int step = begin; step < end; step++) {
        const int32_t at = t->first + step * STEP;
        multiply_scores(p, step, scores, NULL);
        fence();
        adjust(p, scores, at);
        for (int i = 0; i < FRIT_BF16_QUERIES; i++) {
            const __mmask32 seen = seen_by(t, p->first + i, at);
            const __m512 none = constant_16(-INFINITY);
            const __m512 low = _mm512_mask_blend_ps((__mmask16)seen, none, _mm512_load_ps(scores + i * 16));
            const __m512 high = _mm512_mask_blend_ps((__mmask16)(seen >> 16), none,
                                                     _mm512_load_ps(scores + (FRIT_BF16_QUERIES + i) * 16));
            const float top = _mm512_reduce_max_ps(_mm512_max_ps(low, high));
            if (top > tops[i]) tops[i] = top;
        }
        fence();
    }
    for (int i = 0; i < FRIT_BF16_QUERIES; i++) {
        float *lift = &t->lift[p->first + i];
        const float lower = frit_bf16_lift(tops[i]);
        if (!(tops[i] + *lift >= FRIT_OCTAVE * 128 - 1) || !(lower < *lift)) continue;
        shrink(t->acc + (p->first + i) * (t->v_dim + SUM_COLUMNS), t->v_dim + SUM_COLUMNS,
               (lower - *lift) / FRIT_OCTAVE);
        *lift = lower;
    }
}

// ------------------------------------------------------------------------------- spans

static void attend_block(const panel *p, int begin, int end)
{
    const bool cut = begin < p->whole_begin || end > p->whole_end;
    if (cut ? weigh_all(p, begin, end, true) : weigh_all(p, begin, end, false)) {
        make_room(p, begin, end);
        weigh_all(p, begin, end, true);
    }
    add_values(p, begin, end);
}

static void attend_bf16(const frit_attend_bf16 *t)
{
    room r = rooms_of(t);
    fence();
    open_tiles();
    for (int64_t first = 0; first < t->n_queries; first += FRIT_BF16_QUERIES) {
        panel p = {.t = t, .r = &r, .q = t->q + first / TILE * r.k_steps * FRIT_TILE_BYTES, .first = first};
        find_steps(&p);
        for (int step = p.begin, end; step < p.end; step = end) {
            end = smaller(p.end, (step / BLOCK_STEPS + 1) * BLOCK_STEPS);
            open_scores(&p);
            attend_block(&p, step, end);
        }
    }
    _tile_release();   // so that switching threads saves no tiles
}

void frit_install_amx_attend(frit_kernels *k)
{
    k->attend_bf16 = attend_bf16;
    k->pack_kv_page = pack_kv_page;
}
