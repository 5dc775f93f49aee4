// SPDX-License-Identifier: MIT
// Reading the results of a gemm, which gemm_small.cu may leave as several partial results.
#pragma once
#include "ptx.cuh"

// Adds the parts, `stride` numbers apart, in their order. All parts are loaded before the first is added: with few
// rows, nothing else hides the latency of memory.
#define PARTS_AT_ONCE 7

DEVICE float sum_of_parts(const float *x, long long stride, int n_parts)
{
    float sum = *x;
    for (int first = 1; first < n_parts; first += PARTS_AT_ONCE) {
        float v[PARTS_AT_ONCE];
#pragma unroll
        for (int i = 0; i < PARTS_AT_ONCE; i++)
            if (first + i < n_parts) v[i] = x[(first + i) * stride];
#pragma unroll
        for (int i = 0; i < PARTS_AT_ONCE; i++)
            if (first + i < n_parts) sum += v[i];
    }
    return sum;
}

DEVICE float4 sum_of_four(const float *x, long long stride, int n_parts)
{
    float4 sum = *(const float4 *)x;
    for (int first = 1; first < n_parts; first += PARTS_AT_ONCE) {
        float4 v[PARTS_AT_ONCE];
#pragma unroll
        for (int i = 0; i < PARTS_AT_ONCE; i++)
            if (first + i < n_parts) v[i] = *(const float4 *)(x + (first + i) * stride);
#pragma unroll
        for (int i = 0; i < PARTS_AT_ONCE; i++)
            if (first + i < n_parts) sum.x += v[i].x, sum.y += v[i].y, sum.z += v[i].z, sum.w += v[i].w;
    }
    return sum;
}
