// SPDX-License-Identifier: MIT
// Layout of an f16 cache: pages of 32 positions, each with all layers.
//
//     keys of a page      [kv head][32 positions][HEAD]
//     values of a page    [kv head][HEAD][32 positions]
//
// Defined before: HEAD, PAGE_BYTES (bytes from page to page). Pointers are to this layer's part of page 0.
#pragma once
#include "args.h"
#include "ptx.cuh"

// The position in a page of column `column` of the n-th product of queries with eight keys. Lane t of four has columns
// 2 t and 2 t + 1 of four products: positions 8 t ... 8 t + 7, which are 16 bytes of a dimension of the values.
DEVICE int position_of(int n, int column)
{
    return column / 2 * 8 + n * 2 + column % 2;
}

DEVICE u16 *cache_key(frit_gpu_ptr keys, long long page, int head, int position)
{
    return (u16 *)((char *)keys + page * PAGE_BYTES) + (head * 32 + position % 32) * HEAD;
}

DEVICE u16 *cache_values(frit_gpu_ptr values, long long page, int head)
{
    return (u16 *)((char *)values + page * PAGE_BYTES) + head * (32 * HEAD);
}
