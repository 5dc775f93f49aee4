// SPDX-License-Identifier: MIT
// backend/cpu/x86/attend_avx512bf16.h: attention in bf16 (frit_attend_bf16), without its two products:
//
//     scores [query, position]    = queries [query, dim]       x keys [dim / 2, position] words of two dims
//     weights                     = scores + lift, rounded, their fraction bent
//     sums [query, dim]          += weights [query, position]  x values [position / 2, dim] words of two positions
//
// The files that define the products (attend_amx.c, attend_avx512bf16.c) include this file once. Panels of 32 queries
// are computed over a span of positions, whose keys and values are already packed into tiles, page by page
// (kv_page_avx512bf16.c). A panel computes FRIT_BF16_BLOCK positions at a time, whose weights fit the L1 cache.
//
// Packing weights from two vectors changes the order of 32 positions: each 128 bits have four of the first sixteen
// positions and four of the others. Values are stored in the same order.
#pragma once
#include "backend/cpu/x86/vec/math_avx512.h"
#include "base/minmax.h"

#include <math.h>
#include <stdbool.h>

enum { TILE = 16, STEP = 32, TILE_WORDS = TILE * 16, SUM_COLUMNS = 16, LINE = 64, TOO_LARGE = 0xc000 };
enum { BLOCK_STEPS = FRIT_BF16_BLOCK / STEP };
_Static_assert((int)STEP == (int)FRIT_PAGE_TOKENS, "a step is a page");

typedef struct room {              // the tiles and the scratch
    const uint32_t *keys;          // each page has [2, k_steps] tiles of sixteen positions
    const uint32_t *values;        // each page has [v_dim / 16] tiles
    int64_t page_words;            // words from one page to the next
    float *scores[2];              // [2, 32, 16]: scores of 32 positions
    uint16_t *weights;             // [FRIT_BF16_BLOCK / 32, 32, 32]
    int64_t k_steps, n_blocks;     // groups of 32 dims of a key, of 16 dims of a value
    const uint8_t *ahead;          // memory to prefetch
    int64_t n_ahead, step_ahead;   // its lines, and lines for each step
} room;

static inline int64_t k_steps_of(int64_t k_dim)
{
    return (k_dim + STEP - 1) / STEP;
}

static inline room rooms_of(const frit_attend_bf16 *t)
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

FRIT_INLINE __mmask32 first_32(int64_t n)
{
    return n >= 32 ? 0xffffffff : n <= 0 ? 0 : (__mmask32)((1u << n) - 1);
}

// ------------------------------------------------------------------------------- panels

typedef struct panel {   // 32 queries
    const frit_attend_bf16 *t;
    room *r;
    const uint8_t *q;             // two rows of k_steps tiles
    int64_t first;                // first query
    int begin, end;               // steps of 32 positions that some query sees
    int whole_begin, whole_end;   // steps whose positions all queries see
} panel;

// The functions of an including file. `open`, if not NULL, is called first for each block.
typedef struct bf16_products {
    void (*open)(const panel *p);
    // Computes scores of 32 positions, [2, 32, 16], and weights of the steps [begin, end) of a block. Returns true if a
    // weight is too large for the lift. `cut`: some query does not see all positions.
    void (*scores)(const panel *p, int step, float *scores);
    bool (*weigh)(const panel *p, int begin, int end, bool cut);
    void (*add)(const panel *p, int begin, int end);   // adds values and weights of the steps
} bf16_products;

// The steps of 32 positions that queries of the panel see.
static inline void find_steps(panel *p)
{
    const frit_attend_bf16 *t = p->t;
    int begin = t->end, end = t->begin, whole_begin = t->begin, whole_end = t->end;
    for (int64_t i = p->first; i < p->first + FRIT_BF16_QUERIES; i += 16) {
        const __m512i from = _mm512_loadu_si512(t->seen_begin + i), to = _mm512_loadu_si512(t->seen_end + i);
        const __mmask16 any = _mm512_cmplt_epi32_mask(from, to);
        begin = frit_min_int(begin, _mm512_mask_reduce_min_epi32(any, from));
        end = frit_max_int(end, _mm512_mask_reduce_max_epi32(any, to));
        whole_begin = frit_max_int(whole_begin, _mm512_reduce_max_epi32(from));
        whole_end = frit_min_int(whole_end, _mm512_reduce_min_epi32(to));
    }
    begin = frit_max_int(begin, t->begin), end = frit_min_int(end, t->end);
    p->begin = (begin - t->first) / STEP;
    p->end = begin < end ? (end - t->first + STEP - 1) / STEP : p->begin;
    p->whole_begin = (whole_begin - t->first + STEP - 1) / STEP;
    p->whole_end = whole_end > t->first ? (whole_end - t->first) / STEP : 0;
}

