// SPDX-License-Identifier: MIT
// backend/cpu/x86/tiles_amx.h: products in AMX tiles, for nodes of many rows.
//
// The tile unit multiplies 16 x 32 by 32 x 16 numbers in bf16 and adds to f32. Weights are turned into such numbers 32
// rows at a time, once for all tokens of the call; the sums of a stretch of columns stay in tiles, and wait in scratch
// between stretches:
//
//     for each stretch of 1024 columns              activations of 512 tokens: 1 MiB
//         for each 32 rows                          weights as tiles, 64 KiB
//             for each 32 tokens                    2 x 2 tiles of sums
//                 for each step of 32 columns       2 tiles of weights, 2 of activations, 4 products
//
// A tile of weights holds words of 16 rows: two columns of each row to a word.
//
// Numbers that 8 bits do not hold may come in two parts, a number and what it lacks:
//
//     parts 1     weights * activations
//     parts 2     weights * (activations + rest)
//     parts 3     the same + rest of the weights * activations; rest times rest is too small to matter
#pragma once
#include "backend/cpu/x86/amx.h"

#include <immintrin.h>
#include <stdatomic.h>

enum {
    STRETCH = 1024,                                            // columns, of parts 1; else half as many
    STEP_BYTES = 2 * FRIT_TILE_BYTES,                          // of weights of one part
    WEIGHT_BYTES = STRETCH / FRIT_TILE_COLUMNS * STEP_BYTES,   // of 32 rows
    SUM_BYTES = 4 * FRIT_TILE_BYTES,                           // of 32 rows and tokens
    MAX_ROWS = 128,
    MAX_TOKENS = 512,
};

_Static_assert((int)WEIGHT_BYTES + MAX_ROWS / 32 * (MAX_TOKENS / 32) * SUM_BYTES <= (int)FRIT_PRODUCT_SCRATCH,
               "scratch");

// Columns [first, first + n) of the 16 rows of p that begin at row i, as one tile in each step; with parts 3, steps are
// twice as long, and the rests follow the tiles of both.
typedef void (*fill_fn)(const frit_product *p, int64_t i, int64_t first, int64_t n, uint8_t *steps);

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

static inline void close_tiles(void)   // so that switching threads saves no tiles
{
    _tile_release();
}

// Registers: 0..3 sums, 4 and 5 activations of 16 tokens each, 6 and 7 weights of 16 rows each.
typedef struct block {
    const uint8_t *a;   // tiles of 16 tokens
    size_t a_stride;    // bytes to those of the next 16
    const uint8_t *b;   // steps of weights
    int64_t n_steps;
    uint8_t *sums;
    bool fresh;   // sums begin at zero
} block;

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
FRIT_INLINE void multiply(block m, int n_a, int n_b, int parts)
{
    const int64_t a_bytes = parts > 1 ? 2 * FRIT_TILE_BYTES : FRIT_TILE_BYTES;
    const int64_t b_bytes = parts > 2 ? 2 * STEP_BYTES : STEP_BYTES;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    if (!m.fresh) {
        _tile_loadd(0, m.sums, 64);
        if (n_b > 1) _tile_loadd(1, m.sums + FRIT_TILE_BYTES, 64);
        if (n_a > 1) _tile_loadd(2, m.sums + 2 * FRIT_TILE_BYTES, 64);
        if (n_a > 1 && n_b > 1) _tile_loadd(3, m.sums + 3 * FRIT_TILE_BYTES, 64);
    }
    for (int64_t k = 0; k < m.n_steps; k++) {
        const uint8_t *a = m.a + k * a_bytes, *b = m.b + k * b_bytes;
        load_activations(a, m.a_stride, n_a);
        if (parts > 2) {
            load_weights(b + STEP_BYTES, n_b);
            add_products(n_a, n_b);
        }
        load_weights(b, n_b);
        add_products(n_a, n_b);
        if (parts > 1) {
            load_activations(a + FRIT_TILE_BYTES, m.a_stride, n_a);
            add_products(n_a, n_b);
        }
    }
    _tile_stored(0, m.sums, 64);
    if (n_b > 1) _tile_stored(1, m.sums + FRIT_TILE_BYTES, 64);
    if (n_a > 1) _tile_stored(2, m.sums + 2 * FRIT_TILE_BYTES, 64);
    if (n_a > 1 && n_b > 1) _tile_stored(3, m.sums + 3 * FRIT_TILE_BYTES, 64);
}

