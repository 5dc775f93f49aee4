// SPDX-License-Identifier: MIT
// The kernels that add the terms of adapters to products and hidden states (graph/adapt.h). A row of the step has the
// adapters for which its sequence has a scale that is not 0. In a row of h, the numbers of its adapters follow each
// other by adapter index.
#include "args.h"
#include "ptx.cuh"

DEVICE float number_at(frit_gpu_ptr p, int kind, long long i)
{
    if (kind == FRIT_GPU_CACHE_F32) return ((const float *)p)[i];
    if (kind == FRIT_GPU_CACHE_F16) return half_to_float(((const u16 *)p)[i]);
    return __uint_as_float((u32)((const u16 *)p)[i] << 16);
}

// The row of the batch that is row t of the node.
DEVICE int row_of_batch(const frit_adapt_args &a, int t)
{
    return a.out_rows ? ((const int *)a.out_rows)[t] : t;
}

DEVICE const float *scales_of(const frit_adapt_args &a, int t)
{
    return (const float *)a.scales + (long long)((const int *)a.seq_of)[row_of_batch(a, t)] * a.n_adapters;
}

// Iterates over the adapters of a row at the matrix. first: index of the adapter's numbers in a row of h.
struct walk {
    int adapter, first;
    float scale;
    frit_gpu_low_rank part;

    DEVICE walk() : adapter(-1), first(0), part() {}

    DEVICE bool next(const frit_adapt_args &a, const float *scales)
    {
        first += part.rank;
        while (++adapter < a.n_loaded) {
            part = ((const frit_gpu_low_rank *)a.table)[(long long)adapter * a.stride + a.index];
            scale = part.scale * scales[adapter];
            if (part.a && scale != 0) return true;
        }
        return false;
    }
};

// h[t, first + j] = scale * sum_i x[t, i] a[j, i]. If x are token ids, the sum is a row of a [tokens, rank]. A warp for
// each number.
extern "C" __global__ void __launch_bounds__(256) adapt_down(const frit_adapt_args a)
{
    const int t = blockIdx.x, lane = threadIdx.x % 32, at = blockIdx.y * 8 + threadIdx.x / 32;
    const float *scales = scales_of(a, t);
    walk w;
    while (w.next(a, scales)) {
        const int j = at - w.first;
        if (j < 0 || j >= w.part.rank || at >= a.n_h) continue;
        float sum = 0;
        if (a.is_lookup) {
            const int token = ((const int *)a.x)[t], id = token < 0 ? ((const int *)a.picked)[~token] : token;
            sum = number_at(w.part.a, w.part.kind_a, (long long)id * w.part.rank + j);
        } else {
            const float *x = (const float *)a.x + (long long)t * a.width;
            for (int i = lane; i < a.width; i += 32)
                sum += x[i] * number_at(w.part.a, w.part.kind_a, (long long)j * a.width + i);
            sum = warp_sum(sum);
        }
        if (lane == 0) ((float *)a.y)[(long long)t * a.n_h + at] = w.scale * sum;
    }
}

// y[t, o] = x[t, o] + sum_j h[t, first + j] b[j, first_row + o]; x may be y. A thread for each number.
extern "C" __global__ void __launch_bounds__(256) adapt_up(const frit_adapt_args a)
{
    const int t = blockIdx.x, o = blockIdx.y * 256 + threadIdx.x;
    if (o >= a.width) return;
    const float *scales = scales_of(a, t), *h = (const float *)a.h + (long long)t * a.n_h;
    float sum = ((const float *)a.x)[(long long)t * a.width + o];
    walk w;
    while (w.next(a, scales))
        for (int j = 0; j < w.part.rank && w.first + j < a.n_h; j++)
            sum += h[w.first + j] *
                   number_at(w.part.b, w.part.kind_b, (long long)j * w.part.n_b + a.first_row + o);
    ((float *)a.y)[(long long)t * a.width + o] = sum;
}

// y[t, :] = x[t, :] + sum over adapters of scale * direction of the layer.
extern "C" __global__ void __launch_bounds__(256) adapt_steer(const frit_adapt_args a)
{
    const int t = blockIdx.x, o = blockIdx.y * 256 + threadIdx.x;
    if (o >= a.width) return;
    const float *scales = scales_of(a, t);
    float sum = ((const float *)a.x)[(long long)t * a.width + o];
    for (int adapter = 0; adapter < a.n_loaded; adapter++) {
        const frit_gpu_ptr direction = ((const frit_gpu_ptr *)a.table)[(long long)adapter * a.stride + a.index];
        if (direction && scales[adapter] != 0) sum += scales[adapter] * ((const float *)direction)[o];
    }
    ((float *)a.y)[(long long)t * a.width + o] = sum;
}
