// SPDX-License-Identifier: MIT
// The start of a step: the vector of each row's token, and with ROTATED the cosines and sines of its position. Grid:
// rows; 256 threads.
//
// Defined by the host: TYPE0 (of the table, as tiles), DIM, ROTATED (rotated dimensions of a head, or 0).
#include "args.h"
#include "numbers.cuh"
#include "rotation.cuh"

extern "C" __global__ void __launch_bounds__(256) embed_rows(const frit_embed_rows_args a)
{
    const int row = blockIdx.x;
    let_next_kernel_start();
    wait_for_kernel_before();
    const int given = ((const int *)a.tokens)[row], position = ((const int *)a.positions)[row];
    const int token = given < 0 ? __ldcg((const int *)a.picked + ~given) : given;
    embed_numbers<TYPE0, DIM>(a.table, token, (float *)a.x + (long long)row * DIM, a.scale);
    for (int i = threadIdx.x; i < ROTATED / 2; i += 256)
        ((float2 *)a.rope)[(long long)row * (ROTATED / 2) + i] =
            rotation_of(position, ((const double *)a.frequency)[i], a.magnitude);
}
