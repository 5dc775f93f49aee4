// SPDX-License-Identifier: MIT
// Exchanges of a group of GPUs: REDUCE, y = the sum of the ranks' x and a residual, and GATHER, y = their parts side by
// side. PART, y = the rank's part of x, needs no other rank.
//
// A block of threads sends pieces of x into the buffers of the other ranks (args.h), each followed by a flag, and takes
// the same pieces of the others from its own buffer. While a piece is on its way, the block sends the next one. All
// ranks launch the same kernels in the same order with the same grid, so block b of a rank meets blocks b of the others
// only. A stage is written again after four pieces: by then the other ranks have sent three more pieces, so they have
// read it. The flags count on from launch to launch, so that a recorded graph can be replayed.
//
// A rank that waits for eight seconds ends the kernel with an error.
//
// Large sums are sent in half of the bytes, unless PACKED is 0: four neighbours share a power of two, and have 14 bits
// each. A rank rounds its own numbers too, so that the sums of all ranks have the same bits.
//
// Grid: at most EXCHANGE_BLOCKS, which all run at the same time; 512 threads. Defined by the host: RANKS, PACKED.
#include "args.h"
#include "ptx.cuh"

enum {
    UNIT = FRIT_GPU_EXCHANGE_UNIT,
    THREADS = UNIT / 4,
    PIECE = FRIT_GPU_EXCHANGE_UNITS * UNIT,
    BLOCKS = FRIT_GPU_EXCHANGE_BLOCKS,
    STAGES = FRIT_GPU_EXCHANGE_STAGES,
    SMALL = FRIT_GPU_EXCHANGE_SMALL
};

DEVICE float *piece_in(const frit_exchange_args &a, int buffer, int rank, u32 count)
{
    return (float *)a.buffers[buffer] +
           ((long long)(count % STAGES * RANKS + rank) * BLOCKS + blockIdx.x) * PIECE + threadIdx.x * 4;
}

DEVICE u32 *flag_in(const frit_exchange_args &a, int buffer, int rank)
{
    return (u32 *)(a.buffers[buffer] + FRIT_GPU_EXCHANGE_DATA_BYTES(RANKS)) + rank * BLOCKS + blockIdx.x;
}

// The place of the number of pieces that this block has sent in earlier launches.
DEVICE u32 *count_of(const frit_exchange_args &a)
{
    return flag_in(a, a.rank, RANKS);
}

// Numbers i ... i + 3 of n; those that are not there are 0.
DEVICE float4 load_numbers(const float *from, long long i, long long n)
{
    const float *x = from + i;
    if (i + 3 < n) return *(const float4 *)x;
    return make_float4(i < n ? x[0] : 0, i + 1 < n ? x[1] : 0, i + 2 < n ? x[2] : 0, 0);
}

DEVICE float4 load_x(const frit_exchange_args &a, long long i)
{
    return load_numbers((const float *)a.x, i, a.n);
}

// Rounds x to 14 bits of the power of two above the largest of four numbers. Numbers below 2^-115 become 0. An exponent
// of 255 says that one is not finite.
DEVICE u32 exponent_of(const float4 &x)
{
    const float most = fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fmaxf(fabsf(x.z), fabsf(x.w)));
    const bool is_finite = x.x - x.x == 0 && x.y - x.y == 0 && x.z - x.z == 0 && x.w - x.w == 0;
    return is_finite ? max(12u, __float_as_uint(most) >> 23) : 255;
}

DEVICE u32 round_14(float x, float factor)
{
    return (u32)max(-8191, min(8191, __float2int_rn(x * factor))) & 0x3fff;
}

DEVICE uint2 pack(const float4 &x)
{
    const u32 e = exponent_of(x);
    const float factor = __uint_as_float((266 - e) << 23);   // 2^(139 - e)
    return make_uint2(round_14(x.x, factor) | round_14(x.y, factor) << 14 | e << 28,
                      round_14(x.z, factor) | round_14(x.w, factor) << 14 | e >> 4 << 28);
}

