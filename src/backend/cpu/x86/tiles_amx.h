// SPDX-License-Identifier: MIT
// backend/cpu/x86/tiles_amx.h: products in AMX tiles, for prefill.
//
// The tile unit multiplies 16 x 32 by 32 x 16 elements of bf16 and adds in f32. Weights are unpacked to bf16 tiles 128
// rows at a time, once for all tokens of the call. The sums stay in tiles for a stretch of columns, and in the result
// between stretches. For a single block of tokens they stay in tiles for all columns:
//
//     for each 128 rows
//         for each stretch of 2048 columns              weights as tiles: 512 KiB
//             for each 128 tokens                       activations: 512 KiB
//                 for each 32 rows
//                     for each 32 tokens                2 x 2 tiles of sums
//                         for each step of 32 columns   2 tiles of weights, 2 of activations, 4 products
//
// Weights and activations are half of an L2 cache of 2 MiB, so that another thread of the core may use the rest.
//
// The first block of tokens is multiplied while weights are unpacked, one step after they are written: tile and vector
// instructions are interleaved, so both units work at the same time. Each step also prefetches a part of the weights
// that are unpacked next, whose address the hardware prefetcher cannot know.
//
// A tile of weights has words of 16 rows; a word has two columns of a row.
//
// Values that do not fit bf16 may be split in two parts, the bf16 value and the rest:
//
//     parts 1     weights * activations
//     parts 2     weights * (activations + rest)
//     parts 3     weights * (activations + rest) + rest of the weights * activations; rest * rest is too small to
// matter
#pragma once
#include "backend/cpu/x86/vec/amx.h"
#include "base/minmax.h"

#include <immintrin.h>
#include <stdatomic.h>

enum {
    BLOCK = 32,                         // rows and tokens of 2 x 2 tiles of sums
    STRETCH = 2048,                     // columns of a stretch with parts 1; half as many with parts 2 and 3
    SHORT_STRETCH = 256,                // columns with a single block of tokens: the weights fit the L1 cache
    GROUP_ROWS = 128,                   // rows whose weights are stored as tiles
    GROUP_TOKENS = 128,                 // tokens that all rows of a group are multiplied by
    STEP_BYTES = 2 * FRIT_TILE_BYTES,   // weights of one part of a step
    WEIGHT_BYTES = STRETCH / FRIT_TILE_COLUMNS * STEP_BYTES,   // weights of 32 rows
    EDGE_BYTES = BLOCK * BLOCK * 4,                            // sums of 32 rows and tokens if the result has fewer
};

_Static_assert((int)GROUP_ROWS / BLOCK * (int)WEIGHT_BYTES + EDGE_BYTES <= (int)FRIT_PRODUCT_SCRATCH, "scratch");

// Two addresses to prefetch: n lines of 64 bytes from each, `part` lines in a step.
typedef struct line_prefetch {
    const uint8_t *at[2];
    int64_t n, part;
} line_prefetch;

FRIT_INLINE void prefetch_lines(line_prefetch *a)
{
    for (int64_t i = 0; i < a->part && a->n > 0; i++, a->n--) {
        for (int k = 0; k < 2; k++) {
            _mm_prefetch((const char *)a->at[k], _MM_HINT_T0);
            a->at[k] += 64;
        }
    }
}

// Registers: 0..3 sums, 4 and 5 activations of 16 tokens each, 6 and 7 weights of 16 rows each.
typedef struct block {
    const uint8_t *a;   // tiles of 16 tokens
    size_t a_stride;    // bytes to the tiles of the next 16 tokens
    const uint8_t *b;   // steps of weights
    float *sums;        // sums of the first token; other tokens follow at sum_stride floats
    size_t sum_stride;
    line_prefetch *prefetch;
    int64_t n_steps;
    int n_a, n_b;      // tiles of tokens, of rows
    bool multiplies;   // multiplies while weights are unpacked
} block;

// Unpacks columns [first, first + n) of 16 rows of p from row i on, one tile for each step. With parts 3 a step is
// twice as long, and the rests follow its two tiles. Calls `after_step` after each step.
typedef void (*fill_fn)(const frit_product *p, int64_t i, int64_t first, int64_t n, uint8_t *steps, const block *m);

