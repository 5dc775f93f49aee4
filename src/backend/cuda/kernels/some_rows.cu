// SPDX-License-Identifier: MIT
// A product of 17 to 128 rows in f16 with weights in tiles: too many for integers (phase.cuh), too few to turn weights
// into rows of f16 first (dequantize.cu). A warp has TILES row tiles of the weights and all rows; its weights become
// fragments of f16 in registers, rounded as dequantize.cu rounds them. Rows of 256 columns are fetched into shared
// memory for the whole block of threads, tiles for each warp, one step ahead.
//
//     out[split][row][16 * tile + r] = sum over the split's columns of weights[tile][r][column] * x[row][column]
//
// A lane's four codes of a row are neighbours (repack.h), so columns 4 t ... 4 t + 3 of 16 take the places 2 t, 2 t + 1,
// 2 t + 8, 2 t + 9 of a fragment, in weights and rows alike.
//
// Grid: groups of WARPS * TILES row tiles, those of the second segment last; SPLITS. Defined by the host: TYPE0, TILES0,
// TYPE1, TILES1, K, ROWS (a multiple of 8), TILES, WARPS, SPLITS, SHARED_BYTES.
#include "args.h"
#include "levels.cuh"

#define BLOCKS   ((K + 255) / 256)
#define GROUP    (WARPS * TILES)
#define GROUPS0  ((TILES0 + GROUP - 1) / GROUP)
#define X_STRIDE 544   // bytes of a row: 512, and 32 more so that the lanes of a load find different banks
#define X_BYTES  (ROWS * X_STRIDE)

template <int TYPE> struct stage_of {
    enum { tile = tile_of<TYPE>::bytes, bytes = X_BYTES + GROUP * tile };
};

static_assert(SHARED_BYTES >= 2 * stage_of<TYPE0>::bytes && SHARED_BYTES >= 2 * stage_of<TYPE1>::bytes,
              "the host counts shared memory as it is laid out here");

// ------------------------------------------------------------------------------- weights as f16

// Four levels as bytes, without a sign or with one, to 0 and 1, 2 and 3 as f16.
template <bool IS_SIGNED> DEVICE void four_halves(u32 levels, float scale, float min, u32 &first, u32 &second)
{
    const u32 word = IS_SIGNED ? levels ^ 0x80808080u : levels;
    const float center = IS_SIGNED ? 8388736.f : 8388608.f;   // 2^23, whose last bits are an integer
    float v[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        v[i] = scale * (__uint_as_float(__byte_perm(word, 0x4b000000u, 0x7540u | i)) - center) - min;
    first = pack_half2(v[0], v[1]);
    second = pack_half2(v[2], v[3]);
}

// Fragments of a tile: of its columns 64 * pair + 32 * odd + 16 * s.
template <int TYPE, int BITS = tile_of<TYPE>::low_bits> struct halves_of {
    typedef levels_of<TYPE> kind;
    scales_of<TYPE> row, row8;
    kind levels;
    u32 v[2][2][2];
    DEVICE void load(const char *tile, int lane)
    {
        row.load(tile, lane / 4);
        row8.load(tile, lane / 4 + 8);
        levels.load(tile, lane);
    }
    DEVICE void pair(const char *tile, int lane, int pair)
    {
        levels.pair(tile, lane, pair, v);
    }
    DEVICE void fragment(int pair, int odd, int s, u32 (&a)[4]) const
    {
        const int g = pair * 2 + odd;
        four_halves<kind::is_signed>(v[odd][s][0], row.scale(g, s), row.min(g, s), a[0], a[2]);
        four_halves<kind::is_signed>(v[odd][s][1], row8.scale(g, s), row8.min(g, s), a[1], a[3]);
    }
};

template <int TYPE> struct halves_of<TYPE, 16> {
    uint4 units[4];
    DEVICE void load(const char *, int)
    {
    }
    DEVICE void pair(const char *tile, int lane, int pair)
    {
#pragma unroll
        for (int i = 0; i < 4; i++) units[i] = ((const uint4 *)tile)[(pair * 4 + i) * 32 + lane];
    }
    DEVICE void fragment(int, int odd, int s, u32 (&a)[4]) const
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const u32 w = word_of(units[odd * 2 + s], i);
            a[i] = TYPE == TYPE_F16 ? w : pack_half2(__uint_as_float(w << 16), __uint_as_float(w & 0xffff0000u));
        }
    }
};

// ------------------------------------------------------------------------------- the product

