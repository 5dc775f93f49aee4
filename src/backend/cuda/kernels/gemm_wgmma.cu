// SPDX-License-Identifier: MIT
// A product of 17 rows or more on sm_90, in f16, with weights in tiles. Only products of a warpgroup (wgmma.cuh) use the
// tensor cores at their full rate: 64 rows of weights, as fragments in registers, times ROWS rows of x in shared memory.
// While the tensor cores multiply, the warps convert the next weights (f16_tile.cuh).
//
//     out[split][row][16 * tile + r] = sum over the split's columns of weights[tile][r][column] * x[row][column]
//
// If no kernel follows the product, the results are multiplied by the factor of their row (scales). GATED: out is
// silu(gate) * value in f16, as gemm_store.cuh says.
//
// WARPS warps multiply, four of which are a warpgroup, and four more copy x. A warp has TILES row tiles; the copy engine
// brings 256 columns of them at a time, STAGES ahead. The copying warps bring 64 columns of x at a time, 256 ahead.
// Within 16 columns they store 0, 1, 4, 5, 8, 9, 12, 13 before the others, because fragments of tiles have them so.
//
// Grid: groups of WARPS * TILES row tiles, those of the second segment last, for each the blocks of ROWS rows; SPLITS.
// Defined by the host: TYPE0, TILES0, TYPE1, TILES1, K, ROWS (32, 64, 96 or 128), TILES, WARPS (4, 8 or 12), SPLITS,
// STAGES, AT_ONCE (blocks of threads that a multiprocessor runs), SHARED_BYTES, HALF_MATH, GATED.
#include "gemm_store.cuh"
#include "wgmma.cuh"

#define BLOCKS  ((K + 255) / 256)
#define GROUP   (WARPS * TILES)
#define GROUPS0 ((TILES0 + GROUP - 1) / GROUP)
#define X_BYTES (ROWS * 128)

enum {
    QUARTERS = 4,    // of 256 columns; each has a stage of x
    COPYING = 128,   // threads that copy x
    THREADS = WARPS * 32 + COPYING,
    // Registers of a thread. The copying warps give some of theirs to the others, if these need them.
    REGISTERS = 65536 / AT_ONCE / THREADS / 8 * 8,
    COPY_REGISTERS = ROWS / 2 + (TILES * ROWS >= 256 ? 24 : 32),
    PRODUCT_REGISTERS = (REGISTERS * (WARPS + 4) - COPY_REGISTERS * 4) / WARPS / 8 * 8,
    EXCHANGE = REGISTERS < 224
};

// Shared memory: x, tiles of all warps, barriers.
template <int TYPE> struct layout_of {
    enum {
        tile = tile_of<TYPE>::bytes,
        tiles_at = QUARTERS * X_BYTES,
        barriers_at = tiles_at + GROUP * STAGES * tile,
        bytes = barriers_at + (2 * QUARTERS + WARPS * STAGES) * 8
    };
};

