// SPDX-License-Identifier: MIT
// The product of some_rows.cu by the tensor cores' asynchronous instructions (sm_90): four warps multiply 64 rows of
// weights, fragments of f16 in their registers, with all rows, which the tensor cores read from shared memory
// themselves. While they do, the warps turn the next 16 columns of their tiles into fragments.
//
//     out[split][row][16 * tile + r] = sum over the split's columns of weights[tile][r][column] * x[row][column]
//
// A lane's four codes of a row are neighbours (some_rows.cuh), so of 16 columns 4 t ... 4 t + 3 take the places 2 t,
// 2 t + 1, 2 t + 8, 2 t + 9 in rows too: of the words that threads bring every second one goes into either half.
//
// Grid: groups of WARPS row tiles, those of the second segment last; SPLITS. Defined by the host: TYPE0, TILES0, TYPE1,
// TILES1, K, ROWS (16, 32, 64, 128), WARPS (a multiple of 4), SPLITS, STAGES (of tiles), IN_FLIGHT (products that are
// not waited for), SHARED_BYTES, HALF_MATH.
#undef TILES
#define TILES   1
#define X_BYTES 0   // rows have two buffers of their own
#include "some_rows.cuh"

#define GROUPS0 ((TILES0 + GROUP - 1) / GROUP)
#define BUFFER  (ROWS / 8 * WIDE_STRIDE)
#define THREADS (WARPS * 32)
#define PIECES  ((ROWS * 32 + THREADS - 1) / THREADS)   // 8 columns of a row, of 256, that a thread brings

static_assert(SHARED_BYTES >= 2 * BUFFER + STAGES * stage_of<TYPE0>::bytes &&
                  SHARED_BYTES >= 2 * BUFFER + STAGES * stage_of<TYPE1>::bytes,
              "the host counts shared memory as it is laid out here");
static_assert(WIDE_STRIDE == 512 * 8, "rows of 256 columns");

// ------------------------------------------------------------------------------- rows

// Two threads side by side bring 32 bytes of a row, and eight such pairs as many rows: they write 128 bytes side by side.
// Not through the L1, which may have what was there before the kernel that made the rows.
struct row_pieces {
    uint4 v[PIECES];
    static DEVICE int row_of(int piece)
    {
        return piece / 256 * 8 + piece / 2 % 8;
    }
    static DEVICE int column_of(int piece)
    {
        return piece / 16 % 16 * 16 + piece % 2 * 8;
    }
    DEVICE void load(const frit_some_args &a, int block)
    {
#pragma unroll
        for (int i = 0; i < PIECES; i++) {
            const int piece = threadIdx.x + i * THREADS, column = block * 256 + column_of(piece);
            const int row = min(row_of(piece), a.n_rows - 1);
            const bool is_there = K % 256 == 0 || column < K;
            v[i] = is_there ? __ldcg((const uint4 *)((const u16 *)a.x + (long long)row * K + column))
                            : make_uint4(0, 0, 0, 0);
        }
    }
    DEVICE void store(char *buffer) const
    {
#pragma unroll
        for (int i = 0; i < PIECES; i++) {
            const int piece = threadIdx.x + i * THREADS;
            if (ROWS * 32 % THREADS && piece >= ROWS * 32) continue;
            char *to = buffer + piece / 256 * WIDE_STRIDE + piece / 16 % 16 * 256 + piece % 16 * 8;
            *(uint2 *)to = make_uint2(v[i].x, v[i].z);
            *(uint2 *)(to + 128) = make_uint2(v[i].y, v[i].w);
        }
    }
};

// ------------------------------------------------------------------------------- the product

// 256 columns of a warp's tile with rows in a buffer.
template <int TYPE> DEVICE void multiply_columns(const char *tile, const char *rows, int lane, frag (&sums)[ROWS / 8])
{
    const u32 x = shared_address(rows);
    halves_of<TYPE> weights;
    weights.load(tile, lane);
#pragma unroll
    for (int pair = 0; pair < 4; pair++) {
        weights.pair(tile, lane, pair);
#pragma unroll
        for (int step = 0; step < 4; step++) {
            u32 w[4];
            weights.fragment(pair, step / 2, step % 2, w);
            wide_begin();
            wide_add<ROWS>(sums, w, x + (pair * 4 + step) * 256);
            wide_end();
            wide_wait<IN_FLIGHT>();
        }
    }
    wide_wait<0>();
    wide_keep(sums);
}

// Row tiles first ... of a segment, whose results begin at number `at` of a row.
template <int TYPE>
DEVICE void multiply(const frit_some_args &a, frit_gpu_ptr weights, int n_tiles, int first, int at, char *shared)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, split = blockIdx.y;
    const int begin = BLOCKS * split / SPLITS, end = BLOCKS * (split + 1) / SPLITS;
    const char *tiles = (const char *)weights;
    char *own = shared + 2 * BUFFER;
    frag sums[ROWS / 8];
    row_pieces pieces;
#pragma unroll
    for (int n = 0; n < ROWS / 8; n++) sums[n] = frag{{0, 0, 0, 0}};
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) {   // while rows are still being made
        if (begin + i < end)
            fetch_tiles<TYPE>(tiles, n_tiles, first, begin + i, shared_address(own + i * stage_of<TYPE>::bytes));
        copy_commit();
    }
    wait_for_kernel_before();
    pieces.load(a, begin);
    pieces.store(shared);
    if (begin + 1 < end) pieces.load(a, begin + 1);
    for (int block = begin, stage = 0, buffer = 0; block < end; block++, buffer = !buffer) {
        copy_wait<STAGES - 2>();
        wide_show();
        __syncthreads();   // and all warps are done with what is overwritten now
        const int ahead = block + STAGES - 1, free = stage ? stage - 1 : STAGES - 1;
        if (ahead < end)
            fetch_tiles<TYPE>(tiles, n_tiles, first, ahead, shared_address(own + free * stage_of<TYPE>::bytes));
        copy_commit();
        if (block + 1 < end) pieces.store(shared + !buffer * BUFFER);
        if (block + 2 < end) pieces.load(a, block + 2);
        multiply_columns<TYPE>(own + stage * stage_of<TYPE>::bytes + warp * stage_of<TYPE>::tile,
                               shared + buffer * BUFFER, lane, sums);
        if (++stage == STAGES) stage = 0;
    }
    const int width = (TILES0 + TILES1) * 16, tile = first + warp;
    float *out = (float *)a.out + (long long)split * a.n_rows * width + at;
    if (tile >= n_tiles) return;
#pragma unroll
    for (int n = 0; n < ROWS / 8; n++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int row = n * 8 + lane % 4 * 2 + j % 2;
            if (row < a.n_rows)
                out[(long long)row * width + tile * 16 + lane / 4 + j / 2 * 8] =
                    sums[n].v[j] * (1.f / halves_of<TYPE>::times);
        }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) wide_rows(const frit_some_args a)
{
    extern __shared__ __align__(128) char shared[];
    const int group = blockIdx.x;
    let_next_kernel_start();
    if (group < GROUPS0)
        multiply<TYPE0>(a, a.weights[0], TILES0, group * GROUP, 0, shared);
    else if constexpr (TILES1 > 0)
        multiply<TYPE1>(a, a.weights[1], TILES1, (group - GROUPS0) * GROUP, TILES0 * 16, shared);
}