// Sums of up to 32 rows and tokens to their places.
static inline void put(const uint8_t *sums, float *y, size_t y_stride, int64_t n_rows, int64_t n_tokens)
{
    const __mmask16 first = (__mmask16)(n_rows < 16 ? (1u << n_rows) - 1 : 0xffff);
    const __mmask16 second = (__mmask16)(n_rows > 16 ? (1u << (n_rows - 16)) - 1 : 0);
    for (int64_t j = 0; j < n_tokens; j++, y += y_stride) {
        const uint8_t *row = sums + j / FRIT_TILE_ROWS * (2 * FRIT_TILE_BYTES) + j % FRIT_TILE_ROWS * 64;
        _mm512_mask_storeu_ps(y, first, _mm512_loadu_ps(row));
        if (second) _mm512_mask_storeu_ps(y + 16, second, _mm512_loadu_ps(row + FRIT_TILE_BYTES));
    }
}

// The rows [o, o + n_w), 32 or less, by 512 tokens or less, one stretch of columns.
FRIT_INLINE void add_stretch(const frit_product *p, fill_fn fill, int parts, int64_t o, int64_t n_w, int64_t first,
                             uint8_t *sums)
{
    const int64_t stretch = parts > 1 ? STRETCH / 2 : STRETCH, left = p->n - first, n = left < stretch ? left : stretch;
    const int64_t a_bytes = parts > 1 ? 2 * FRIT_TILE_BYTES : FRIT_TILE_BYTES;
    const int n_b = n_w > 16 ? 2 : 1;
    for (int i = 0; i < n_b; i++) fill(p, o + 16 * i, first, n, p->scratch + i * FRIT_TILE_BYTES);
    atomic_signal_fence(memory_order_seq_cst);   // compilers do not see what tiles load

    block m = {.a = p->x + first / FRIT_TILE_COLUMNS * a_bytes,
               .a_stride = FRIT_TILE_ROWS * p->x_stride,
               .b = p->scratch,
               .n_steps = (n + FRIT_TILE_COLUMNS - 1) / FRIT_TILE_COLUMNS,
               .sums = sums,
               .fresh = first == 0};
    for (int64_t t = 0; t < p->n_x; t += 32, m.a += 2 * m.a_stride, m.sums += SUM_BYTES) {
        const int64_t n_tokens = p->n_x - t < 32 ? p->n_x - t : 32;
        if (n_tokens > 16)
            n_b > 1 ? multiply(m, 2, 2, parts) : multiply(m, 2, 1, parts);
        else
            n_b > 1 ? multiply(m, 1, 2, parts) : multiply(m, 1, 1, parts);
        if (first + n == p->n) put(m.sums, p->y + (size_t)t * p->y_stride + o, p->y_stride, n_w, n_tokens);
    }
}

FRIT_INLINE void product_in_tiles(const frit_product *whole, fill_fn fill, int parts)
{
    const int64_t stretch = parts > 1 ? STRETCH / 2 : STRETCH;
    open_tiles();
    for (int64_t t = 0; t < whole->n_x; t += MAX_TOKENS) {
        frit_product p = *whole;
        p.x += (size_t)t * p.x_stride;
        p.y += (size_t)t * p.y_stride;
        p.n_x = p.n_x - t < MAX_TOKENS ? p.n_x - t : MAX_TOKENS;
        for (int64_t o = 0; o < p.n_w; o += MAX_ROWS) {
            const int64_t end = p.n_w - o < MAX_ROWS ? p.n_w : o + MAX_ROWS;
            for (int64_t first = 0; first < p.n; first += stretch) {
                for (int64_t i = o; i < end; i += 32)
                    add_stretch(&p, fill, parts, i, end - i < 32 ? end - i : 32, first,
                                p.scratch + WEIGHT_BYTES + (i - o) / 32 * (MAX_TOKENS / 32) * SUM_BYTES);
            }
        }
    }
    close_tiles();
}
