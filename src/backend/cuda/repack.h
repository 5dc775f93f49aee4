// SPDX-License-Identifier: MIT
// backend/cuda/repack.h: weights in the order in which the GPU's kernels read them, losslessly.
//
// A matrix becomes tiles of 16 rows and 256 columns, [row tile][block of 256 columns], each contiguous and in units
// of 16 bytes; rows and columns that are missing in the last ones are zeros. Within a tile, a product of 16 rows and
// 16 columns takes columns
//
//     g * 32 + s * 16 + t * 4 + i        group g 0..7, step s 0..1, i 0..3
//
// of rows r and r + 8 from lane r * 4 + t of a warp. So a lane's codes of one row and step are four, and lie in one
// word, i in byte i. h is 0 for row r, 1 for row r + 8:
//
//     4 bits    16 bytes at ((g / 4 * 2 + h) * 32 + lane) * 16, word g / 2 % 2 * 2 + s; groups 2j and 2j + 1 in the low
//               and the high bits of a byte
//     8 bits    16 bytes at ((g / 2 * 2 + h) * 32 + lane) * 16, word g % 2 * 2 + s
//     16 bits   16 bytes at ((g * 2 + s) * 32 + lane) * 16, words i / 2 * 2 + h
//     2 bits    (the high bits of q6_k) 16 bytes at (h * 32 + lane) * 16, word g / 2, bits g % 2 * 4 + s * 2 of a byte
//
//     q4_k      4 bits | 16 rows: d, dmin, scales[12] as in the file
//     q4_0      4 bits | 16 rows: 8 d
//     q8_0      8 bits | 16 rows: 8 d
//     q6_k      4 bits | 2 bits | 16 rows: scales[16] | 16 d
//     f16, bf16 16 bits
//
// kernels/tile.cuh multiplies them.
#pragma once
#include "quant/dtype.h"

enum { FRIT_TILE_ROWS = 16, FRIT_TILE_COLUMNS = 256 };

typedef struct frit_tile_format {
    frit_dtype dtype;
    int tile_bytes;
    // rows[i]: the blocks of row i, n_blocks of them, at most FRIT_TILE_COLUMNS numbers; NULL: a row of zeros.
    // `tile` is zero before.
    void (*pack)(const uint8_t *const rows[FRIT_TILE_ROWS], int n_blocks, uint8_t *tile);
    // The numbers of a tile, [row][column]: the reference for kernels.
    void (*decode)(const uint8_t *tile, float *values);
} frit_tile_format;

// NULL: this type has no tiles yet.
const frit_tile_format *frit_tile_format_of(frit_dtype dtype);

// Which rows of a matrix are rows r and r + 8 of a tile: kernels have both in one lane.
typedef enum frit_row_order {
    FRIT_ROWS_NATURAL,
    FRIT_ROWS_ADJACENT,   // 2p and 2p + 1 of a head: pairs that a rotation of adjacent dimensions turns
    FRIT_ROWS_HALVES,     // p and p + head_size / 2 of a head: pairs of a rotation of halves
    FRIT_ROWS_GATED       // row p of the matrix, a gate, and row p of `second`, its value
} frit_row_order;

typedef struct frit_tile_source {
    const uint8_t *blocks, *second;   // rows of blocks as in the file; second: FRIT_ROWS_GATED only
    int64_t n_rows, n_columns;        // of each
    frit_row_order order;
    int head_size;   // FRIT_ROWS_ADJACENT, FRIT_ROWS_HALVES; a multiple of 16 that divides n_rows
} frit_tile_source;

int64_t frit_tile_count(const frit_tile_source *source);                                    // row tiles
uint64_t frit_tile_bytes(const frit_tile_format *format, const frit_tile_source *source);   // of one row tile
// Packs row tiles [begin, end) into out.
void frit_tile_pack(const frit_tile_format *format, const frit_tile_source *source, int64_t begin, int64_t end,
                    uint8_t *out);
