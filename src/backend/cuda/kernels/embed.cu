// SPDX-License-Identifier: MIT
// The start of a decode step as a kernel of its own. One block of threads for each row.
#include "embed.cuh"

extern "C" __global__ void __launch_bounds__(256) embed(const frit_embed_args a)
{
    let_next_kernel_start();
    wait_for_kernel_before();
    embed_row(a, blockIdx.x);
}
