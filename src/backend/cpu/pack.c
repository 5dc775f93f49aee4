// SPDX-License-Identifier: MIT
// Interleaving the blocks of sixteen rows. The kernels that read them are in x86/packed_*.c.
#include "backend/cpu/pack.h"

#include <string.h>

// clang-format off
static const frit_interleave rows[FRIT_DTYPE_COUNT] = {
    //                     words at, n   rest at, bytes
    [FRIT_DTYPE_Q4_0]   = {2,  4,  0,   2},
    [FRIT_DTYPE_Q4_1]   = {0,  5,  0,   0},
    [FRIT_DTYPE_Q5_0]   = {2,  5,  0,   2},
    [FRIT_DTYPE_Q5_1]   = {0,  6,  0,   0},
    [FRIT_DTYPE_Q8_0]   = {2,  8,  0,   2},
    [FRIT_DTYPE_Q2_K]   = {0, 21,  0,   0},
    [FRIT_DTYPE_Q3_K]   = {0, 27, 108,  2},
    [FRIT_DTYPE_Q4_K]   = {0, 36,  0,   0},
    [FRIT_DTYPE_Q5_K]   = {0, 44,  0,   0},
    [FRIT_DTYPE_Q6_K]   = {0, 52, 208,  2},
    [FRIT_DTYPE_IQ4_NL] = {2,  4,  0,   2},
    [FRIT_DTYPE_IQ4_XS] = {0, 34,  0,   0},
    [FRIT_DTYPE_MXFP4]  = {1,  4,  0,   1},
};
// clang-format on

const frit_interleave *frit_interleave_get(frit_dtype dtype)
{
    return rows[dtype].n_words ? &rows[dtype] : NULL;
}

bool frit_pack_fits(frit_dtype dtype, int64_t n)
{
    return rows[dtype].n_words && n % frit_dtype_get(dtype)->block_elems == 0;
}

void frit_pack_panel(frit_dtype dtype, const uint8_t *first, int n_rows, int64_t n, uint8_t *panel)
{
    const frit_dtype_info *type = frit_dtype_get(dtype);
    const size_t block_bytes = (size_t)type->block_bytes, row_bytes = (size_t)frit_dtype_row_bytes(dtype, n);
    const frit_interleave split = rows[dtype];
    for (size_t block = 0; block < row_bytes; block += block_bytes) {
        uint8_t *words = panel + block * FRIT_PANEL_ROWS, *rest = words + (size_t)split.n_words * 4 * FRIT_PANEL_ROWS;
        for (int r = 0; r < n_rows; r++) {
            const uint8_t *from = first + (size_t)r * row_bytes + block;
            for (int w = 0; w < split.n_words; w++)
                memcpy(words + 4 * (w * FRIT_PANEL_ROWS + r), from + split.words_at + 4 * w, 4);
            for (int i = 0; i < split.rest_bytes; i++) rest[r * split.rest_bytes + i] = from[split.rest_at + i];
        }
        for (int r = n_rows; r < FRIT_PANEL_ROWS; r++) {
            for (int w = 0; w < split.n_words; w++) memset(words + 4 * (w * FRIT_PANEL_ROWS + r), 0, 4);
            memset(rest + r * split.rest_bytes, 0, split.rest_bytes);
        }
    }
}
