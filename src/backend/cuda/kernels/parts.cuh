// SPDX-License-Identifier: MIT
// Results of a product of many rows, which may be left in several parts to be added (some_rows.cu).
#pragma once
#include "ptx.cuh"

// stride: from part to part.
DEVICE float sum_of_parts(const float *x, long long stride, int n_parts)
{
    float sum = *x;
    for (int i = 1; i < n_parts; i++) sum += x[i * stride];
    return sum;
}

DEVICE float4 sum_of_four(const float *x, long long stride, int n_parts)
{
    float4 sum = *(const float4 *)x;
    for (int i = 1; i < n_parts; i++) {
        const float4 v = *(const float4 *)(x + i * stride);
        sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    return sum;
}
