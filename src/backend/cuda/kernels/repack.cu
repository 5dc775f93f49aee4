// SPDX-License-Identifier: MIT
// Makes tiles from the blocks of a file. A thread makes 16 bytes of a tile. repack.h has the layout.
//
// Defined by the host: TYPE0.
#include "args.h"
#include "tiles.cuh"

#define ORDER_ADJACENT 1
#define ORDER_NEOX   2
#define ORDER_GATED    3
#define TILE_UNITS    (tile_of<TYPE0>::bytes / 16)

// Address of the blocks of row r of a row tile; 0: the matrix has no such row.
DEVICE frit_bytes row_of(const frit_repack_args &a, int tile, int r)
{
    const int pair = tile * 8 + r % 8;
    const bool is_second = a.order == ORDER_GATED && r >= 8;
    int row = tile * 16 + r;
    if (a.order == ORDER_ADJACENT) row = pair * 2 + r / 8;
    if (a.order == ORDER_NEOX) row = (pair / a.head_pairs * 2 + r / 8) * a.head_pairs + pair % a.head_pairs;
    if (a.order == ORDER_GATED) row = pair;
    return row < a.n_rows ? (frit_bytes)(is_second ? a.second : a.blocks) + row * a.row_bytes : (frit_bytes)0;
}

// A byte of a plane.
template <int BITS> DEVICE u32 plane_byte(const frit_repack_args &a, int tile, int block, int unit, int byte, int shift)
{
    typedef tile_of<TYPE0> type;
    frit_bytes row = row_of(a, tile, frit_plane_row(BITS, unit, byte));
    u32 fields = 0;
#pragma unroll
    for (int i = 0; i < (BITS < 8 ? 8 / BITS : 1); i++) {
        const int column = frit_plane_column(BITS, unit, byte, i);
        if (!row || block * 256 + column >= a.n_columns) continue;
        const u32 code = type::code(row + block * a.bytes_of_256, column, (frit_bytes)a.grid);
        fields |= BITS >= 8 ? code >> byte * 8 % BITS & 255 : (code >> shift & ((1u << BITS % 32) - 1)) << i * BITS;
    }
    return fields;
}

// A byte of a plane of scales, with N bytes for each row.
template <bool IS_HEAD, int N> DEVICE u32 head_byte(const frit_repack_args &a, int tile, int block, int at)
{
    typedef tile_of<TYPE0> type;
    const int n = min(a.n_columns - block * 256, 256);
    frit_bytes row = row_of(a, tile, at / N);
    if (!row) return 0;
    row += block * a.bytes_of_256;
    return IS_HEAD ? type::head(row, at % N, n) : type::tail(row, at % N, n);
}

// All bytes of a 16-byte unit belong to one plane.
DEVICE u32 tile_byte(const frit_repack_args &a, int tile, int block, int unit, int byte)
{
    typedef tile_of<TYPE0> type;
    const int high_unit = type::high_at / 16, head_unit = type::head_at / 16, at = unit * 16 + byte;
    if (unit < high_unit) return plane_byte<type::low_bits>(a, tile, block, unit, byte, 0);
    if (unit < head_unit)
        return plane_byte < type::high_bits ? type::high_bits
                                            : 1 > (a, tile, block, unit - high_unit, byte, type::low_bits);
    if (at < type::tail_at)
        return head_byte < true, type::head_bytes ? type::head_bytes : 1 > (a, tile, block, at - type::head_at);
    return head_byte < false, type::tail_bytes ? type::tail_bytes : 1 > (a, tile, block, at - type::tail_at);
}

extern "C" __global__ void __launch_bounds__(256) repack(const frit_repack_args a)
{
    const u32 index = blockIdx.x * 256u + threadIdx.x;
    const u32 blocks = (a.n_columns + 255) / 256, at = index / TILE_UNITS;
    if (at >= (u32)a.n_tiles * blocks) return;
    const int unit = (int)(index % TILE_UNITS), tile = (int)(at / blocks), block = (int)(at % blocks);
    u32 to[4];
#pragma unroll
    for (int w = 0; w < 4; w++) {
        to[w] = 0;
#pragma unroll 1
        for (int i = 0; i < 4; i++) to[w] |= tile_byte(a, tile, block, unit, w * 4 + i) << i * 8;
    }
    ((uint4 *)a.out)[index] = make_uint4(to[0], to[1], to[2], to[3]);
}
