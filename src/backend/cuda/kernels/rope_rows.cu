// SPDX-License-Identifier: MIT
// The rope table: cosines and sines for each row's position, shared by all layers that rotate alike. Grid: rows; 128
// threads.
//
// Defined by the host: ROTATED (rotated dimensions of a head).
#include "args.h"
#include "rotation.cuh"

extern "C" __global__ void __launch_bounds__(128) rope_rows(const frit_rope_rows_args a)
{
    const int row = blockIdx.x, position = ((const int *)a.positions)[row];
    const float *frequency = (const float *)a.frequency, *factor = (const float *)a.factor;
    let_next_kernel_start();
    wait_for_kernel_before();
    for (int i = threadIdx.x; i < ROTATED / 2; i += 128) {
        const double f = (double)frequency[i] / (factor ? factor[i] : 1);
        ((float2 *)a.rope)[(long long)row * (ROTATED / 2) + i] = rotation_of(position, f, a.magnitude);
    }
}
