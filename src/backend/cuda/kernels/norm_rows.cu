// SPDX-License-Identifier: MIT
// Norms of rows. A block of threads for each row.
//
//     y = norm(x) * w + b
//     SUM: r = r + norm(x) * w + b; y is not written        the norm of a layer's output, added to the residual
//     SCALED: y is a gemm's input (slabs.cuh): f16, each row scaled by a power of two (gemm.cu). Also stores the sum of
//             the row's squares, which bounds its products
//     JOINS: x is first computed from the results of a gemm and a residual, as by finish_rows
//
// Defined by the host: THREADS, WIDTH (numbers of a row, a multiple of 4), IS_LAYER (1: layer norm; 0: RMS norm),
// HAS_WEIGHT, HAS_BIAS, IN, OUT (NUMBERS_..), SUM, SCALED, JOINS (IN is NUMBERS_F32 then).
#include "parts.cuh"
#include "rows.cuh"
#include "slabs.cuh"

#define EACH ((WIDTH / 4 + THREADS - 1) / THREADS)   // units of four numbers of a thread

// Computes four numbers of x, and writes them for other kernels.
DEVICE float4 join_four(const frit_norm_args &a, long long row, int four)
{
    const float factor = a.product_scales ? ((const float *)a.product_scales)[row] : 1;
    const float4 p =
        sum_of_four((const float *)a.product + row * a.stride + four * 4, gridDim.x * (long long)a.stride, a.n_parts);
    const float4 r = *(const float4 *)((const float *)a.residual + row * WIDTH + four * 4);
    const float4 x = make_float4(p.x * factor + r.x, p.y * factor + r.y, p.z * factor + r.z, p.w * factor + r.w);
    store_four<NUMBERS_F32>((void *)a.x, row * WIDTH + four * 4, x);
    return x;
}

extern "C" __global__ void __launch_bounds__(THREADS) norm_rows(const frit_norm_args a)
{
    __shared__ float shared[66];
    const long long row = blockIdx.x;
    float4 v[EACH];
    float sum = 0;
    let_next_kernel_start();
    wait_for_kernel_before();
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int four = i * THREADS + threadIdx.x;
        v[i] = make_float4(0, 0, 0, 0);
        if (four < WIDTH / 4)
            v[i] = JOINS ? join_four(a, row, four) : load_four<IN>((const void *)a.x, row * WIDTH + four * 4);
        sum += v[i].x + v[i].y + v[i].z + v[i].w;
    }
    const float mean = IS_LAYER ? block_sum(sum, shared) / WIDTH : 0;
    float squares = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        if (i * THREADS + threadIdx.x >= WIDTH / 4) continue;
        v[i].x -= mean, v[i].y -= mean, v[i].z -= mean, v[i].w -= mean;
        squares += square_of(v[i]);
    }
    const float factor = rsqrtf(block_sum(squares, shared) / WIDTH + a.epsilon);
    float largest = 0;
    squares = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int at = (i * THREADS + threadIdx.x) * 4;
        if (at >= WIDTH) continue;
        float4 y = make_float4(v[i].x * factor, v[i].y * factor, v[i].z * factor, v[i].w * factor);
        if (HAS_WEIGHT) {
            const float4 w = *(const float4 *)((const float *)a.weight + at);
            y.x *= w.x, y.y *= w.y, y.z *= w.z, y.w *= w.w;
        }
        if (HAS_BIAS) {
            const float4 b = *(const float4 *)((const float *)a.bias + at);
            y.x += b.x, y.y += b.y, y.z += b.z, y.w += b.w;
        }
        if (SCALED) {
            v[i] = y;
            largest = fmaxf(largest, largest_of(y));
            squares += square_of(y);
        } else if (SUM) {
            const float4 r = *(const float4 *)((const float *)a.residual + row * WIDTH + at);
            store_four<NUMBERS_F32>((void *)a.residual, row * WIDTH + at,
                                    make_float4(r.x + y.x, r.y + y.y, r.z + y.z, r.w + y.w));
        } else {
            store_four<OUT>((void *)a.y, row * WIDTH + at, y);
        }
    }
    if (!SCALED) return;
    const float2 whole = block_max_and_sum(largest, squares, shared);
    const float scale = half_scale(whole.x);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int at = (i * THREADS + threadIdx.x) * 4;
        if (at >= WIDTH) continue;
        store_input_four((void *)a.y, a.slab_rows, (int)row, at, WIDTH, v[i].x * scale, v[i].y * scale, v[i].z * scale,
                         v[i].w * scale);
    }
    if (threadIdx.x == 0) {
        ((float *)a.scales)[row] = 1 / scale;
        ((float *)a.squares)[row] = whole.y;
    }
}
