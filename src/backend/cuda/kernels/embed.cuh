// SPDX-License-Identifier: MIT
// The start of a decode step: the token that the step before picked becomes the row's input, its position moves on by
// one, and the rotation of that position is computed once for all layers.
//
// Defined before: DIM, HEAD, TOKEN_STRIDE.
#pragma once
#include "args.h"
#include "ptx.cuh"

// By a whole block of threads, at least HEAD / 2.
DEVICE void embed_row(const frit_embed_args &a, int row)
{
    const int thread = threadIdx.x;
    const u64 key = __ldcg((const u64 *)a.best + row);
    const int position = __ldcg((const int *)a.positions + row) + 1;
    const int token =
        key ? (int)(0xffffffffu - (u32)key) : __ldcg((const int *)a.tokens + row * TOKEN_STRIDE + position);
    const uint2 *from = (const uint2 *)((const u16 *)a.table + (long long)token * DIM);
    float4 *x = (float4 *)((float *)a.x + (long long)row * DIM);
    for (int i = thread; i < DIM / 4; i += blockDim.x) {
        const uint2 v = from[i];
        x[i] = make_float4(__uint_as_float(v.x << 16), __uint_as_float(v.x & 0xffff0000), __uint_as_float(v.y << 16),
                           __uint_as_float(v.y & 0xffff0000));
    }
    if (thread < HEAD / 2) {   // in double: at large positions a float angle has lost its fraction
        const double turns = position * ((const double *)a.frequency)[thread] * 0.15915494309189535;
        const float angle = (float)(turns - floor(turns)) * 2;   // in half turns
        float sine, cosine;
        sincospif(angle, &sine, &cosine);
        ((float2 *)a.rope)[row * (HEAD / 2) + thread] = make_float2(cosine, sine);
    }
    __syncthreads();
    if (thread == 0) {
        ((int *)a.tokens)[row * TOKEN_STRIDE + position] = token;
        ((int *)a.positions)[row] = position;
        ((u64 *)a.best)[row] = 0;
    }
}