// All eight registers hold 16 rows of 64 bytes.
static inline void open_tiles(void)
{
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
    _tile_loadconfig(&config);
}

static inline void close_tiles(void)   // a context switch need not save tiles
{
    _tile_release();
}

static inline void fence(void)   // the compiler does not know the memory that tiles load
{
    atomic_signal_fence(memory_order_seq_cst);
}

FRIT_INLINE void load_weights(const uint8_t *b, int n_b)
{
    _tile_loadd(6, b, 64);
    if (n_b > 1) _tile_loadd(7, b + FRIT_TILE_BYTES, 64);
}

FRIT_INLINE void load_activations(const uint8_t *a, size_t a_stride, int n_a)
{
    _tile_loadd(4, a, 64);
    if (n_a > 1) _tile_loadd(5, a + a_stride, 64);
}

FRIT_INLINE void add_products(int n_a, int n_b)
{
    _tile_dpbf16ps(0, 4, 6);
    if (n_b > 1) _tile_dpbf16ps(1, 4, 7);
    if (n_a > 1) _tile_dpbf16ps(2, 5, 6);
    if (n_a > 1 && n_b > 1) _tile_dpbf16ps(3, 5, 7);
}

// n_a, n_b and parts are constants where this is inlined.
FRIT_INLINE void multiply_step(const block *m, int64_t step, int n_a, int n_b, int parts)
{
    const uint8_t *a = m->a + step * (parts > 1 ? 2 * FRIT_TILE_BYTES : FRIT_TILE_BYTES);
    const uint8_t *b = m->b + step * (parts > 2 ? 2 * STEP_BYTES : STEP_BYTES);
    load_activations(a, m->a_stride, n_a);
    if (parts > 2) {
        load_weights(b + STEP_BYTES, n_b);
        add_products(n_a, n_b);
    }
    load_weights(b, n_b);
    add_products(n_a, n_b);
    if (parts > 1) {
        load_activations(a + FRIT_TILE_BYTES, m->a_stride, n_a);
        add_products(n_a, n_b);
    }
}

// Multiplies a step that vectors have just written. The common case of 2 x 2 tiles has no branches.
FRIT_INLINE void multiply_written(const block *m, int64_t step, int parts)
{
    fence();
    if (m->n_a > 1 && m->n_b > 1)
        multiply_step(m, step, 2, 2, parts);
    else
        multiply_step(m, step, m->n_a, m->n_b, parts);
    fence();
}

// Called after `step` was unpacked: prefetches, and multiplies the previous step. parts is a constant where this is
// inlined.
FRIT_INLINE void after_step(const block *m, int64_t step, int parts)
{
    prefetch_lines(m->prefetch);
    if (m->multiplies && step > 0) multiply_written(m, step - 1, parts);
}

static inline void begin_sums(const block *m, bool fresh)
{
    const size_t bytes = m->sum_stride * sizeof(float);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    if (fresh) return;
    fence();
    _tile_loadd(0, m->sums, bytes);
    if (m->n_b > 1) _tile_loadd(1, m->sums + 16, bytes);
    if (m->n_a > 1) _tile_loadd(2, m->sums + 16 * m->sum_stride, bytes);
    if (m->n_a > 1 && m->n_b > 1) _tile_loadd(3, m->sums + 16 * m->sum_stride + 16, bytes);
}

static inline void store_sums(const block *m)
{
    const size_t bytes = m->sum_stride * sizeof(float);
    _tile_stored(0, m->sums, bytes);
    if (m->n_b > 1) _tile_stored(1, m->sums + 16, bytes);
    if (m->n_a > 1) _tile_stored(2, m->sums + 16 * m->sum_stride, bytes);
    if (m->n_a > 1 && m->n_b > 1) _tile_stored(3, m->sums + 16 * m->sum_stride + 16, bytes);
    fence();
}

