// SPDX-License-Identifier: MIT
// A phase (phase.cuh) as a kernel. Weights do not depend on the kernel before, so their first copies start before the
// wait for it.
//
// With PARTS > 1, blockIdx.z is a part of the columns, so that no block converts all of a long input. Blocks store the
// results of their part in `partial`. The last block that arrives adds the parts, always in the same order.
//
// Defined by the host (product.c): the defines of phase.cuh, SHARED_BYTES, K (columns of a part), MATRIX_ROWS, STRIDE
// (all columns), PARTS, NORM, EPILOGUE, TYPE0, TILES0, TYPE1, TILES1.
#include "phase.cuh"

static_assert(SHARED_BYTES >= shared_end, "the host counts shared memory as it is laid out here");

struct the_phase : rows_in_order<the_phase> {
    static const int k = K, n = MATRIX_ROWS, stride = STRIDE, type0 = TYPE0, tiles0 = TILES0, type1 = TYPE1,
                     tiles1 = TILES1, epilogue = PARTS > 1 ? EPILOGUE_STORE : EPILOGUE;
    static const bool norm = NORM;
};

struct matrices : tiles_in_order {
    const frit_product_args &a;
    int n;
    DEVICE bool next(matrix &m)
    {
        if (n == 2 || (n == 1 && TILES1 == 0)) return false;
        m.bytes = n ? tile_of<TYPE1>::bytes : tile_of<TYPE0>::bytes;
        m.blocks = BLOCKS_OF(K);
        m.stride = BLOCKS_OF(STRIDE);
        m.end = n ? TILES0 + TILES1 : TILES0;
        m.weights = n ? a.weights[1] - (u64)TILES0 * m.stride * m.bytes : a.weights[0];
        m.is_new = n++ == 0;
        return true;
    }
};

// With f32 weights, blockIdx.y is a group of ROWS rows: such products are gemvs in every step, also of prompts. Kernels
// of other types lack the registers for it.
#define TAKES_ALL_ROWS (TYPE0 == 0 && EPILOGUE != EPILOGUE_QKV)

#if TAKES_ALL_ROWS
DEVICE frit_product_args own_rows(frit_product_args a)
{
    const int first = (int)blockIdx.y * ROWS;
    const u64 bytes = (u64)first * (EPILOGUE == EPILOGUE_GLU ? MATRIX_ROWS / 2 : MATRIX_ROWS) * 4;
    a.n_rows = min(a.n_rows - first, ROWS);
    a.x += (u64)first * STRIDE * 4;
    if (a.out) a.out += bytes;
    if (a.residual) a.residual += bytes;
    return a;
}
#endif

#if PARTS > 1
static_assert(K % 256 == 0 && K * PARTS == STRIDE && !NORM && TILES1 == 0 && EPILOGUE <= EPILOGUE_ADD,
              "columns in whole tiles, results that are sums");

DEVICE frit_product_args own_part(frit_product_args a)
{
    const u64 part = blockIdx.z;
    a.weights[0] += part * (BLOCKS_OF(K) * tile_of<TYPE0>::bytes);
    a.x += part * (K * 4);
    a.out = a.partial + part * (ROWS * (u64)MATRIX_ROWS * 4);
    return a;
}

// True for the block that arrives last: all parts of its row tiles are in memory.
DEVICE bool is_last_part(const frit_product_args &a)
{
    __shared__ int is_last;
    u32 *arrived = (u32 *)a.arrived + blockIdx.x;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        is_last = atomicAdd(arrived, 1u) == PARTS - 1;
        if (is_last) *arrived = 0;
    }
    __syncthreads();
    __threadfence();
    return is_last;
}

// Adds the parts of the row tiles blockIdx.x + i * GRID. A thread has four rows of a tile at a time.
DEVICE void join_parts(const frit_product_args &a)
{
    const int n_tiles = (TILES0 - (int)blockIdx.x + GRID - 1) / GRID;
    const float *residual = (const float *)(a.residual ? a.residual : a.out);
    for (int i = threadIdx.x; i < n_tiles * a.n_rows * 4; i += THREADS) {
        const int row = (blockIdx.x + i / 4 / a.n_rows * GRID) * 16 + i % 4 * 4, column = i / 4 % a.n_rows;
        const long long at = (long long)column * MATRIX_ROWS + row;
        float4 part[PARTS], sum = make_float4(0, 0, 0, 0);
#pragma unroll
        for (int p = 0; p < PARTS; p++)
            part[p] = __ldcg((const float4 *)((const float *)a.partial + p * (ROWS * (long long)MATRIX_ROWS) + at));
        if (EPILOGUE == EPILOGUE_ADD) sum = __ldcg((const float4 *)(residual + at));
#pragma unroll
        for (int p = 0; p < PARTS; p++) sum.x += part[p].x, sum.y += part[p].y, sum.z += part[p].z, sum.w += part[p].w;
        *(float4 *)((float *)a.out + at) = sum;
    }
}
#endif

// More than 8 rows of integers need more than half of a multiprocessor's registers. The hint of one block lets the
// compiler use them.
#if ROWS > 8 && !IS_16_BITS
#define BOUNDS __launch_bounds__(THREADS, 1)
#else
#define BOUNDS __launch_bounds__(THREADS)
#endif

extern "C" __global__ void BOUNDS product(const frit_product_args of_all)
{
#if TAKES_ALL_ROWS
    const frit_product_args a = own_rows(of_all);
#elif PARTS > 1
    const frit_product_args a = own_part(of_all);
#else
    const frit_product_args &a = of_all;
#endif
    extern __shared__ __align__(128) char shared[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % WARPS, group = threadIdx.x / 32 / WARPS;
    ring r;
    matrices list = {{}, a, 0};
    if (EPILOGUE != EPILOGUE_QKV) let_next_kernel_start();
    ring_open(r, list, shared_address(shared), group, warp, lane);
    convert_input<the_phase>(a, shared, group, warp, lane, [] { wait_for_kernel_before(); });
    // Attention reads older keys and values before its wait, so it may start only after this kernel's wait.
    if (EPILOGUE == EPILOGUE_QKV) let_next_kernel_start();
    ring_fill(r, list, warp, lane);
    run_phase<the_phase>(a, shared, r, list, group, warp, lane);
#if PARTS > 1
    if (is_last_part(of_all)) join_parts(of_all);
#endif
}
