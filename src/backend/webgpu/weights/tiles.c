// SPDX-License-Identifier: MIT
// Packing tiles.
#include "backend/webgpu/weights/tiles.h"

#include <string.h>

enum { ROWS = FRIT_TILE_ROWS, COLUMNS = FRIT_TILE_COLUMNS, UNIT = 32, PLANE_BYTES = ROWS * COLUMNS / 8 };

int64_t frit_web_tile_rows(const frit_web_tile_source *source)
{
    return ((source->second ? 2 : 1) * source->n_rows + ROWS - 1) / ROWS;
}

// Stores bits [shift, shift + bits) of the 32 codes of a unit.
static void pack_unit(const unsigned *codes, int bits, int shift, int unit, uint8_t *plane)
{
    if (bits >= 8) {
        const int n_bytes = bits / 8, each = 16 / n_bytes;
        for (int c = 0; c < UNIT; c++) {
            uint8_t *to = plane + (c / each * 128 + unit) * 16 + c % each * n_bytes;
            for (int i = 0; i < n_bytes; i++) to[i] = (uint8_t)(codes[c] >> i * 8);
        }
        return;
    }
    const int n_bytes = UNIT * bits / 8;
    uint8_t *to = plane + unit * n_bytes;
    for (int i = 0; i < n_bytes; i++) {
        unsigned byte = 0;
        for (int f = 0; f < 8 / bits; f++) byte |= (codes[f * n_bytes + i] >> shift & ((1u << bits) - 1)) << f * bits;
        to[i] = (uint8_t)byte;
    }
}

// n: columns of the block, without padding. blocks NULL: a row of zeros.
static void pack_row(const frit_tile_format *f, const uint8_t *blocks, int n, int row, uint8_t *tile)
{
    uint8_t *heads = tile + PLANE_BYTES * (f->low_bits + f->high_bits), *tails = heads + ROWS * f->head_bytes;
    for (int g = 0; g < COLUMNS / UNIT; g++) {
        unsigned codes[UNIT] = {0};
        for (int c = 0; blocks && c < UNIT && g * UNIT + c < n; c++) codes[c] = f->code(blocks, g * UNIT + c, f->grid);
        pack_unit(codes, f->low_bits, 0, row * 8 + g, tile);
        if (f->high_bits) pack_unit(codes, f->high_bits, f->low_bits, row * 8 + g, tile + PLANE_BYTES * f->low_bits);
    }
    for (int i = 0; i < f->head_bytes; i++)
        heads[row * f->head_bytes + i] = (uint8_t)(blocks ? f->head(blocks, i, n) : 0);
    for (int i = 0; i < f->tail_bytes; i++)
        tails[row * f->tail_bytes + i] = (uint8_t)(blocks ? f->tail(blocks, i, n) : 0);
}

// The blocks of row r of a row tile; NULL: the matrix has no such row.
static const uint8_t *row_of(const frit_web_tile_source *source, int64_t tile, int r, uint64_t row_bytes)
{
    const int64_t row = source->second ? tile * (ROWS / 2) + r % 8 : tile * ROWS + r;
    const uint8_t *blocks = source->second && r >= 8 ? source->second : source->blocks;
    return row < source->n_rows ? blocks + (uint64_t)row * row_bytes : NULL;
}

void frit_web_tile_pack(const frit_tile_format *format, const frit_web_tile_source *source, int64_t begin, int64_t end,
                        uint8_t *out)
{
    const frit_dtype_info *type = frit_dtype_get(format->dtype);
    const uint64_t row_bytes = frit_dtype_row_bytes(format->dtype, source->n_columns);
    for (int64_t tile = begin; tile < end; tile++)
        for (int64_t column = 0; column < source->n_columns; column += COLUMNS, out += format->tile_bytes) {
            const int64_t n = source->n_columns - column;
            for (int r = 0; r < ROWS; r++) {
                const uint8_t *row = row_of(source, tile, r, row_bytes);
                if (row) row += column / type->block_elems * type->block_bytes;
                pack_row(format, row, (int)(n < COLUMNS ? n : COLUMNS), r, out);
            }
        }
}