FRIT_INLINE void multiply(const block *m, bool fresh, int n_a, int n_b, int parts)
{
    begin_sums(m, fresh);
    for (int64_t k = 0; k < m->n_steps; k++) {
        prefetch_lines(m->prefetch);
        multiply_step(m, k, n_a, n_b, parts);
    }
    store_sums(m);
}

// Copies up to 32 elements of each row.
static inline void copy_rows(float *to, size_t to_stride, const float *from, size_t from_stride, int64_t n,
                             int64_t n_rows)
{
    const __mmask16 first = (__mmask16)(n < 16 ? (1u << n) - 1 : 0xffff);
    const __mmask16 second = (__mmask16)(n > 16 ? (1u << (n - 16)) - 1 : 0);
    for (int64_t i = 0; i < n_rows; i++, to += to_stride, from += from_stride) {
        _mm512_mask_storeu_ps(to, first, _mm512_maskz_loadu_ps(first, from));
        if (second) _mm512_mask_storeu_ps(to + 16, second, _mm512_maskz_loadu_ps(second, from + 16));
    }
}

// A part of a product: rows [o, o + n_w), at most 32, and columns [first, first + n).
typedef struct stretch {
    int64_t o, n_w, first, n;
    uint8_t *weights;   // as tiles
    float *edge;        // EDGE_BYTES
    bool stays;         // sums stay in tiles until all columns are done
    line_prefetch prefetch;
} stretch;

// Multiplies a block of tokens while unpacking the weights.
FRIT_INLINE void unpack_and_multiply(const frit_product *p, fill_fn fill, int parts, const stretch *s, block *m)
{
    const bool begins = s->first == 0, ends = s->first + s->n == p->n;
    if (!s->stays || begins) begin_sums(m, begins);
    for (int i = 0; i < m->n_b; i++) {
        m->multiplies = i == m->n_b - 1;
        fill(p, s->o + 16 * i, s->first, s->n, s->weights + i * FRIT_TILE_BYTES, m);
    }
    multiply_written(m, m->n_steps - 1, parts);
    if (!s->stays || ends) store_sums(m);
}

// fill: NULL if the weights are already unpacked.
FRIT_INLINE void multiply_block(const frit_product *p, fill_fn fill, int parts, const stretch *s, block *m)
{
    const bool begins = s->first == 0;
    if (fill)
        unpack_and_multiply(p, fill, parts, s, m);
    else if (m->n_a > 1)
        m->n_b > 1 ? multiply(m, begins, 2, 2, parts) : multiply(m, begins, 2, 1, parts);
    else
        m->n_b > 1 ? multiply(m, begins, 1, 2, parts) : multiply(m, begins, 1, 1, parts);
}

// Multiplies a block at the edge of the result, which has no whole tiles: copies the sums to the result, and between
// stretches from it.
FRIT_INLINE void multiply_edge(const frit_product *p, fill_fn fill, int parts, const stretch *s, block *m,
                               int64_t n_tokens)
{
    float *y = m->sums;
    m->sums = s->edge;
    m->sum_stride = BLOCK;
    if (s->first > 0 && !s->stays) copy_rows(s->edge, BLOCK, y, p->y_stride, s->n_w, n_tokens);
    multiply_block(p, fill, parts, s, m);
    if (!s->stays || s->first + s->n == p->n) copy_rows(y, p->y_stride, s->edge, BLOCK, s->n_w, n_tokens);
}

