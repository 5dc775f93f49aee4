// SPDX-License-Identifier: MIT
// Attention of a decode step (attend.cuh). Grid: ALL_QUERY_TILES * SPLITS, rows.
#include "attend.cuh"

extern "C" __global__ void __launch_bounds__(ATTEND_WARPS * 32) attend(const frit_attend_args a)
{
    __shared__ float parts[ATTEND_SHARED_FLOATS];
    __shared__ int is_last;
    const int row = blockIdx.y, tile = blockIdx.x / SPLITS, split = blockIdx.x % SPLITS;
    let_next_kernel_start();
    // Positions, pages and old keys and values can be read before the wait: the kernel before starts this one only
    // after its own wait.
    const part_pages pages = attend_pages(a, row, split);
    if (split >= pages.n_active) return;   // uniform over the block
#if ATTEND_STAGES
    extern __shared__ __align__(128) char shared[];
    const int head = tile / QUERY_TILES;
    page_ring ring = pages_open(pages, shared);
    // Rows of the step may be consecutive positions of a sequence, whose keys and values are still being written.
    const int n_old = max(pages.n_positions - (int)gridDim.y, 0) / 32;
    pages_fill(ring, a, pages_of_row(a, row), head, min(pages.end, n_old));
    wait_for_kernel_before();
    pages_fill(ring, a, pages_of_row(a, row), head, pages.end);
    attend_part(a, pages, row, tile, split, parts, &is_last, &ring);
#else
    attend_prefetch(a, pages, row, tile);
    wait_for_kernel_before();
    attend_part(a, pages, row, tile, split, parts, &is_last);
#endif
}
