// SPDX-License-Identifier: MIT
// A product of 17 rows or more on sm_90, in f16, with weights in tiles. Only products of a warpgroup (wgmma.cuh) use
// the tensor cores at their full rate: 64 rows of weights, as fragments in registers, times ROWS rows of x in shared
// memory. While the tensor cores multiply, the warps convert the next weights (f16_tile.cuh).
//
//     out[split][row][16 * tile + r] = sum over the split's columns of weights[tile][r][column] * x[row][column]
//
// If no kernel follows the product, the results are multiplied by the factor of their row (scales). GATED: out is
// silu(gate) * value in f16, as gemm_store.cuh says.
//
// WARPS warps multiply, four of which are a warpgroup. A warp has TILES row tiles; the copy engine brings 256 columns
// of them at a time, STAGES ahead. A thread of four more warps has x copied, 64 columns at a time, 256 ahead: x comes
// in slabs (slabs.cuh), so a copy is one piece of memory.
//
// Grid: groups of WARPS * TILES row tiles, those of the second segment last, for each the blocks of ROWS rows; SPLITS.
// Defined by the host: TYPE0, TILES0, TYPE1, TILES1, K (a multiple of 64), ROWS (32, 64, 96, 128, 192 or 256), TILES,
// WARPS (4, 8 or 12), SPLITS, STAGES, AT_ONCE (blocks of threads that a multiprocessor runs), SHARED_BYTES, HALF_MATH,
// GATED.
#include "gemm_store.cuh"
#include "tile_ring.cuh"

#define GROUP   (WARPS * TILES)
#define GROUPS0 ((TILES0 + GROUP - 1) / GROUP)
#define X_BYTES (ROWS * 128)

enum {
    QUARTERS = 4,   // of 256 columns; each has a stage of x
    THREADS = (WARPS + 4) * 32,
    // Registers of a thread. The warps that do not multiply give theirs to the others.
    REGISTERS = 65536 / AT_ONCE / THREADS / 8 * 8,
    COPY_REGISTERS = 24,
    MOST_REGISTERS = (REGISTERS * (WARPS + 4) - COPY_REGISTERS * 4) / WARPS / 8 * 8,
    PRODUCT_REGISTERS = MOST_REGISTERS < 240 ? MOST_REGISTERS : 240,
    EXCHANGE = REGISTERS < PRODUCT_REGISTERS,
    // Shared memory: barriers, x, tiles of all warps.
    X_AT = 1024,
    TILES_AT = X_AT + QUARTERS * X_BYTES
};

static_assert(K % 64 == 0, "x is in whole slabs");

template <int TYPE> struct layout_of {
    enum { bytes = TILES_AT + GROUP * STAGES * tile_of<TYPE>::bytes };
};

static_assert(!GATED || (SPLITS == 1 && TILES1 == 0 && layout_of<TYPE0>::bytes >= X_AT + GATED_BYTES),
              "gates and values are of one segment, and their results lie where x and the tiles were");
static_assert(SHARED_BYTES >= layout_of<TYPE0>::bytes && SHARED_BYTES >= layout_of<TYPE1>::bytes,
              "the host counts shared memory as it is laid out here");

DEVICE u32 x_full(u32 barriers, int stage)
{
    return barriers + stage * 8;
}

DEVICE u32 x_empty(u32 barriers, int stage)
{
    return barriers + (QUARTERS + stage) * 8;
}

DEVICE u32 tiles_full(u32 barriers, int warp, int stage)
{
    return barriers + (2 * QUARTERS + warp * STAGES + stage) * 8;
}

// ------------------------------------------------------------------------------- the copying warp

// Has x copied, as stages become empty. One thread calls it.
DEVICE void copy_x(const frit_gemm_args &a, int first_row, int begin, int end, const char *shared, u32 barriers)
{
    const int slab_rows = (a.n_rows + 7) / 8 * 8, n = min((end - begin) * QUARTERS, K / 64 - begin * QUARTERS);
    const u32 n_bytes = (u32)min(ROWS, slab_rows - first_row) * 128, to = shared_address(shared + X_AT);
    const char *from = (const char *)a.x + ((long long)begin * QUARTERS * slab_rows + first_row) * 128;
    wait_for_kernel_before();
    for (int quarter = 0; quarter < n; quarter++, from += (long long)slab_rows * 128) {
        const int stage = quarter % QUARTERS;
        barrier_wait(x_empty(barriers, stage), (quarter / QUARTERS + 1) % 2);   // the first waits end at once
        copy_bulk(to + stage * X_BYTES, from, n_bytes, x_full(barriers, stage));
    }
}

// ------------------------------------------------------------------------------- the multiplying warps

// Reads 64 columns of a tile into registers.
template <int TYPE> DEVICE void read_quarter(f16_tile<TYPE> &weights, const char *tile, int lane, int quarter)
{
    // With many results the scales are read again rather than kept in registers.
    if (quarter == 0 || TILES * ROWS >= 256) weights.load(tile, lane);
    weights.pair(tile, lane, quarter);
}