// Multiplies a stretch by tokens [t, end). The first block of tokens unpacks the weights.
FRIT_INLINE void add_stretch(const frit_product *p, fill_fn fill, int parts, stretch *s, int64_t t, int64_t end)
{
    const int64_t a_bytes = parts > 1 ? 2 * FRIT_TILE_BYTES : FRIT_TILE_BYTES;
    const int64_t n_steps = (s->n + FRIT_TILE_COLUMNS - 1) / FRIT_TILE_COLUMNS;
    for (; t < end; t += BLOCK) {
        const int64_t n_tokens = frit_min_i64(end - t, BLOCK);
        block m = {.a = p->x + (size_t)t * p->x_stride + s->first / FRIT_TILE_COLUMNS * a_bytes,
                   .a_stride = FRIT_TILE_ROWS * p->x_stride,
                   .b = s->weights,
                   .sums = p->y + (size_t)t * p->y_stride + s->o,
                   .sum_stride = p->y_stride,
                   .prefetch = &s->prefetch,
                   .n_steps = n_steps,
                   .n_a = n_tokens > 16 ? 2 : 1,
                   .n_b = s->n_w > 16 ? 2 : 1};
        const bool whole_tiles = n_tokens % 16 == 0 && s->n_w % 16 == 0;
        if (t == 0)
            whole_tiles ? multiply_block(p, fill, parts, s, &m) : multiply_edge(p, fill, parts, s, &m, n_tokens);
        else
            whole_tiles ? multiply_block(p, NULL, parts, s, &m) : multiply_edge(p, NULL, parts, s, &m, n_tokens);
    }
}

// The panels to prefetch that are unpacked after the weights of s; w_stride is the bytes of 16 rows. Rows of floats
// need no prefetch, because they are contiguous.
static inline line_prefetch lines_after(const frit_product *p, const stretch *s, int64_t begin, int64_t end, int64_t n)
{
    const int64_t next_row = s->o + BLOCK < end ? s->o + BLOCK : begin;
    int64_t row = next_row, first = next_row > s->o ? s->first : s->first + s->n;
    if (first >= p->n) {   // the rows of the next pass
        row = end;
        first = 0;
    }
    if (row >= p->n_w + p->n_ahead) return (line_prefetch){{NULL, NULL}, 0, 0};
    const uint8_t *at =
        p->w + (size_t)(row / FRIT_PANEL_ROWS) * p->w_stride + (size_t)first * p->w_stride / (size_t)p->n;
    const int64_t n_lines = (int64_t)p->w_stride * frit_min_i64(n, p->n - first) / p->n / 64 + 1;
    const int64_t n_steps = s->n / FRIT_TILE_COLUMNS * (2 + (frit_min_i64(p->n_x, GROUP_TOKENS) - 1) / BLOCK);
    return (line_prefetch){{at, at + p->w_stride}, n_lines, n_lines / n_steps + 1};
}

// Multiplies rows [o, end) by all tokens, over columns [first, first + n).
FRIT_INLINE void add_group(const frit_product *p, fill_fn fill, int parts, bool has_panels, int64_t o, int64_t end,
                           int64_t first, int64_t n)
{
    uint8_t *edge = p->scratch + GROUP_ROWS / BLOCK * WEIGHT_BYTES;
    for (int64_t t = 0; t < p->n_x; t += GROUP_TOKENS) {
        const int64_t t_end = frit_min_i64(t + GROUP_TOKENS, p->n_x);
        for (int64_t i = o; i < end; i += BLOCK) {
            stretch s = {
                .o = i, .n_w = frit_min_i64(end - i, BLOCK), .first = first, .n = frit_min_i64(n, p->n - first)};
            s.weights = p->scratch + (i - o) / BLOCK * WEIGHT_BYTES;
            s.edge = (float *)(void *)edge;
            s.stays = p->n_x <= BLOCK;
            if (has_panels && t == 0) s.prefetch = lines_after(p, &s, o, end, n);
            add_stretch(p, fill, parts, &s, t, t_end);
        }
    }
}

FRIT_INLINE void product_in_tiles(const frit_product *p, fill_fn fill, int parts, bool has_panels)
{
    const bool is_block = p->n_x <= BLOCK;   // the sums stay in tiles for all columns of 32 rows
    const int64_t n = is_block ? SHORT_STRETCH : parts > 1 ? STRETCH / 2 : STRETCH;
    const int64_t n_rows = is_block ? BLOCK : GROUP_ROWS;
    open_tiles();
    for (int64_t o = 0; o < p->n_w; o += n_rows) {
        const int64_t end = frit_min_i64(o + n_rows, p->n_w);
        for (int64_t first = 0; first < p->n; first += n) add_group(p, fill, parts, has_panels, o, end, first, n);
    }
    close_tiles();
}
