// SPDX-License-Identifier: MIT
// The start of a decode step: the token that the step before picked becomes the row's input, its position moves on by
// one, and the rotation of that position is computed once for all layers.
//
// Defined before: TYPE_TABLE (of the token table, as tiles), DIM, HEAD, TOKEN_STRIDE.
#pragma once
#include "args.h"
#include "numbers.cuh"
#include "rotation.cuh"

// By a whole block of threads, at least HEAD / 2.
DEVICE void embed_row(const frit_embed_args &a, int row)
{
    const int thread = threadIdx.x;
    const u64 key = __ldcg((const u64 *)a.best + row);
    const int position = __ldcg((const int *)a.positions + row) + 1;
    const int token =
        key ? (int)(0xffffffffu - (u32)key) : __ldcg((const int *)a.tokens + row * TOKEN_STRIDE + position);
    embed_numbers<TYPE_TABLE, DIM>(a.table, token, (float *)a.x + (long long)row * DIM, 1);
    if (thread < HEAD / 2)
        ((float2 *)a.rope)[row * (HEAD / 2) + thread] = turn_of(position, ((const double *)a.frequency)[thread], 1);
    __syncthreads();
    if (thread == 0) {
        ((int *)a.tokens)[row * TOKEN_STRIDE + position] = token;
        ((int *)a.positions)[row] = position;
        ((u64 *)a.best)[row] = 0;
    }
}