// 256 columns of all rows, and of each warp's tiles, to their place.
template <int TYPE>
DEVICE void fetch(const frit_some_args &a, const char *tiles, int n_tiles, int first, int block, char *shared)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = block * 256;
    const u32 to = shared_address(shared);
    for (int i = threadIdx.x; i < ROWS * 32; i += WARPS * 32) {
        const int row = min(i / 32, a.n_rows - 1), at = i % 32;
        const int place = i / 32 * X_STRIDE + at * 16;
        if (K % 256 == 0 || column + at * 8 < K)
            copy_16(to + place, (const u16 *)a.x + (long long)row * K + column + at * 8);
        else
            *(uint4 *)(shared + place) = make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (int i = 0; i < TILES; i++) {
        const int bytes = stage_of<TYPE>::tile, tile = min(first + warp * TILES + i, n_tiles - 1);
        const char *from = tiles + ((long long)tile * BLOCKS + block) * bytes;
        for (int unit = lane; unit < bytes / 16; unit += 32)
            copy_16(to + X_BYTES + (warp * TILES + i) * bytes + unit * 16, from + unit * 16);
    }
}

template <int TYPE>
DEVICE void multiply_block(const char *shared, int warp, int lane, frag (&sums)[TILES][ROWS / 8])
{
    const char *x = shared + lane / 4 * X_STRIDE + lane % 4 * 8;
    const char *tile[TILES];
    halves_of<TYPE> weights[TILES];
#pragma unroll
    for (int i = 0; i < TILES; i++) {
        tile[i] = shared + X_BYTES + (warp * TILES + i) * stage_of<TYPE>::tile;
        weights[i].load(tile[i], lane);
    }
#pragma unroll
    for (int pair = 0; pair < 4; pair++) {
#pragma unroll
        for (int i = 0; i < TILES; i++) weights[i].pair(tile[i], lane, pair);
#pragma unroll
        for (int step = 0; step < 4; step++) {
            u32 w[TILES][4];
#pragma unroll
            for (int i = 0; i < TILES; i++) weights[i].fragment(pair, step / 2, step % 2, w[i]);
#pragma unroll
            for (int n = 0; n < ROWS / 8; n++) {
                const uint2 v = *(const uint2 *)(x + n * 8 * X_STRIDE + pair * 128 + step * 32);
#pragma unroll
                for (int i = 0; i < TILES; i++)
                    sums[i][n] = mma_f16(w[i][0], w[i][1], w[i][2], w[i][3], v.x, v.y, sums[i][n]);
            }
        }
    }
}

// Row tiles first ... of a segment, whose results begin at number `at` of a row.
template <int TYPE>
DEVICE void multiply(const frit_some_args &a, frit_gpu_ptr weights, int n_tiles, int first, int at, char *shared)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, split = blockIdx.y;
    const int begin = BLOCKS * split / SPLITS, end = BLOCKS * (split + 1) / SPLITS;
    const char *tiles = (const char *)weights;
    frag sums[TILES][ROWS / 8];
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int n = 0; n < ROWS / 8; n++) sums[i][n] = frag{{0, 0, 0, 0}};
    fetch<TYPE>(a, tiles, n_tiles, first, begin, shared);
    copy_commit();
    for (int block = begin, stage = 0; block < end; block++, stage ^= 1) {
        if (block + 1 < end)
            fetch<TYPE>(a, tiles, n_tiles, first, block + 1, shared + (stage ^ 1) * stage_of<TYPE>::bytes);
        copy_commit();
        copy_wait<1>();
        __syncthreads();
        multiply_block<TYPE>(shared + stage * stage_of<TYPE>::bytes, warp, lane, sums);
        __syncthreads();   // all warps are done with what is overwritten now
    }
    const int width = (TILES0 + TILES1) * 16;
    float *out = (float *)a.out + (long long)split * a.n_rows * width + at;
#pragma unroll
    for (int i = 0; i < TILES; i++) {
        const int tile = first + warp * TILES + i;
        if (tile >= n_tiles) continue;
#pragma unroll
        for (int n = 0; n < ROWS / 8; n++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int row = n * 8 + lane % 4 * 2 + j % 2;
                if (row < a.n_rows) out[(long long)row * width + tile * 16 + lane / 4 + j / 2 * 8] = sums[i][n].v[j];
            }
    }
}

extern "C" __global__ void __launch_bounds__(WARPS * 32) some_rows(const frit_some_args a)
{
    extern __shared__ __align__(128) char shared[];
    const int group = blockIdx.x;
    let_next_kernel_start();
    wait_for_kernel_before();
    if (group < GROUPS0)
        multiply<TYPE0>(a, a.weights[0], TILES0, group * GROUP, 0, shared);
    else if constexpr (TILES1 > 0)
        multiply<TYPE1>(a, a.weights[1], TILES1, (group - GROUPS0) * GROUP, TILES0 * 16, shared);
}
