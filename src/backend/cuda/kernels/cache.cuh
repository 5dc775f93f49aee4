// SPDX-License-Identifier: MIT
// Where the cache has keys and values: pages of 32 positions with all layers, f16.
//
//     keys of a page      [kv head][32 positions][HEAD]
//     values of a page    [kv head][HEAD][32 positions], positions in the order of place_in_page
//
// Defined before: HEAD, PAGE_BYTES (from page to page). Pointers are to this layer's part of page 0.
#pragma once
#include "args.h"
#include "ptx.cuh"

// Values of a page lie by dimension, the positions of each as the fragments of a product want them.
DEVICE int place_in_page(int position)
{
    const int p = position % 32;
    return p % 8 / 2 * 8 + p / 8 * 2 + p % 2;
}

DEVICE u16 *cache_key(frit_gpu_ptr keys, long long page, int head, int position)
{
    return (u16 *)((char *)keys + page * PAGE_BYTES) + (head * 32 + position % 32) * HEAD;
}

DEVICE u16 *cache_values(frit_gpu_ptr values, long long page, int head)
{
    return (u16 *)((char *)values + page * PAGE_BYTES) + head * (32 * HEAD);
}
