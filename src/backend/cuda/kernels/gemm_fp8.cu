// SPDX-License-Identifier: MIT
// A product of 17 rows or more on sm_90 whose weights and input are e4m3: fp8_128 tiles as they are, and x as
// quantize_rows.cu writes it. The tensor cores multiply 128 columns; their sums, which have fewer bits than f32, are
// then multiplied by the scales of the weights' row and of x's row, and added in f32.
//
//     out[split][row][16 * tile + r] = sum over the split's columns of weights[tile][r][column] * x[row][column]
//
// Warps, grid, scales of rows and GATED are as in gemm_wgmma.cu. While a warpgroup adds its sums, the tensor cores
// multiply for the others.
//
// Defined by the host: TYPE0 and TYPE1 (fp8_128), TILES0, TILES1, K (a multiple of 128), ROWS (32, 64, 96, 128, 192,
// 256), TILES, WARPS (4, 8 or 12), SPLITS, STAGES, AT_ONCE, SHARED_BYTES, GATED.
#include "gemm_store.cuh"
#include "tile_ring.cuh"

#define GROUP   (WARPS * TILES)
#define GROUPS0 ((TILES0 + GROUP - 1) / GROUP)
#define X_BYTES (ROWS * 128)   // 128 columns
#define TILE    (tile_of<TYPE_FP8_128>::bytes)

enum {
    X_STAGES = 4,                               // of 128 columns of x
    PART_ROWS = ROWS > 192 ? ROWS / 2 : ROWS,   // whose sums of 128 columns a warpgroup has at a time
    THREADS = (WARPS + 4) * 32,
    // Registers of a thread. The warps that do not multiply give theirs to the others.
    REGISTERS = 65536 / AT_ONCE / THREADS / 8 * 8,
    COPY_REGISTERS = 24,
    MOST_REGISTERS = (REGISTERS * (WARPS + 4) - COPY_REGISTERS * 4) / WARPS / 8 * 8,
    PRODUCT_REGISTERS = MOST_REGISTERS < 240 ? MOST_REGISTERS : 240,
    EXCHANGE = REGISTERS < PRODUCT_REGISTERS,
    // Shared memory: barriers, x, scales of x, tiles of all warps.
    X_AT = 1024,
    SCALES_AT = X_AT + X_STAGES * X_BYTES,
    TILES_AT = SCALES_AT + X_STAGES * ROWS * 4,
    END = TILES_AT + GROUP * STAGES * TILE
};

static_assert(K % 128 == 0, "columns are whole blocks of weights");
static_assert(TYPE0 == TYPE_FP8_128 && TYPE1 == TYPE_FP8_128, "weights are e4m3");
static_assert(SHARED_BYTES >= END, "the host counts shared memory as it is laid out here");
static_assert(!GATED || (SPLITS == 1 && TILES1 == 0 && END >= X_AT + GATED_BYTES),
              "gates and values are of one segment, and their results lie where x and the tiles were");

DEVICE u32 x_full(u32 barriers, int stage)
{
    return barriers + stage * 8;
}

DEVICE u32 x_empty(u32 barriers, int stage)
{
    return barriers + (X_STAGES + stage) * 8;
}

DEVICE u32 tiles_full(u32 barriers, int warp, int stage)
{
    return barriers + (2 * X_STAGES + warp * STAGES + stage) * 8;
}

// Has 128 columns of x and their scales copied, as stages become empty. One thread calls it.
DEVICE void copy_x(const frit_gemm_args &a, int first_row, int begin, int end, const char *shared, u32 barriers)
{
    const int x_rows = (a.n_rows + 7) / 8 * 8, n = min((end - begin) * 2, K / 128 - begin * 2);
    const u32 n_rows = (u32)min(ROWS, x_rows - first_row);
    wait_for_kernel_before();
    for (int i = 0; i < n; i++) {
        const int stage = i % X_STAGES;
        const long long at = (long long)(begin * 2 + i) * x_rows + first_row;
        barrier_wait(x_empty(barriers, stage), (i / X_STAGES + 1) % 2);   // the first waits end at once
        barrier_expect(x_full(barriers, stage), n_rows * 132);
        copy_bulk_more(shared_address(shared + X_AT) + stage * X_BYTES, (const char *)a.x + at * 128, n_rows * 128,
                       x_full(barriers, stage));
        copy_bulk_more(shared_address(shared + SCALES_AT) + stage * (ROWS * 4), (const float *)a.x_scales + at,
                       n_rows * 4, x_full(barriers, stage));
    }
}

// The fragments of 128 columns of a tile, four times 32.
DEVICE void read_fragments(const char *tile, int half, int lane, u32 (&a)[4][4])
{
#pragma unroll
    for (int pair = 0; pair < 2; pair++) {
        const uint4 *units = (const uint4 *)tile + (half * 2 + pair) * 64 + lane;
        const uint4 w = units[0], v = units[32];
        a[pair * 2][0] = w.x, a[pair * 2][1] = v.x, a[pair * 2][2] = w.y, a[pair * 2][3] = v.y;
        a[pair * 2 + 1][0] = w.z, a[pair * 2 + 1][1] = v.z, a[pair * 2 + 1][2] = w.w, a[pair * 2 + 1][3] = v.w;
    }
}

