// SPDX-License-Identifier: MIT
// For kernels over whole rows: reductions over a block of threads, and loads and stores of 16- or 32-bit numbers.
#pragma once
#include "args.h"
#include "ptx.cuh"

#define NUMBERS_F32  0
#define NUMBERS_F16  1
#define NUMBERS_BF16 2

// Returns the sum over all threads of a block, at most 1024, to each of them. `shared`: 33 floats, which may be reused
// after the next __syncthreads.
DEVICE float block_sum(float x, float *shared)
{
    x = warp_sum(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x < 32) {
        const float all = warp_sum(threadIdx.x < (blockDim.x + 31) / 32 ? shared[threadIdx.x] : 0);
        if (threadIdx.x == 0) shared[32] = all;
    }
    __syncthreads();
    return shared[32];
}

// Returns the largest number of all threads of a block; numbers are not negative. `shared`: 33 floats.
DEVICE float block_max(float x, float *shared)
{
    x = warp_max(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x < 32) {
        const float all = warp_max(threadIdx.x < (blockDim.x + 31) / 32 ? shared[threadIdx.x] : 0);
        if (threadIdx.x == 0) shared[32] = all;
    }
    __syncthreads();
    return shared[32];
}

// The largest and the sum of all threads' non-negative numbers. `shared`: 66 floats.
DEVICE float2 block_max_and_sum(float largest, float sum, float *shared)
{
    largest = warp_max(largest);
    sum = warp_sum(sum);
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = largest, shared[33 + threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        const bool is_warp = threadIdx.x < (blockDim.x + 31) / 32;
        largest = warp_max(is_warp ? shared[threadIdx.x] : 0);
        sum = warp_sum(is_warp ? shared[33 + threadIdx.x] : 0);
        if (threadIdx.x == 0) shared[32] = largest, shared[65] = sum;
    }
    __syncthreads();
    return make_float2(shared[32], shared[65]);
}

DEVICE float square_of(const float4 &v)
{
    return v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
}

DEVICE float largest_of(const float4 &v)
{
    return fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
}

// Four numbers from index i on; i is a multiple of 4.
template <int KIND> DEVICE float4 load_four(const void *from, long long i)
{
    if (KIND == NUMBERS_F32) return *(const float4 *)((const float *)from + i);
    const uint2 v = *(const uint2 *)((const u16 *)from + i);
    if (KIND == NUMBERS_F16) return make_float4(low_half(v.x), high_half(v.x), low_half(v.y), high_half(v.y));
    return make_float4(__uint_as_float(v.x << 16), __uint_as_float(v.x & 0xffff0000), __uint_as_float(v.y << 16),
                       __uint_as_float(v.y & 0xffff0000));
}

template <int KIND> DEVICE void store_four(void *to, long long i, const float4 &v)
{
    if (KIND == NUMBERS_F32) *(float4 *)((float *)to + i) = v;
    if (KIND == NUMBERS_F16) *(uint2 *)((u16 *)to + i) = make_uint2(pack_half2(v.x, v.y), pack_half2(v.z, v.w));
    if (KIND == NUMBERS_BF16) *(uint2 *)((u16 *)to + i) = make_uint2(pack_bf16x2(v.x, v.y), pack_bf16x2(v.z, v.w));
}
