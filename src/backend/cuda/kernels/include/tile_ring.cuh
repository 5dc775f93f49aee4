// SPDX-License-Identifier: MIT
// Shared by gemm_wgmma.cu and gemm_fp8.cu: the tiles that a warp multiplies, which the copy engine brings to shared
// memory.
//
// Defined by the host: K, TILES (row tiles of a warp), STAGES.
#pragma once
#include "tiles.cuh"
#include "wgmma.cuh"

#define BLOCKS ((K + 255) / 256)

// The tiles of a warp: a ring of STAGES stages, each 256 columns of all of them.
template <int TYPE> struct tile_ring {
    enum { tile = tile_of<TYPE>::bytes, bytes = TILES * tile };
    const char *tiles;   // the segment's
    char *own;           // the ring
    u32 full;            // its barriers
    int n_tiles, first, block, end, stage;
    u32 parity;

    // Lane 0 starts the copy of 256 columns.
    DEVICE void fetch(int of_block, int to_stage) const
    {
        const u32 barrier = full + to_stage * 8, to = shared_address(own + to_stage * bytes);
        barrier_expect(barrier, bytes);
#pragma unroll
        for (int i = 0; i < TILES; i++)
            copy_bulk_more(to + i * tile, tiles + ((long long)min(first + i, n_tiles - 1) * BLOCKS + of_block) * tile,
                           tile, barrier);
    }
    DEVICE void start(int lane)
    {
        stage = 0, parity = 0;
        if (lane == 0)
            for (int i = 0; i < STAGES && block + i < end; i++) fetch(block + i, i);
        barrier_wait(full, 0);
    }
    DEVICE const char *at(int i) const
    {
        return own + stage * bytes + i * tile;
    }
    // All lanes have read the stage: it is filled again, and the next one begins.
    DEVICE void advance(int lane)
    {
        __syncwarp();
        if (lane == 0 && block + STAGES < end) fetch(block + STAGES, stage);
        block++;
        if (++stage == STAGES) stage = 0, parity ^= 1;
        if (block < end) barrier_wait(full + stage * 8, parity);
    }
};
