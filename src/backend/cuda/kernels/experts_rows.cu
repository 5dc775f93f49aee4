// SPDX-License-Identifier: MIT
// Products with matrices of experts in f16. A block of threads serves up to ROWS assignments of one expert
// (dispatch.cu), as gemm_small.cu serves rows.
//
//     out[assignment][16 * tile + r] = scale * sum over columns of weights[expert][tile][r][column] * x[row][column]
//
// The scale of a row undoes that of convert_rows (gemm.cu), and has the weight of the route as a factor if WEIGHED.
// With GATED rows r and r + 8 of a tile are a gate and its value, and out has one number for both.
//
// Grid: groups of WARPS * TILES row tiles; groups of assignments. Defined by the host (experts_rows.c): TYPE0, TILES0,
// K, ROWS, TILES, WARPS, N_USED, OWN_ROWS (x has a row for each assignment), WEIGHED, GATED, GLU_ACT, SHARED_BYTES.
#include "activation.cuh"
#include "gemm_small.cuh"

#define THREADS (WARPS * 32)

static_assert(SHARED_BYTES >= 2 * stage_of<TYPE0>::bytes, "the host counts shared memory as it is laid out here");

struct assignments {
    int n, of[ROWS];   // entries after the last repeat the last one
    float factors[ROWS];
};

// Starts copies of 256 columns of the rows, and of each warp's tiles.
DEVICE void fetch(const frit_expert_rows_args &a, const assignments &list, const char *tiles, int first, int block,
                  char *shared)
{
    const int column = block * 256, n_places = (list.n + 7) / 8 * 8 * 32;
    const u32 to = shared_address(shared);
    for (int i = threadIdx.x; i < n_places; i += THREADS) {
        const int of = list.of[i / 32], at = i % 32, offset = i / 32 * X_STRIDE + at * 16;
        const long long row = OWN_ROWS ? of : of / N_USED;
        if (K % 256 == 0 || column + at * 8 < K)
            copy_16(to + offset, (const u16 *)a.x + row * K + column + at * 8);
        else
            *(uint4 *)(shared + offset) = make_uint4(0, 0, 0, 0);
    }
    fetch_tiles<TYPE0>(tiles, TILES0, first, block, to);
}

// The assignments that the block serves.
DEVICE void take_assignments(const frit_expert_rows_args &a, const frit_expert_group *group, assignments &list)
{
    const int n = __ldcg(&group->n), first = __ldcg(&group->first);
    for (int i = threadIdx.x; i < ROWS; i += THREADS) {
        const int of = __ldcg((const int *)a.order + first + min(i, n - 1)), row = of / N_USED;
        list.of[i] = of;
        list.factors[i] = __ldcg((const float *)a.scales + (OWN_ROWS ? of : row));
        if (WEIGHED)
            list.factors[i] *= __ldcg((const float *)a.route + (long long)row * 2 * N_USED + N_USED + of % N_USED);
    }
    if (threadIdx.x == 0) list.n = n;
    __syncthreads();
}

DEVICE void store(const frit_expert_rows_args &a, const assignments &list, int tile, const frag &sums, int n, int lane)
{
#pragma unroll
    for (int j = 0; j < 2; j++) {
        const int row = n * 8 + lane % 4 * 2 + j;
        if (row >= list.n) continue;
        const float first = sums.v[j] * list.factors[row], second = sums.v[j + 2] * list.factors[row];
        float *out = (float *)a.out + (long long)list.of[row] * TILES0 * (GATED ? 8 : 16) + tile * (GATED ? 8 : 16);
        if (GATED) {
            out[lane / 4] = activate<GLU_ACT>(first) * second;
        } else {
            out[lane / 4] = first;
            out[lane / 4 + 8] = second;
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) experts_rows(const frit_expert_rows_args a)
{
    extern __shared__ __align__(128) char shared[];
    __shared__ assignments list;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = blockIdx.x * GROUP;
    const frit_expert_group *group = (const frit_expert_group *)a.groups + blockIdx.y;
    frag sums[TILES][ROWS / 8];
    let_next_kernel_start();
    wait_for_kernel_before();
    if (__ldcg(&group->n) == 0) return;
    take_assignments(a, group, list);
    const char *tiles = (const char *)a.weights + (u64)__ldcg(&group->expert) * a.bytes;
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int n = 0; n < ROWS / 8; n++) sums[i][n] = frag{{0, 0, 0, 0}};
    fetch(a, list, tiles, first, 0, shared);
    copy_commit();
    for (int block = 0, stage = 0; block < BLOCKS; block++, stage ^= 1) {
        if (block + 1 < BLOCKS) fetch(a, list, tiles, first, block + 1, shared + (stage ^ 1) * stage_of<TYPE0>::bytes);
        copy_commit();
        copy_wait<1>();
        __syncthreads();
        multiply_block<TYPE0>(shared + stage * stage_of<TYPE0>::bytes, list.n, warp, lane, sums);
        __syncthreads();   // all warps have read the stage that is overwritten now
    }
#pragma unroll
    for (int i = 0; i < TILES; i++) {
        const int tile = first + warp * TILES + i;
        if (tile >= TILES0) continue;
#pragma unroll
        for (int n = 0; n < ROWS / 8; n++) store(a, list, tile, sums[i][n], n, lane);
    }
}
