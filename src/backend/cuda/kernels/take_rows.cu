// SPDX-License-Identifier: MIT
// Copies rows of an f32 matrix by their indices. Grid: rows; 256 threads.
//
// Defined by the host: WIDTH (a multiple of 4).
#include "rows.cuh"

extern "C" __global__ void __launch_bounds__(256) take_rows(const frit_take_rows_args a)
{
    let_next_kernel_start();
    wait_for_kernel_before();
    const float4 *from = (const float4 *)((const float *)a.from + (long long)((const int *)a.rows)[blockIdx.x] * WIDTH);
    float4 *to = (float4 *)((float *)a.x + (long long)blockIdx.x * WIDTH);
    for (int i = threadIdx.x; i < WIDTH / 4; i += 256) to[i] = from[i];
}
