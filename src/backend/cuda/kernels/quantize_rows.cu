// SPDX-License-Identifier: MIT
// Quantizes the input of gemm_fp8.cu: each 128 columns of a row become e4m3 with a scale, so that the largest magnitude
// is 448. A slab is 128 columns of all rows, in the order of shared memory (wgmma.cuh). Rows after the last are zeros.
//
// A warp for 128 columns of a row. Grid: slab_rows * n_slabs / 8; 256 threads.
#include "args.h"
#include "slabs.cuh"
#include "wgmma.cuh"

extern "C" __global__ void __launch_bounds__(256) quantize_rows(const frit_quantize_args a)
{
    const int lane = threadIdx.x % 32, of = blockIdx.x * 8 + threadIdx.x / 32;
    const int slab = of / a.slab_rows, row = of % a.slab_rows;
    let_next_kernel_start();
    wait_for_kernel_before();
    if (slab >= a.n_slabs) return;   // uniform over the warp
    u32 first = 0, second = 0;
    if (row < a.n_rows) {
        const int column = slab * 128 + lane * 4;
        first = *slab_pair((void *)a.x, a.slab_rows, row, column);
        second = *slab_pair((void *)a.x, a.slab_rows, row, column + 2);
    }
    const float v[4] = {low_half(first), high_half(first), low_half(second), high_half(second)};
    const float largest = warp_max(fmaxf(fmaxf(fabsf(v[0]), fabsf(v[1])), fmaxf(fabsf(v[2]), fabsf(v[3]))));
    const float factor = largest > 0 ? 448 / largest : 0;
    *(u32 *)((char *)a.y + ((long long)slab * a.slab_rows + row) * 128 + (lane / 4 ^ row % 8) * 16 + lane % 4 * 4) =
        four_e4m3(v[0] * factor, v[1] * factor, v[2] * factor, v[3] * factor);
    if (lane == 0) ((float *)a.scales)[(long long)slab * a.slab_rows + row] = largest * (1 / 448.f);
}
