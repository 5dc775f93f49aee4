// SPDX-License-Identifier: MIT
// Shared by gemm_small.cu and gemm_wgmma.cu: the results of a block of threads, which are fragments in registers.
//
// GATED (one split, one segment, in FRIT_CUDA_ORDER_GATED): out is silu(gate) * value in f16. Each row is scaled by a
// power of two. No block has a whole row, so the power follows from a bound: |gate| and |value| are at most the length
// of the row of x times the length of the longest row of weights. The bound is often a thousand times too large;
// numbers then lie near 2^5, and keep their eleven bits, because f16 has numbers from 2^-24 to 2^16.
//
// Defined by the host: TILES0, TILES1, ROWS, TILES, WARPS (that have results), HALF_MATH.
#pragma once
#include "activation.cuh"
#include "args.h"
#include "f16_tile.cuh"
#include "slabs.cuh"

// Shared memory of store_gated.
#define GATED_BYTES (ROWS * (WARPS * TILES * 16 + 8))

// Stores activated gates times values, through shared memory, so that 16 bytes of a row are written at once. The block
// has row tiles from `first` on, and rows from first_row on.
template <int TYPE>
DEVICE void store_gated(const frit_gemm_args &a, int n_tiles, int first, int first_row,
                        const frag (&sums)[TILES][ROWS / 8], char *shared)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = WARPS * TILES;
    u16 *out = (u16 *)shared;   // [ROWS][group * 8]
    float *factors = (float *)(shared + ROWS * group * 16), *scale = factors + ROWS;
    threads_sync<WARPS * 32>(1);   // all warps have read what lies here
    for (int i = threadIdx.x; i < ROWS; i += WARPS * 32) {
        const int row = first_row + i;
        const bool is_there = row < a.n_rows;
        const float *longest = (const float *)a.bounds;
        const float most = is_there ? ((const float *)a.squares)[row] * sqrtf(longest[0]) * sqrtf(longest[1]) : 0;
        factors[i] = is_there ? ((const float *)a.scales)[row] * (1.f / f16_tile<TYPE>::times) : 0;
        scale[i] = 16 * half_scale(most);   // to [2^14, 2^15)
        if (first == 0 && is_there) ((float *)a.out_scales)[row] = 1 / scale[i];
    }
    threads_sync<WARPS * 32>(1);
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int n = 0; n < ROWS / 8; n++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
                const int row = n * 8 + lane % 4 * 2 + j;
                const float gate = sums[i][n].v[j] * factors[row], value = sums[i][n].v[j + 2] * factors[row];
                out[row * (group * 8) + (warp * TILES + i) * 8 + lane / 4] =
                    float_to_half(activate<ACT_SILU>(gate) * value * scale[row]);
            }
    threads_sync<WARPS * 32>(1);
    for (int i = threadIdx.x; i < ROWS * group; i += WARPS * 32) {
        const int row = first_row + i / group, tile = first + i % group;
        if (row < a.n_rows && tile < n_tiles)
            store_input_eight((void *)a.out, a.slab_rows, row, tile * 8, TILES0 * 8, ((const uint4 *)out)[i]);
    }
}

// Stores the results of a warp, for the segment's row tiles from `first` on. at: the number in a row of out where the
// segment begins.
template <int TYPE>
DEVICE void store_sums(const frit_gemm_args &a, int split, int n_tiles, int first, int first_row, int at,
                       const frag (&sums)[TILES][ROWS / 8])
{
    const int lane = threadIdx.x % 32, width = (TILES0 + TILES1) * 16;
    float *out = (float *)a.out + (long long)split * a.n_rows * width + at;
    const float *scales = (const float *)a.scales;
#pragma unroll
    for (int i = 0; i < TILES; i++) {
        const int tile = first + i;
        if (tile >= n_tiles) continue;
#pragma unroll
        for (int n = 0; n < ROWS / 8; n++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int row = first_row + n * 8 + lane % 4 * 2 + j % 2;
                if (row < a.n_rows)
                    out[(long long)row * width + tile * 16 + lane / 4 + j / 2 * 8] =
                        sums[i][n].v[j] * (1.f / f16_tile<TYPE>::times) * (scales ? scales[row] : 1);
            }
    }
}
