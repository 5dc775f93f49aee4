// SPDX-License-Identifier: MIT
// Activations of rows:
//
//     GATED        y = f(gate) * value; each 16 numbers of x are 8 gates and 8 values (FRIT_CUDA_ORDER_GATED)
//     otherwise    y = f(x + b)
//
// A thread computes 8 numbers. Grid: rows, ceil(WIDTH / 8 / 256).
//
// Defined by the host: WIDTH (numbers of a row of y, a multiple of 8), FUNCTION, GATED, HAS_BIAS (not GATED), IN, OUT
// (NUMBERS_..).
#include "activation.cuh"
#include "rows.cuh"

extern "C" __global__ void __launch_bounds__(256) glu_rows(const frit_glu_args a)
{
    const int unit = blockIdx.y * 256 + threadIdx.x;
    const long long eight = (long long)blockIdx.x * (WIDTH / 8) + unit;
    let_next_kernel_start();
    wait_for_kernel_before();
    if (unit >= WIDTH / 8) return;
    const long long from = eight * (GATED ? 16 : 8);
    float x[8], y[8];
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
        const float4 v = load_four<IN>((const void *)a.x, from + i);
        x[i] = v.x, x[i + 1] = v.y, x[i + 2] = v.z, x[i + 3] = v.w;
        if (GATED) {
            const float4 w = load_four<IN>((const void *)a.x, from + 8 + i);
            y[i] = w.x, y[i + 1] = w.y, y[i + 2] = w.z, y[i + 3] = w.w;
        }
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        if (HAS_BIAS) x[i] += ((const float *)a.bias)[unit * 8 + i];
        x[i] = GATED ? activate<FUNCTION>(x[i]) * y[i] : activate<FUNCTION>(x[i]);
    }
    store_four<OUT>((void *)a.y, eight * 8, make_float4(x[0], x[1], x[2], x[3]));
    store_four<OUT>((void *)a.y, eight * 8 + 4, make_float4(x[4], x[5], x[6], x[7]));
}
