// SPDX-License-Identifier: MIT
// Attention of a decode step as a kernel of its own. Grid: KV_HEADS * SPLITS, rows.
#include "attend.cuh"

extern "C" __global__ void __launch_bounds__(ATTEND_WARPS * 32) attend(const frit_attend_args a)
{
    __shared__ float shared[ATTEND_SHARED_FLOATS];
    __shared__ int is_last;
    let_next_kernel_start();
    wait_for_kernel_before();
    attend_part(a, blockIdx.y, blockIdx.x / SPLITS, blockIdx.x % SPLITS, shared, &is_last);
}