// Makes the fragment of 16 of 64 columns. Weights in f16 are multiplied by one, so that the next ones can be read from
// shared memory while the tensor cores read these registers.
template <int TYPE> DEVICE void convert(const f16_tile<TYPE> &weights, int quarter, int step, u32 (&fragment)[4])
{
    weights.fragment(quarter, step / 2, step % 2, fragment);
    if (TYPE != TYPE_F16) return;
#pragma unroll
    for (int i = 0; i < 4; i++) fragment[i] = fma_half2(fragment[i], 0x3c003c00u, 0x80008000u);
}

// Products of 64 columns of a row tile of each warp are a group. While the tensor cores compute a group, the warps read
// the weights of the next one, wait for the group before, and convert the weights.
template <int TYPE>
DEVICE void multiply(tile_ring<TYPE> &ring, char *shared, u32 barriers, frag (&sums)[TILES][ROWS / 8])
{
    const int lane = threadIdx.x % 32, first = ring.block, n_blocks = ring.end - ring.block;
    f16_tile<TYPE> weights[TILES];
    u32 a[2][4][4];
    ring.start(lane);
    read_quarter<TYPE>(weights[0], ring.at(0), lane, 0);
    for (int block = 0; block < n_blocks; block++) {
#pragma unroll
        for (int group = 0; group < QUARTERS * TILES; group++) {
            const int quarter = group / TILES, i = group % TILES, next = (group + 1) % (QUARTERS * TILES);
            if (K % 256 != 0 && (first + block) * 256 + quarter * 64 >= K) break;   // of the last block
            const u64 rows = wgmma_rows(shared_address(shared + X_AT + quarter * X_BYTES));
            u32(&fragments)[4][4] = a[group % 2];
#pragma unroll
            for (int step = 0; step < 4; step++) convert<TYPE>(weights[i], quarter, step, fragments[step]);
            if (i == 0) barrier_wait(x_full(barriers, quarter), block % 2);
            wgmma_begin();
#pragma unroll
            for (int step = 0; step < 4; step++) wgmma_f16(sums[i], fragments[step], rows + step * 2);
            wgmma_commit();
            if (next == 0) ring.advance(lane);
            if (next > 0 || block + 1 < n_blocks)
                read_quarter<TYPE>(weights[next % TILES], ring.at(next % TILES), lane, next / TILES);
            wgmma_wait<1>();   // the registers of the group before are free
            if (i == 0 && lane == 0 && (quarter > 0 || block > 0))
                barrier_arrive(x_empty(barriers, (quarter + QUARTERS - 1) % QUARTERS));
        }
    }
    wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < TILES; i++) wgmma_results(sums[i]);
}

// Computes row tiles from `first` on of a segment, whose results begin at number `at` of a row.
template <int TYPE>
DEVICE void run(const frit_gemm_args &a, frit_gpu_ptr weights, int n_tiles, int first, int first_row, int at,
                char *shared)
{
    const int warp = threadIdx.x / 32, split = blockIdx.y;
    const int begin = BLOCKS * split / SPLITS, end = BLOCKS * (split + 1) / SPLITS;
    const u32 barriers = shared_address(shared);
    if (threadIdx.x == 0) {
        for (int i = 0; i < QUARTERS; i++) {
            barrier_init(x_full(barriers, i), 1);
            barrier_init(x_empty(barriers, i), WARPS);
        }
        for (int i = 0; i < WARPS * STAGES; i++) barrier_init(tiles_full(barriers, 0, i), 1);
        barrier_init_done();
    }
    __syncthreads();
    if (warp >= WARPS) {
        if constexpr (EXCHANGE) give_registers<COPY_REGISTERS>();
        if (threadIdx.x == WARPS * 32) copy_x(a, first_row, begin, end, shared, barriers);
        return;
    }
    if constexpr (EXCHANGE) take_registers<PRODUCT_REGISTERS>();
    frag sums[TILES][ROWS / 8];
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int n = 0; n < ROWS / 8; n++) sums[i][n] = frag{{0, 0, 0, 0}};
    tile_ring<TYPE> ring = {(const char *)weights,
                            shared + TILES_AT + warp * STAGES * tile_ring<TYPE>::bytes,
                            tiles_full(barriers, warp, 0),
                            n_tiles,
                            first + warp * TILES,
                            begin,
                            end};
    multiply<TYPE>(ring, shared, barriers, sums);
    wait_for_kernel_before();
    if constexpr (GATED)
        store_gated<TYPE>(a, n_tiles, first, first_row, sums, shared + X_AT);
    else
        store_sums<TYPE>(a, split, n_tiles, first + warp * TILES, first_row, at, sums);
}

extern "C" __global__ void __launch_bounds__(THREADS, AT_ONCE) gemm_wgmma(const frit_gemm_args a)
{
    extern __shared__ __align__(1024) char shared[];
    const int n_row_blocks = (a.n_rows + ROWS - 1) / ROWS;
    const int group = blockIdx.x / n_row_blocks, first_row = blockIdx.x % n_row_blocks * ROWS;
    let_next_kernel_start();
    if (group < GROUPS0)
        run<TYPE0>(a, a.weights[0], TILES0, group * GROUP, first_row, 0, shared);
    else if constexpr (TILES1 > 0)
        run<TYPE1>(a, a.weights[1], TILES1, (group - GROUPS0) * GROUP, first_row, TILES0 * 16, shared);
}
