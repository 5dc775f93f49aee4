// SPDX-License-Identifier: MIT
// One phase of a decode step with products as a kernel of its own. Its first copies of weights start before it waits
// for the kernel before it, because weights do not depend on it.
//
// Defined by the host (product.c): what phase.cuh wants, SHARED_BYTES, K, MATRIX_ROWS, STRIDE, NORM,
// EPILOGUE, TYPE0, TILES0, TYPE1, TILES1.
#include "phase.cuh"

static_assert(SHARED_BYTES >= shared_end, "the host counts shared memory as it is laid out here");

struct the_phase : rows_in_order<the_phase> {
    static const int k = K, n = MATRIX_ROWS, stride = STRIDE, type0 = TYPE0, tiles0 = TILES0, type1 = TYPE1, tiles1 = TILES1,
                     epilogue = EPILOGUE;
    static const bool norm = NORM;
};

struct matrices : tiles_in_order {
    const frit_product_args &a;
    int n;
    DEVICE bool next(frit_gpu_matrix &m)
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

// Of f32 weights blockIdx.y counts rows, ROWS at a time: these matrices have products of few rows in every step. Others
// have no registers to spare.
#define HAS_MANY_ROWS (TYPE0 == 0 && EPILOGUE != EPILOGUE_QKV)

#if HAS_MANY_ROWS
DEVICE frit_product_args own_rows(frit_product_args a)
{
    const int first = (int)blockIdx.y * ROWS;
    const u64 bytes = (u64)first * (EPILOGUE == EPILOGUE_GLU ? MATRIX_ROWS / 2 : MATRIX_ROWS) * 4;
    a.n_rows = min(a.n_rows - first, ROWS);
    a.x += (u64)first * STRIDE * 4;
    a.best += (u64)first * 8;
    if (a.out) a.out += bytes;
    if (a.residual) a.residual += bytes;
    return a;
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS) product(const frit_product_args of_all)
{
#if HAS_MANY_ROWS
    const frit_product_args a = own_rows(of_all);
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
    // Attention reads what is older than this kernel before it waits: it may start once that is complete.
    if (EPILOGUE == EPILOGUE_QKV) let_next_kernel_start();
    ring_fill(r, list, warp, lane);
    int turn = 0;
    run_phase<the_phase>(a, shared, r, list, group, warp, lane, turn);
}