// ------------------------------------------------------------------------------- weights

// The difference of 1 + m / 128 and 2^(m / 128) in units of 1 / 128, for two consecutive m in each word.
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
    const __m512i bits = _mm512_packus_epi32(a, b);   // negative: weight 0
    const __mmask64 low_bytes = 0x5555555555555555;
    return _mm512_sub_epi16(bits, _mm512_maskz_permutexvar_epi8(low_bytes, _mm512_srli_epi16(bits, 1), table));
}

// Mask of the 32 positions from `at` on that a query sees.
FRIT_INLINE __mmask32 seen_by(const frit_attend_bf16 *t, int64_t query, int32_t at)
{
    const int32_t begin = t->seen_begin[query] > t->begin ? t->seen_begin[query] : t->begin;
    const int32_t end = t->seen_end[query] < t->end ? t->seen_end[query] : t->end;
    return first_32(end - at) & ~first_32(begin - at);
}

// Applies softcap, slope and mask to the scores of 32 positions from `at` on, in place.
static inline void adjust(const panel *p, float *scores, int32_t at)
{
    const frit_attend_bf16 *t = p->t;
    const __m512 lanes = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (int i = 0; i < 2 * FRIT_BF16_QUERIES; i++) {   // sixteen positions of each query, then the next sixteen
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

static inline void prefetch_ahead(room *r)
{
    const int64_t n = r->n_ahead < r->step_ahead ? r->n_ahead : r->step_ahead;
    for (int64_t i = 0; i < n; i++) _mm_prefetch((const char *)r->ahead + i * LINE, _MM_HINT_T1);
    r->ahead += n * LINE;
    r->n_ahead -= n;
}

// ------------------------------------------------------------------------------- room

// Rescales the sums of a query whose lift changed.
static inline void shrink(float *sums, int64_t n, float octaves)
{
    const __m512 factor = constant_16(octaves < -126 ? 0 : exp2f(octaves));
    for (int64_t d = 0; d < n; d += 16) _mm512_storeu_ps(sums + d, _mm512_mul_ps(_mm512_loadu_ps(sums + d), factor));
}

// Lowers the lift of all queries that have weights of 2 or more.
static inline void make_room(const bf16_products *products, const panel *p, int begin, int end)
{
    const frit_attend_bf16 *t = p->t;
    float tops[FRIT_BF16_QUERIES], *scores = p->r->scores[0];
    for (int i = 0; i < FRIT_BF16_QUERIES; i++) tops[i] = -INFINITY;
    for (int step = begin; step < end; step++) {
        const int32_t at = t->first + step * STEP;
        products->scores(p, step, scores);
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

static inline void attend_block(const bf16_products *products, const panel *p, int begin, int end)
{
    const bool cut = begin < p->whole_begin || end > p->whole_end;
    if (products->open) products->open(p);
    if (products->weigh(p, begin, end, cut)) {
        make_room(products, p, begin, end);
        products->weigh(p, begin, end, true);
    }
    products->add(p, begin, end);
}

static inline void attend_panels(const frit_attend_bf16 *t, const bf16_products *products)
{
    room r = rooms_of(t);
    for (int64_t first = 0; first < t->n_queries; first += FRIT_BF16_QUERIES) {
        panel p = {.t = t, .r = &r, .q = t->q + first / TILE * r.k_steps * FRIT_TILE_BYTES, .first = first};
        find_steps(&p);
        for (int step = p.begin, end; step < p.end; step = end) {
            end = frit_min_int(p.end, (step / BLOCK_STEPS + 1) * BLOCK_STEPS);
            attend_block(products, &p, step, end);
        }
    }
}
