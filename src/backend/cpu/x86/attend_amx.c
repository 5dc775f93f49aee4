// SPDX-License-Identifier: MIT
// Attention of many queries for AMX: tiles of 16 rows of 16 words; 2 x 2 of them are summed at once.
#include "backend/cpu/x86/amx.h"

#include <immintrin.h>
#include <stdatomic.h>

enum { ROWS = 16 };

// Eight tiles of 16 rows of 64 bytes: sums 0...3, first factors 4 and 5, second ones 6 and 7.
static void open_products(void)
{
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS}};
    _tile_loadconfig(&config);
}

static void close_products(void)   // so that switching threads saves no tiles
{
    _tile_release();
}

// One or two blocks of rows with one or two panels.
FRIT_INLINE void multiply_blocks(float *y, int64_t y_panel, const uint32_t *a, int64_t a_stride, int64_t a_next,
                                 const uint32_t *b, int64_t b_panel, int64_t n_words, int n_blocks, int n_panels,
                                 bool add)
{
    enum { Y_STRIDE = 16 * sizeof(float), B_STRIDE = 16 * sizeof(uint32_t) };
    float *below = y + a_next * 16;
    if (add) {
        _tile_loadd(0, y, Y_STRIDE);
        if (n_panels > 1) _tile_loadd(1, y + y_panel, Y_STRIDE);
        if (n_blocks > 1) _tile_loadd(2, below, Y_STRIDE);
        if (n_blocks > 1 && n_panels > 1) _tile_loadd(3, below + y_panel, Y_STRIDE);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    const size_t a_bytes = (size_t)a_stride * sizeof(uint32_t);
    for (int64_t w = 0; w < n_words; w += 16) {
        _tile_loadd(4, a + w, a_bytes);
        if (n_blocks > 1) _tile_loadd(5, a + a_next * a_stride + w, a_bytes);
        _tile_loadd(6, b + w * 16, B_STRIDE);
        if (n_panels > 1) _tile_loadd(7, b + b_panel + w * 16, B_STRIDE);
        _tile_dpbf16ps(0, 4, 6);
        if (n_panels > 1) _tile_dpbf16ps(1, 4, 7);
        if (n_blocks > 1) _tile_dpbf16ps(2, 5, 6);
        if (n_blocks > 1 && n_panels > 1) _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, y, Y_STRIDE);
    if (n_panels > 1) _tile_stored(1, y + y_panel, Y_STRIDE);
    if (n_blocks > 1) _tile_stored(2, below, Y_STRIDE);
    if (n_blocks > 1 && n_panels > 1) _tile_stored(3, below + y_panel, Y_STRIDE);
}

FRIT_INLINE void multiply(float *y, int64_t y_panel, const uint32_t *a, int64_t a_stride, const uint32_t *b,
                          int64_t b_panel, int64_t n_rows, int64_t n_words, int n_panels, bool add)
{
    int64_t row = 0;
    atomic_signal_fence(memory_order_seq_cst);   // compilers do not see what tiles load and store
    for (; row + 2 * ROWS <= n_rows; row += 2 * ROWS)
        multiply_blocks(y + row * 16, y_panel, a + row * a_stride, a_stride, ROWS, b, b_panel, n_words, 2, n_panels,
                        add);
    if (row < n_rows)
        multiply_blocks(y + row * 16, y_panel, a + row * a_stride, a_stride, ROWS, b, b_panel, n_words, 1, n_panels,
                        add);
    atomic_signal_fence(memory_order_seq_cst);
}

#include "backend/cpu/x86/attend_half_tmpl.h"

void frit_install_amx_attend(frit_kernels *k)
{
    k->attend_tile_half = attend_tile;
}