// Multiplies 128 columns of a tile by PART_ROWS rows of x from row `first` of the block on, and adds the scaled sums.
template <int FIRST>
DEVICE void multiply_part(const u32 (&a)[4][4], u64 rows, float d, float d8, const float *x_scales, int lane,
                          frag (&part)[PART_ROWS / 8], frag (&sums)[ROWS / 8])
{
    wgmma_begin();
#pragma unroll
    for (int i = 0; i < 4; i++) wgmma_e4m3(part, a[i], rows + FIRST * 128 / 16 + i * 2, i > 0);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_results(part);
#pragma unroll
    for (int n = 0; n < PART_ROWS / 8; n++) {
        const float2 x = *(const float2 *)(x_scales + FIRST + n * 8 + lane % 4 * 2);
        frag &sum = sums[FIRST / 8 + n];
        sum.v[0] += part[n].v[0] * x.x * d;
        sum.v[1] += part[n].v[1] * x.y * d;
        sum.v[2] += part[n].v[2] * x.x * d8;
        sum.v[3] += part[n].v[3] * x.y * d8;
    }
}

DEVICE void multiply(tile_ring<TYPE_FP8_128> &ring, char *shared, u32 barriers, frag (&sums)[TILES][ROWS / 8])
{
    const float times = f16_tile<TYPE_FP8_128>::times;   // which gemm_store.cuh undoes
    const int lane = threadIdx.x % 32, first = ring.block, n_blocks = ring.end - ring.block;
    frag part[PART_ROWS / 8];
#pragma unroll
    for (int n = 0; n < PART_ROWS / 8; n++) part[n] = frag{{0, 0, 0, 0}};
    ring.start(lane);
    for (int block = 0; block < n_blocks; block++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            if (K % 256 != 0 && (first + block) * 256 + half * 128 >= K) break;   // of the last block
            const int stage = (block * 2 + half) % X_STAGES;
            const u64 rows = wgmma_rows(shared_address(shared + X_AT + stage * X_BYTES));
            const float *x_scales = (const float *)(shared + SCALES_AT) + stage * ROWS;
            barrier_wait(x_full(barriers, stage), (block * 2 + half) / X_STAGES % 2);
#pragma unroll
            for (int i = 0; i < TILES; i++) {
                u32 a[4][4];
                read_fragments(ring.at(i), half, lane, a);
                const float d = scale_of_e4m3(ring.at(i), lane / 4, half) * times,
                            d8 = scale_of_e4m3(ring.at(i), lane / 4 + 8, half) * times;
                multiply_part<0>(a, rows, d, d8, x_scales, lane, part, sums[i]);
                if constexpr (PART_ROWS < ROWS)
                    multiply_part<PART_ROWS>(a, rows, d, d8, x_scales, lane, part, sums[i]);
            }
            __syncwarp();
            if (lane == 0) barrier_arrive(x_empty(barriers, stage));
        }
        ring.advance(lane);
    }
}

// Computes row tiles from `first` on of a segment, whose results begin at number `at` of a row.
DEVICE void run(const frit_gemm_args &a, frit_gpu_ptr weights, int n_tiles, int first, int first_row, int at,
                char *shared)
{
    const int warp = threadIdx.x / 32, split = blockIdx.y;
    const int begin = BLOCKS * split / SPLITS, end = BLOCKS * (split + 1) / SPLITS;
    const u32 barriers = shared_address(shared);
    if (threadIdx.x == 0) {
        for (int i = 0; i < X_STAGES; i++) {
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
    tile_ring<TYPE_FP8_128> ring = {(const char *)weights,
                                    shared + TILES_AT + warp * STAGES * tile_ring<TYPE_FP8_128>::bytes,
                                    tiles_full(barriers, warp, 0),
                                    n_tiles,
                                    first + warp * TILES,
                                    begin,
                                    end};
    multiply(ring, shared, barriers, sums);
    wait_for_kernel_before();
    if constexpr (GATED)
        store_gated<TYPE_FP8_128>(a, n_tiles, first, first_row, sums, shared + X_AT);
    else
        store_sums<TYPE_FP8_128>(a, split, n_tiles, first + warp * TILES, first_row, at, sums);
}

extern "C" __global__ void __launch_bounds__(THREADS, AT_ONCE) gemm_fp8(const frit_gemm_args a)
{
    extern __shared__ __align__(1024) char shared[];
    const int n_row_blocks = (a.n_rows + ROWS - 1) / ROWS;
    const int group = blockIdx.x / n_row_blocks, first_row = blockIdx.x % n_row_blocks * ROWS;
    let_next_kernel_start();
    if (group < GROUPS0)
        run(a, a.weights[0], TILES0, group * GROUP, first_row, 0, shared);
    else if constexpr (TILES1 > 0)
        run(a, a.weights[1], TILES1, (group - GROUPS0) * GROUP, first_row, TILES0 * 16, shared);
}
