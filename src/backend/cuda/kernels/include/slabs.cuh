// SPDX-License-Identifier: MIT
// The f16 input of a gemm, row after row or in slabs. A slab is 64 columns of all rows, in the order in which
// gemm_wgmma.cu has them in shared memory, so that one copy brings many rows:
//
//     slab_rows = 0    [row][WIDTH]
//     otherwise        [WIDTH / 64][slab_rows][64]; slab_rows: the number of rows, rounded up to a multiple of 8
//
// Within a row of a slab, columns 0, 1, 4, 5, 8, 9, 12, 13 of each 16 come before the others, because fragments of
// tiles have them so. Unit u of 16 bytes lies where unit u ^ (row % 8) would (wgmma.cuh).
#pragma once
#include "ptx.cuh"

// Where columns `column` and column + 1 of a row of a slab lie; column is even.
DEVICE u32 *slab_pair(void *to, int slab_rows, int row, int column)
{
    const int pair = column % 16 / 2, unit = column % 64 / 16 * 2 + pair % 2;
    return (u32 *)((char *)to + ((long long)(column / 64) * slab_rows + row) * 128 + (unit ^ row % 8) * 16 +
                   pair / 2 * 4);
}

// Stores four numbers of a row of `width`; column is a multiple of 4.
DEVICE void store_input_four(void *to, int slab_rows, int row, int column, int width, float a, float b, float c,
                             float d)
{
    const u32 first = pack_half2(a, b), second = pack_half2(c, d);
    if (slab_rows == 0) {
        *(uint2 *)((u16 *)to + (long long)row * width + column) = make_uint2(first, second);
    } else {
        *slab_pair(to, slab_rows, row, column) = first;
        *slab_pair(to, slab_rows, row, column + 2) = second;
    }
}

// Stores eight numbers, which are pairs in f16; column is a multiple of 8.
DEVICE void store_input_eight(void *to, int slab_rows, int row, int column, int width, const uint4 &v)
{
    if (slab_rows == 0) {
        *(uint4 *)((u16 *)to + (long long)row * width + column) = v;
    } else {
        *(uint2 *)slab_pair(to, slab_rows, row, column) = make_uint2(v.x, v.z);
        *(uint2 *)slab_pair(to, slab_rows, row, column + 2) = make_uint2(v.y, v.w);
    }
}

// Stores a pair of f16; column is even.
DEVICE void store_input_pair(void *to, int slab_rows, int row, int column, int width, u32 pair)
{
    *(slab_rows ? slab_pair(to, slab_rows, row, column) : (u32 *)((u16 *)to + (long long)row * width + column)) = pair;
}

DEVICE void store_input(void *to, int slab_rows, int row, int column, int width, float x)
{
    u16 *at = (u16 *)to + (long long)row * width + column;
    if (slab_rows) at = (u16 *)slab_pair(to, slab_rows, row, column & ~1) + column % 2;
    *at = float_to_half(x);
}
