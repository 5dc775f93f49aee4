// SPDX-License-Identifier: MIT
// Constants of the tiles of all weight types, from tiles.def.
#pragma once
#include "ptx.cuh"

#include "codes.h"

template <int TYPE> struct tile_of;

#define TILE(NAME, number, low, high, code_of, head_of, n_head, tail_of, n_tail, value, grid, n_grid) \
    enum { TYPE_##NAME = number };                                                                    \
    template <> struct tile_of<number> {                                                              \
        enum {                                                                                        \
            low_bits = low,                                                                           \
            high_bits = high,                                                                         \
            head_bytes = n_head,                                                                      \
            tail_bytes = n_tail,                                                                      \
            high_at = 512 * low,                                                                      \
            head_at = high_at + 512 * high,                                                           \
            tail_at = head_at + 16 * n_head,                                                          \
            bytes = tail_at + 16 * n_tail                                                             \
        };                                                                                            \
        static DEVICE u32 code(frit_bytes b, int k, frit_bytes levels)                                \
        {                                                                                             \
            return code_of(b, k, levels);                                                             \
        }                                                                                             \
        static DEVICE u32 head(frit_bytes b, int i, int n)                                            \
        {                                                                                             \
            return head_of(b, i, n);                                                                  \
        }                                                                                             \
        static DEVICE u32 tail(frit_bytes b, int i, int n)                                            \
        {                                                                                             \
            return tail_of(b, i, n);                                                                  \
        }                                                                                             \
    };
#include "tiles.def"
#undef TILE
