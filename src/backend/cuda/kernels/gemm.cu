// SPDX-License-Identifier: MIT
// Before and after a gemm. convert_rows converts rows to f16, each scaled by a power of two that brings its largest
// number near 2^10, so that no number leaves f16's range. finish_rows adds partial results, multiplies them by the
// factor that undoes the scale, and adds a residual, or multiplies activated gates by values.
#include "activation.cuh"
#include "parts.cuh"
#include "rows.cuh"
#include "slabs.cuh"

// A block of threads for each row. Grid: rows; 256 threads.
extern "C" __global__ void __launch_bounds__(256) convert_rows(const frit_convert_args a)
{
    __shared__ float shared[33];
    const long long row = blockIdx.x;
    let_next_kernel_start();
    wait_for_kernel_before();
    float largest = 0;
    for (int i = (int)threadIdx.x * 4; i < a.width; i += 1024) {
        const float4 v = load_four<NUMBERS_F32>((const void *)a.x, row * a.width + i);
        largest = fmaxf(largest, largest_of(v));
    }
    const float scale = half_scale(block_max(largest, shared));
    for (int i = (int)threadIdx.x * 4; i < a.width; i += 1024) {
        const float4 v = load_four<NUMBERS_F32>((const void *)a.x, row * a.width + i);
        store_input_four((void *)a.y, a.slab_rows, (int)row, i, a.width, v.x * scale, v.y * scale, v.z * scale,
                         v.w * scale);
    }
    if (threadIdx.x == 0) ((float *)a.scales)[row] = 1 / scale;
}

// A thread for each number. Grid: numbers / 256.
extern "C" __global__ void __launch_bounds__(256) finish_rows(const frit_finish_args a)
{
    const long long i = (long long)blockIdx.x * 256 + threadIdx.x;
    let_next_kernel_start();
    wait_for_kernel_before();
    if (i >= a.n) return;
    const long long row = i / a.width;
    const int at = (int)(i % a.width);
    const long long part = a.n / a.width * a.stride;
    const float *x = (const float *)a.x + row * a.stride, factor = a.scales ? ((const float *)a.scales)[row] : 1;
    float y;
    if (a.is_gated) {
        x += at / 8 * 16 + at % 8;
        const float gate = sum_of_parts(x, part, a.n_parts) * factor,
                    value = sum_of_parts(x + 8, part, a.n_parts) * factor;
        y = activate<ACT_SILU>(gate) * value;
    } else {
        y = sum_of_parts(x + at, part, a.n_parts) * factor;
    }
    if (a.residual) y += ((const float *)a.residual)[i];
    ((float *)a.y)[i] = y;
}