DEVICE float4 unpack(const uint2 &p)
{
    const u32 e = p.x >> 28 | p.y >> 28 << 4;
    const float factor = __uint_as_float(e == 255 ? 0x7fc00000 : (e - 12) << 23);   // 2^(e - 139)
    return make_float4((float)((int)(p.x << 18) >> 18) * factor, (float)((int)(p.x << 4) >> 18) * factor,
                       (float)((int)(p.y << 18) >> 18) * factor, (float)((int)(p.y << 4) >> 18) * factor);
}

// Where a thread's packed numbers of a unit lie in a piece.
DEVICE uint2 *packed_in(float *piece, int unit)
{
    return (uint2 *)(piece - threadIdx.x * 4) + unit * THREADS + threadIdx.x;
}

// Sends numbers i ... i + 3 of each thread, and of each further unit, as piece number `count`.
template <bool PACKS> DEVICE void send(const frit_exchange_args &a, long long i, u32 count)
{
    for (int unit = 0; unit < a.n_units; unit++) {
        const float4 x = load_x(a, i + unit * UNIT);
        const uint2 packed = PACKS ? pack(x) : make_uint2(0, 0);
#pragma unroll
        for (int r = 0; r < RANKS; r++) {
            if (r == a.rank) continue;
            float *const piece = piece_in(a, r, a.rank, count);
            if (PACKS)
                *packed_in(piece, unit) = packed;
            else
                *(float4 *)(piece + unit * UNIT) = x;
        }
    }
    fence_for_peers();
    __syncthreads();
    if (threadIdx.x < RANKS && (int)threadIdx.x != a.rank) set_flag(flag_in(a, threadIdx.x, a.rank), count + 1);
}

DEVICE void await(const frit_exchange_args &a, u32 count)
{
    if (threadIdx.x < RANKS && (int)threadIdx.x != a.rank) wait_for_flag(flag_in(a, a.rank, threadIdx.x), count + 1);
    __syncthreads();
}

// Adds what the ranks have, and the residual, for numbers i ... i + 3.
DEVICE void store_sum(const frit_exchange_args &a, long long i, float4 (&of)[RANKS])
{
#pragma unroll
    for (int step = 1; step < RANKS; step *= 2)
#pragma unroll
        for (int r = 0; r + step < RANKS; r += 2 * step) {
            of[r].x += of[r + step].x, of[r].y += of[r + step].y;
            of[r].z += of[r + step].z, of[r].w += of[r + step].w;
        }
    if (a.residual) {
        const float4 r = load_numbers((const float *)a.residual, i, a.n);
        of[0].x += r.x, of[0].y += r.y, of[0].z += r.z, of[0].w += r.w;
    }
    float *y = (float *)a.y + i;
    if (i + 3 < a.n) {
        *(float4 *)y = of[0];
        return;
    }
    if (i < a.n) y[0] = of[0].x;
    if (i + 1 < a.n) y[1] = of[0].y;
    if (i + 2 < a.n) y[2] = of[0].z;
}

// `take` finishes numbers i ... i + 3, of piece number `count`, in which they lie from number `at` on.
struct reduce {
    static const bool packs = PACKED;
    static DEVICE void take(const frit_exchange_args &a, long long i, u32 count, int at)
    {
        float4 of[RANKS];
#pragma unroll
        for (int r = 0; r < RANKS; r++) {
            const float *const piece = piece_in(a, a.rank, r, count);
            if (r == a.rank)
                of[r] = PACKED ? unpack(pack(load_x(a, i))) : load_x(a, i);
            else if (PACKED)
                of[r] = unpack(__ldcg(packed_in((float *)piece, at / UNIT)));
            else
                of[r] = __ldcg((const float4 *)(piece + at));
        }
        store_sum(a, i, of);
    }
};

struct gather {
    static const bool packs = false;
    static DEVICE void take(const frit_exchange_args &a, long long i, u32 count, int at)
    {
        for (int part = 0; part < a.n_parts; part++) {
            const int r = part * RANKS / a.n_parts;
            const float4 v = r == a.rank ? load_x(a, i) : __ldcg((const float4 *)(piece_in(a, a.rank, r, count) + at));
            const float x[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int k = 0; k < 4; k++)
                if (i + k < a.n) {
                    const long long outer = (i + k) / a.inner, rest = (i + k) % a.inner;
                    ((float *)a.y)[(outer * a.n_parts + part) * a.inner + rest] = x[k];
                }
        }
    }
};

