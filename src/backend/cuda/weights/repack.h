// SPDX-License-Identifier: MIT
// backend/cuda/weights/repack.h: weights in the order in which the GPU's kernels read them, losslessly.
//
// A matrix becomes tiles of 16 rows and 256 columns, [row tile][block of 256 columns], each contiguous and in units
// of 16 bytes; rows and columns that are missing in the last ones are zeros. Within a tile, a product of 16 rows and
// 16 columns takes columns
//
//     g * 32 + s * 16 + t * 4 + i        group g 0..7, step s 0..1, i 0..3
//
// of rows r and r + 8 from lane r * 4 + t of a warp. So a lane's codes of one row and step are four, and lie in one
// word, i in byte i. A tile has planes of codes, then scales; kernels/include/tiles.def says which. h is 0 for row r, 1
// for row r + 8:
//
//     32 bits   16 bytes at (((g * 2 + s) * 2 + h) * 32 + lane) * 16, word i
//     16 bits   16 bytes at ((g * 2 + s) * 32 + lane) * 16, words i / 2 * 2 + h
//     8 bits    16 bytes at ((g / 2 * 2 + h) * 32 + lane) * 16, word g % 2 * 2 + s
//     4 bits    16 bytes at ((g / 4 * 2 + h) * 32 + lane) * 16, word g / 2 % 2 * 2 + s; groups 2j and 2j + 1 in the low
//               and the high bits of a byte
//     2 bits    16 bytes at (h * 32 + lane) * 16, word g / 2, bits g % 2 * 4 + s * 2 of a byte
//     1 bit     16 bytes at lane * 16, word h * 2 + g / 4, bit g % 4 * 2 + s of a byte
//
// Types whose codes index a grid, and those of two or three levels, become bytes: their tiles are larger than their
// blocks. kernels/include/tile.cuh and tile_any.cuh multiply tiles, kernels/repack.cu makes them on the GPU.
#pragma once
#include "quant/dtype.h"

enum { FRIT_TILE_ROWS = 16, FRIT_TILE_COLUMNS = 256 };

typedef struct frit_tile_format {
    frit_dtype dtype;
    int tile_bytes;
    int low_bits, high_bits;      // of a code: of the first plane, of the second one
    int head_bytes, tail_bytes;   // of a row
    // Of the blocks of a row, up to 256 numbers: the code of number k; byte i of the head and of the tail, if n numbers
    // are there.
    unsigned (*code)(const uint8_t *blocks, int k, const uint8_t *grid);
    unsigned (*head)(const uint8_t *blocks, int i, int n), (*tail)(const uint8_t *blocks, int i, int n);
    // What a code is worth: number k of a row.
    float (*value)(const uint8_t *head, const uint8_t *tail, int k, unsigned code);
    const uint8_t *grid;   // what codes index; NULL: nothing
    size_t grid_bytes;
} frit_tile_format;

// NULL: this type has no tiles; all weight types have.
const frit_tile_format *frit_tile_format_of(frit_dtype dtype);

// Which rows of a matrix are rows r and r + 8 of a tile: kernels have both in one lane.
typedef enum frit_cuda_row_order {
    FRIT_CUDA_ORDER_NATURAL,
    FRIT_CUDA_ORDER_ADJACENT,   // 2p and 2p + 1 of a head: pairs that a rotation of adjacent dimensions turns
    FRIT_CUDA_ORDER_NEOX,       // p and p + head_size / 2 of a head: pairs of a rotation of halves
    FRIT_CUDA_ORDER_GATED       // row p of the matrix, a gate, and row p of `second`, its value
} frit_cuda_row_order;

typedef struct frit_tile_source {
    const uint8_t *blocks, *second;   // rows of blocks as in the file; second: FRIT_CUDA_ORDER_GATED only
    int64_t n_rows, n_columns;        // of each
    frit_cuda_row_order order;
    int head_size;   // FRIT_CUDA_ORDER_ADJACENT, FRIT_CUDA_ORDER_NEOX; a multiple of 16 that divides n_rows
} frit_tile_source;

int64_t frit_tile_count(const frit_tile_source *source);                                    // row tiles
uint64_t frit_tile_bytes(const frit_tile_format *format, const frit_tile_source *source);   // of one row tile
// Packs row tiles [begin, end) into out.
void frit_tile_pack(const frit_tile_format *format, const frit_tile_source *source, int64_t begin, int64_t end,
                    uint8_t *out);
// The numbers of a tile, [row][column]: the reference for kernels.
void frit_tile_decode(const frit_tile_format *format, const uint8_t *tile, float *values);
