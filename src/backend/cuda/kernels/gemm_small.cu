// SPDX-License-Identifier: MIT
// A product of 9 to 128 rows in f16 with weights in tiles: too many rows for integers (phase.cuh), too few to convert
// the weights to f16 matrices first (dequantize.cu). A warp has TILES row tiles of the weights and all rows. Weights
// become f16 fragments in registers (gemm_small.cuh). 256 columns at a time are copied to shared memory, STAGES - 1
// steps ahead: the rows for the whole block of threads, tiles for each warp.
//
//     out[split][row][16 * tile + r] = sum over the split's columns of weights[tile][r][column] * x[row][column]
//
// If no kernel follows the product, the results are multiplied by the factor of their row (scales).
//
// GATED: out is silu(gate) * value in f16, as gemm_store.cuh says.
//
// Grid: groups of WARPS * TILES row tiles, those of the second segment last; SPLITS. Defined by the host: TYPE0,
// TILES0, TYPE1, TILES1, K, ROWS (a multiple of 8), TILES, WARPS, SPLITS, STAGES, SHARED_BYTES, HALF_MATH, GATED.
#include "gemm_small.cuh"
#include "gemm_store.cuh"

#define GROUPS0 ((TILES0 + GROUP - 1) / GROUP)

static_assert(!GATED || (SPLITS == 1 && TILES1 == 0 && stage_of<TYPE0>::bytes >= GATED_BYTES),
              "gates and values are of one segment, and their results lie where its first stage was");
static_assert(SHARED_BYTES >= STAGES * stage_of<TYPE0>::bytes && SHARED_BYTES >= STAGES * stage_of<TYPE1>::bytes,
              "the host counts shared memory as it is laid out here");

// ------------------------------------------------------------------------------- the product

// Starts the copy of 256 columns of all rows.
DEVICE void fetch_rows(const frit_gemm_args &a, int block, char *shared)
{
    const int column = block * 256;
    const u32 to = shared_address(shared);
    for (int i = threadIdx.x; i < ROWS * 32; i += WARPS * 32) {
        const int row = min(i / 32, a.n_rows - 1), at = i % 32;
        const int offset = i / 32 * X_STRIDE + at * 16;
        if (K % 256 == 0 || column + at * 8 < K)
            copy_16(to + offset, (const u16 *)a.x + (long long)row * K + column + at * 8);
        else
            *(uint4 *)(shared + offset) = make_uint4(0, 0, 0, 0);
    }
}

template <int TYPE>
DEVICE void fetch_block(const frit_gemm_args &a, const char *tiles, int n_tiles, int first, int block, char *to)
{
    fetch_tiles<TYPE>(tiles, n_tiles, first, block, shared_address(to));
    fetch_rows(a, block, to);
}

// Computes row tiles from `first` on of a segment, whose results begin at number `at` of a row.
template <int TYPE>
DEVICE void multiply(const frit_gemm_args &a, frit_gpu_ptr weights, int n_tiles, int first, int at, char *shared)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, split = blockIdx.y;
    const int begin = BLOCKS * split / SPLITS, end = BLOCKS * (split + 1) / SPLITS;
    const char *tiles = (const char *)weights;
    frag sums[TILES][ROWS / 8];
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int n = 0; n < ROWS / 8; n++) sums[i][n] = frag{{0, 0, 0, 0}};
    // Tiles do not depend on the kernel before, so their copy starts before the wait.
    fetch_tiles<TYPE>(tiles, n_tiles, first, begin, shared_address(shared));
    wait_for_kernel_before();
    fetch_rows(a, begin, shared);
    copy_commit();
#pragma unroll
    for (int i = 1; i < STAGES - 1; i++) {
        if (begin + i < end) fetch_block<TYPE>(a, tiles, n_tiles, first, begin + i, shared + i * stage_of<TYPE>::bytes);
        copy_commit();
    }
    for (int block = begin, stage = 0; block < end; block++) {
        copy_wait<STAGES - 2>();
        __syncthreads();   // also: all warps have read the stage that is overwritten now
        const int ahead = block + STAGES - 1, free = stage ? stage - 1 : STAGES - 1;
        if (ahead < end) fetch_block<TYPE>(a, tiles, n_tiles, first, ahead, shared + free * stage_of<TYPE>::bytes);
        copy_commit();
        multiply_block<TYPE>(shared + stage * stage_of<TYPE>::bytes, ROWS, warp, lane, sums);
        if (++stage == STAGES) stage = 0;
    }
    if constexpr (GATED) {
        store_gated<TYPE>(a, n_tiles, first, 0, sums, shared);
        return;
    }
    store_sums<TYPE>(a, split, n_tiles, first + warp * TILES, 0, at, sums);
}

extern "C" __global__ void __launch_bounds__(WARPS * 32, WARPS > 8) gemm_small(const frit_gemm_args a)
{
    extern __shared__ __align__(128) char shared[];
    const int group = blockIdx.x;
    let_next_kernel_start();
    if (group < GROUPS0)
        multiply<TYPE0>(a, a.weights[0], TILES0, group * GROUP, 0, shared);
    else if constexpr (TILES1 > 0)
        multiply<TYPE1>(a, a.weights[1], TILES1, (group - GROUPS0) * GROUP, TILES0 * 16, shared);
}
