// SPDX-License-Identifier: MIT
// Kernels for bench_gpu: a measurement of the speed of reading memory, and random weights made on the GPU.
#include "probe_args.h"
#include "ptx.cuh"

// Reads n_bytes, 16 at a time. The write, which hardly ever happens, keeps the compiler from removing the reads.
extern "C" __global__ void __launch_bounds__(512) read_all(const bench_probe_args a)
{
    const uint4 *in = (const uint4 *)a.in;
    const u64 n = a.n_bytes / 16, stride = (u64)gridDim.x * blockDim.x;
    u32 sum = 0;
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + 3 * stride < n; i += 4 * stride) {
        const uint4 a0 = __ldcs(in + i), a1 = __ldcs(in + i + stride), a2 = __ldcs(in + i + 2 * stride),
                    a3 = __ldcs(in + i + 3 * stride);
        sum += (a0.x ^ a0.y ^ a0.z ^ a0.w) + (a1.x ^ a1.y ^ a1.z ^ a1.w) + (a2.x ^ a2.y ^ a2.z ^ a2.w) +
               (a3.x ^ a3.y ^ a3.z ^ a3.w);
    }
    for (; i < n; i += stride) {
        const uint4 v = in[i];
        sum += v.x ^ v.y ^ v.z ^ v.w;
    }
    if (sum == 0x12345678u) *(u32 *)a.out = sum;
}

DEVICE u32 hash(u64 x)
{
    x ^= x >> 31;
    x *= 0x7fb5d329728ea185ull;
    x ^= x >> 27;
    x *= 0x81dadef4bc2dd44dull;
    return (u32)(x >> 32);
}

// Fills memory with random bytes.
extern "C" __global__ void __launch_bounds__(512) fill_bytes(const bench_probe_args a)
{
    const u64 n = a.n_bytes / 4, stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        ((u32 *)a.out)[i] = hash(i ^ (u64)a.seed << 40);
}

// n_bytes / 4 f32 from -scale to scale.
extern "C" __global__ void __launch_bounds__(512) fill_floats(const bench_probe_args a)
{
    const u64 n = a.n_bytes / 4, stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        ((float *)a.out)[i] = ((float)(hash(i ^ (u64)a.seed << 40) >> 8) / 8388608.f - 1) * a.scale;
}

// n_bytes / 2 numbers from -scale to scale, in bf16, or f16 if `in` is 1.
extern "C" __global__ void __launch_bounds__(512) fill_16_bits(const bench_probe_args a)
{
    const u64 n = a.n_bytes / 4, stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        const u32 h = hash(i ^ (u64)a.seed << 40);
        const float x = ((h & 0xffff) / 32768.f - 1) * a.scale, y = ((h >> 16) / 32768.f - 1) * a.scale;
        ((u32 *)a.out)[i] = a.in ? pack_half2(x, y) : pack_bf16x2(x, y);
    }
}

// The f16 scales of tiles of random bytes: in each TILE bytes, COUNT scales from FIRST on, STEP bytes apart.
#ifdef TILE
extern "C" __global__ void __launch_bounds__(256) fill_scales(const bench_probe_args a)
{
    const u64 n = a.n_bytes / TILE * COUNT, stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        const float x = a.scale * (0.75f + (hash(i ^ (u64)a.seed << 40) >> 8) / 33554432.f);
        *(u16 *)((char *)a.out + i / COUNT * TILE + FIRST + i % COUNT * STEP) = float_to_half(x);
    }
}
#endif
