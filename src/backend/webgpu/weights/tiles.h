// SPDX-License-Identifier: MIT
// backend/webgpu/weights/tiles.h: weights in the order in which kernels/tiles.wgsl reads them, losslessly.
//
// A matrix becomes tiles of 16 rows and 256 columns, [row tile][block of 256 columns], each contiguous and in units of
// 16 bytes; the last tiles are padded with zeros. Codes and scales of the types, and the sizes of tiles, are those of
// the tiles of backend/cuda (tiles.def, codes.h); only the order of codes is another, because kernels in WGSL have no
// fragments. A unit is 32 columns of a row, unit u = row * 8 + group, column c of 32. Planes are:
//
//     32 bits   columns 4q to 4q + 3 of a unit in the 16 bytes (q * 128 + u)
//     16 bits   columns 8q to 8q + 7 in the 16 bytes (q * 128 + u)
//     8 bits    columns 16q to 16q + 15 in the 16 bytes (q * 128 + u)
//     4 bits    column c in byte c % 16 of the 16 bytes u, the low bits first
//     2 bits    column c in byte c % 8 of the 8 bytes u, bits c / 8 * 2
//     1 bit     column c in byte c % 4 of the 4 bytes u, bit c / 4
#pragma once
#include "backend/cuda/weights/repack.h"

typedef struct frit_web_tile_source {
    const uint8_t *blocks, *second;   // rows of blocks as in the file; second: rows alternate, gates and values
    int64_t n_rows, n_columns;        // of each
} frit_web_tile_source;

int64_t frit_web_tile_rows(const frit_web_tile_source *source);   // row tiles
// Packs row tiles [begin, end) into out. Rows r and r + 8 of a tile of a pair are row r of `blocks` and of `second`.
void frit_web_tile_pack(const frit_tile_format *format, const frit_web_tile_source *source, int64_t begin, int64_t end,
                        uint8_t *out);