template <class OP> DEVICE void exchange(const frit_exchange_args &a)
{
    const u32 begin = *count_of(a);
    const long long piece = a.n_units * UNIT, begins = blockIdx.x * piece, step = gridDim.x * piece;
    const long long first = begins + threadIdx.x * 4;
    const u32 n = begins < a.n ? (u32)((a.n - begins + step - 1) / step) : 0;
    for (u32 k = 0; k <= n; k++) {
        if (k < n) send<OP::packs>(a, first + k * step, begin + k);
        if (k == 0) continue;
        await(a, begin + k - 1);
        for (int unit = 0; unit < a.n_units; unit++)
            OP::take(a, first + (k - 1) * step + unit * UNIT, begin + k - 1, unit * UNIT);
    }
    __syncthreads();
    if (threadIdx.x == 0) *count_of(a) = begin + n;
}

extern "C" __global__ void __launch_bounds__(THREADS) exchange_reduce(const frit_exchange_args __grid_constant__ a)
{
    let_next_kernel_start();
    wait_for_kernel_before();
    exchange<reduce>(a);
}

extern "C" __global__ void __launch_bounds__(THREADS) exchange_gather(const frit_exchange_args __grid_constant__ a)
{
    let_next_kernel_start();
    wait_for_kernel_before();
    exchange<gather>(a);
}

// A small piece of another rank: numbers with flags beside them, so that no fence and no other flag is needed.
DEVICE uint4 *small_in(const frit_exchange_args &a, int buffer, int rank, u32 count)
{
    const long long at = (count % 2 * RANKS + rank) * SMALL + blockIdx.x;
    return (uint4 *)(a.buffers[buffer] + FRIT_GPU_EXCHANGE_SMALL_AT(RANKS)) + (at * THREADS + threadIdx.x) * 2;
}

// REDUCE of few numbers, a unit for each block. A rank sends its next piece only when it has received this one, which
// the others send after they have read the one before: two places are enough.
extern "C" __global__ void __launch_bounds__(THREADS) exchange_small(const frit_exchange_args __grid_constant__ a)
{
    const long long i = (long long)blockIdx.x * UNIT + threadIdx.x * 4;
    u32 *const count = (u32 *)(a.buffers[a.rank] + FRIT_GPU_EXCHANGE_SMALL_AT(RANKS)) - SMALL + blockIdx.x;
    let_next_kernel_start();
    wait_for_kernel_before();
    const u32 n = *(volatile u32 *)count, flag = n + 1;
    const float4 own = load_x(a, i);
    float4 of[RANKS];
#pragma unroll
    for (int r = 0; r < RANKS; r++)
        if (r != a.rank) {
            uint4 *const to = small_in(a, r, a.rank, n);
            send_with_flags(to, __float_as_uint(own.x), __float_as_uint(own.y), flag);
            send_with_flags(to + 1, __float_as_uint(own.z), __float_as_uint(own.w), flag);
        }
#pragma unroll
    for (int r = 0; r < RANKS; r++) {
        of[r] = own;
        if (r == a.rank) continue;
        const uint4 *const from = small_in(a, a.rank, r, n);
        const uint2 low = take_with_flags(from, flag), high = take_with_flags(from + 1, flag);
        of[r] = make_float4(__uint_as_float(low.x), __uint_as_float(low.y), __uint_as_float(high.x),
                            __uint_as_float(high.y));
    }
    store_sum(a, i, of);
    __syncthreads();
    if (threadIdx.x == 0) *count = flag;
}

// n: numbers of y. A thread for each.
extern "C" __global__ void __launch_bounds__(THREADS) exchange_part(const frit_exchange_args __grid_constant__ a)
{
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    let_next_kernel_start();
    wait_for_kernel_before();
    if (i >= a.n) return;
    const int part = a.rank * a.n_parts / RANKS;
    ((float *)a.y)[i] = ((const float *)a.x)[(i / a.inner * a.n_parts + part) * a.inner + i % a.inner];
}
