// SPDX-License-Identifier: MIT
// Gates and values between two gemms: y = silu(gate) * value in f16, each row scaled by a power of two that brings its
// largest number near 2^10 (gemm.cu). Each 16 results are 8 gates and 8 values (FRIT_CUDA_ORDER_GATED). A block of
// threads for each row; a thread computes 4 numbers at a time.
//
// Defined by the host: WIDTH (numbers of a row of y, a multiple of 8), THREADS.
#include "activation.cuh"
#include "args.h"
#include "parts.cuh"
#include "rows.cuh"
#include "slabs.cuh"

#define EACH ((WIDTH / 4 + THREADS - 1) / THREADS)   // units of four numbers of a thread

extern "C" __global__ void __launch_bounds__(THREADS, 1) gate_rows(const frit_gate_args a)
{
    __shared__ float shared[33];
    const long long row = blockIdx.x, part = (long long)gridDim.x * a.stride;
    const float *x = (const float *)a.x + row * a.stride;
    float4 y[EACH];
    float largest = 0;
    let_next_kernel_start();
    wait_for_kernel_before();
    const float factor = a.product_scales ? ((const float *)a.product_scales)[row] : 1;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int at = (i * THREADS + threadIdx.x) * 4;
        if (at >= WIDTH) continue;
        const float *from = x + at / 8 * 16 + at % 8;
        const float4 g = sum_of_four(from, part, a.n_parts), v = sum_of_four(from + 8, part, a.n_parts);
        y[i] = make_float4(
            activate<ACT_SILU>(g.x * factor) * (v.x * factor), activate<ACT_SILU>(g.y * factor) * (v.y * factor),
            activate<ACT_SILU>(g.z * factor) * (v.z * factor), activate<ACT_SILU>(g.w * factor) * (v.w * factor));
        largest = fmaxf(largest, largest_of(y[i]));
    }
    const float scale = half_scale(block_max(largest, shared));
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int at = (i * THREADS + threadIdx.x) * 4;
        if (at >= WIDTH) continue;
        store_input_four((void *)a.y, a.slab_rows, (int)row, at, WIDTH, y[i].x * scale, y[i].y * scale, y[i].z * scale,
                         y[i].w * scale);
    }
    if (threadIdx.x == 0) ((float *)a.scales)[row] = 1 / scale;
}
