// SPDX-License-Identifier: MIT
// Attention of a decode step as a kernel of its own. Grid: ALL_QUERY_TILES * SPLITS, rows.
#include "attend.cuh"

extern "C" __global__ void __launch_bounds__(ATTEND_WARPS * 32) attend(const frit_attend_args a)
{
    __shared__ float shared[ATTEND_SHARED_FLOATS];
    __shared__ int is_last;
    const int row = blockIdx.y, tile = blockIdx.x / SPLITS, split = blockIdx.x % SPLITS;
    let_next_kernel_start();
    // Positions, pages and old keys and values are there: the kernel before lets this one start only after its own
    // wait.
    const part_pages pages = attend_pages(a, row, split);
    if (split >= pages.n_active) return;   // the same for the whole block
    attend_prefetch(a, pages, row, tile);
    wait_for_kernel_before();
    attend_part(a, pages, row, tile, split, shared, &is_last);
}
