// SPDX-License-Identifier: MIT
// backend/cuda/weights/repack.h: weights in the order in which the GPU's kernels read them, losslessly.
//
// A matrix becomes tiles of 16 rows and 256 columns, [row tile][block of 256 columns], each contiguous and in units
// of 16 bytes; the last tiles are padded with zeros. Within a tile, a product of 16 rows and
// 16 columns takes columns
//
//     g * 32 + s * 16 + t * 4 + i        group g 0..7, step s 0..1, i 0..3
//
// of rows r and r + 8 from lane r * 4 + t of a warp. A lane has four codes of a row in a step, code i in byte i of a
// word. A tile consists of planes of codes and of scales, as kernels/include/tiles.def lists them. With h 0 for row r
// and 1 for row r + 8, planes are:
//
//     32 bits   16 bytes at (((g * 2 + s) * 2 + h) * 32 + lane) * 16, word i
//     16 bits   16 bytes at ((g * 2 + s) * 32 + lane) * 16, words i / 2 * 2 + h
//     8 bits    16 bytes at ((g / 2 * 2 + h) * 32 + lane) * 16, word g % 2 * 2 + s
//     4 bits    16 bytes at ((g / 4 * 2 + h) * 32 + lane) * 16, word g / 2 % 2 * 2 + s; groups 2j and 2j + 1 in the low
//               and the high bits of a byte
//     2 bits    16 bytes at (h * 32 + lane) * 16, word g / 2, bits g % 2 * 4 + s * 2 of a byte
//     1 bit     16 bytes at lane * 16, word h * 2 + g / 4, bit g % 4 * 2 + s of a byte
//
// Types whose codes index a grid, and types of two or three levels, become bytes: their tiles are larger than their
// blocks. kernels/repack.cu makes tiles on the GPU; kernels/include/tile.cuh and tile_any.cuh multiply them.
#pragma once
#include "quant/dtype.h"

enum { FRIT_TILE_ROWS = 16, FRIT_TILE_COLUMNS = 256 };

typedef struct frit_tile_format {
    frit_dtype dtype;
    int tile_bytes;
    int low_bits, high_bits;      // bits of a code in the first plane, in the second plane
    int head_bytes, tail_bytes;   // bytes of scales of a row, in the first and in the second plane of scales
    // From the blocks of a row, up to 256 numbers: the code of number k; byte i of head and tail, for n numbers.
    unsigned (*code)(const uint8_t *blocks, int k, const uint8_t *grid);
    unsigned (*head)(const uint8_t *blocks, int i, int n), (*tail)(const uint8_t *blocks, int i, int n);
    // Number k of a row, from its code and scales.
    float (*value)(const uint8_t *head, const uint8_t *tail, int k, unsigned code);
    const uint8_t *grid;   // table that codes index; NULL: none
    size_t grid_bytes;
} frit_tile_format;

// NULL: the type has no tiles. All weight types have tiles.
const frit_tile_format *frit_tile_format_of(frit_dtype dtype);

// The rows of the matrix that become rows r and r + 8 of a tile. Kernels have both in one lane.
typedef enum frit_cuda_row_order {
    FRIT_CUDA_ORDER_NATURAL,
    FRIT_CUDA_ORDER_ADJACENT,   // 2p and 2p + 1 of a head: pairs of an interleaved rotation
    FRIT_CUDA_ORDER_NEOX,       // p and p + head_size / 2 of a head: pairs of a NeoX rotation
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