static_assert(!GATED || (SPLITS == 1 && TILES1 == 0 && layout_of<TYPE0>::bytes >= GATED_BYTES),
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

// ------------------------------------------------------------------------------- the copying warps

struct x_piece {
    uint4 first, last;   // 16 columns
};

// 16 of 64 columns of the rows that a thread copies, 32 rows apart. from: the columns of the first row.
DEVICE void load_x(const u16 *from, int n_rows, bool is_there, x_piece (&to)[ROWS / 32])
{
#pragma unroll
    for (int i = 0; i < ROWS / 32; i++) {
        const uint4 *at = (const uint4 *)(from + i * 32 * K);
        if (is_there && i * 32 < n_rows)
            to[i].first = at[0], to[i].last = at[1];
        else
            to[i].first = to[i].last = make_uint4(0, 0, 0, 0);
    }
}

DEVICE void store_x(const x_piece (&from)[ROWS / 32], char *stage)
{
    const int thread = threadIdx.x - WARPS * 32, unit = thread % 4 * 2;
#pragma unroll
    for (int i = 0; i < ROWS / 32; i++) {
        const x_piece &p = from[i];
        const int row = thread / 4 + i * 32;
        *(uint4 *)(stage + wgmma_unit(row, unit)) = make_uint4(p.first.x, p.first.z, p.last.x, p.last.z);
        *(uint4 *)(stage + wgmma_unit(row, unit + 1)) = make_uint4(p.first.y, p.first.w, p.last.y, p.last.w);
    }
}

DEVICE void copy_x(const frit_gemm_args &a, int first_row, int begin, int end, char *shared, u32 barriers)
{
    const int thread = threadIdx.x - WARPS * 32, row = first_row + thread / 4, n_rows = a.n_rows - row;
    const u16 *from = (const u16 *)a.x + (long long)row * K;
    int column = begin * 256 + thread % 4 * 16;
    x_piece held[2][ROWS / 32];
    wait_for_kernel_before();
    load_x(from + column, n_rows, K % 256 == 0 || column < K, held[0]);
    for (int quarter = 0, n = (end - begin) * QUARTERS; quarter < n; quarter += 2) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int stage = (quarter + i) % QUARTERS;
            column += 64;
            if (i == 0 || quarter + 2 < n) load_x(from + column, n_rows, K % 256 == 0 || column < K, held[1 - i]);
            barrier_wait(x_empty(barriers, stage), (quarter / QUARTERS + 1) % 2);   // the first waits end at once
            store_x(held[i], shared + stage * X_BYTES);
            fence_before_wgmma();
            barrier_arrive(x_full(barriers, stage));
        }
    }
}

// ------------------------------------------------------------------------------- the multiplying warps

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
    const int lane = threadIdx.x % 32, n_blocks = ring.end - ring.block;
    f16_tile<TYPE> weights[TILES];
    u32 a[2][4][4];
    ring.start(lane);
    read_quarter<TYPE>(weights[0], ring.at(0), lane, 0);
    for (int block = 0; block < n_blocks; block++) {
#pragma unroll
        for (int group = 0; group < QUARTERS * TILES; group++) {
            const int quarter = group / TILES, i = group % TILES, next = (group + 1) % (QUARTERS * TILES);
            const u64 rows = wgmma_rows(shared_address(shared + quarter * X_BYTES));
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
            if (i == 0 && lane == 0 && (quarter > 0 || block > 0)) barrier_arrive(x_empty(barriers, (quarter + QUARTERS - 1) % QUARTERS));
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
    const u32 barriers = shared_address(shared + layout_of<TYPE>::barriers_at);
    if (threadIdx.x == 0) {
        for (int i = 0; i < QUARTERS; i++) {
            barrier_init(x_full(barriers, i), COPYING);
            barrier_init(x_empty(barriers, i), WARPS);
        }
        for (int i = 0; i < WARPS * STAGES; i++) barrier_init(tiles_full(barriers, 0, i), 1);
        barrier_init_done();
    }
    __syncthreads();
    if (warp >= WARPS) {
        if constexpr (EXCHANGE) give_registers<COPY_REGISTERS>();
        copy_x(a, first_row, begin, end, shared, barriers);
        return;
    }
    if constexpr (EXCHANGE) take_registers<PRODUCT_REGISTERS>();
    frag sums[TILES][ROWS / 8];
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int n = 0; n < ROWS / 8; n++) sums[i][n] = frag{{0, 0, 0, 0}};
    tile_ring<TYPE> ring = {(const char *)weights,
                            shared + layout_of<TYPE>::tiles_at + warp * STAGES * tile_ring<TYPE>::bytes,
                            tiles_full(barriers, warp, 0),
                            n_tiles,
                            first + warp * TILES,
                            begin,
                            end};
    multiply<TYPE>(ring, shared, barriers, sums);
    wait_for_kernel_before();
    if constexpr (GATED)
        store_gated<TYPE>(a, n_tiles, first, first_row, sums, shared);
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
