// SPDX-License-Identifier: MIT
// Ops without a fast kernel: one kernel for each, as the formulas of graph/ops.def say, for sizes that are known when
// it is launched. In kernels of numbers a thread computes one number of y; in kernels of rows a warp computes a row.
//
// frit_plain_args says for each kernel which sizes are meant. 256 threads; the grid covers n.
#include "activation.cuh"
#include "args.h"
#include "turns.cuh"

#define INFINITE __uint_as_float(0x7f800000)

DEVICE const float *from(const frit_plain_args &a, int i)
{
    return (const float *)a.x[i];
}

DEVICE float *to(const frit_plain_args &a)
{
    return (float *)a.y;
}

DEVICE long long number()
{
    return (long long)blockIdx.x * 256 + threadIdx.x;
}

DEVICE long long row_of_warp()
{
    return (long long)blockIdx.x * 8 + threadIdx.x / 32;
}

DEVICE float exact_act(int act, float x)
{
    switch (act) {
    case ACT_SILU: return x / (1 + expf(-x));
    case ACT_GELU: return activate<ACT_GELU>(x);
    case ACT_GELU_TANH: return 0.5f * x * (1 + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)));
    case ACT_GELU_QUICK: return x / (1 + expf(-1.702f * x));
    case ACT_RELU: return activate<ACT_RELU>(x);
    case ACT_RELU2: return activate<ACT_RELU2>(x);
    case ACT_SIGMOID: return 1 / (1 + expf(-x));
    case ACT_TANH: return tanhf(x);
    default: return fmaxf(x, 0) + log1pf(expf(-fabsf(x)));
    }
}

// ------------------------------------------------------------------------------- numbers

// size[0]: numbers of x1, which repeats.
extern "C" __global__ void __launch_bounds__(256) plain_add(const frit_plain_args a)
{
    const long long i = number();
    if (i < a.n) to(a)[i] = from(a, 0)[i] + from(a, 1)[i % a.size[0]];
}

extern "C" __global__ void __launch_bounds__(256) plain_mul(const frit_plain_args a)
{
    const long long i = number();
    if (i < a.n) to(a)[i] = from(a, 0)[i] * from(a, 1)[i % a.size[0]];
}

// factor[0]
extern "C" __global__ void __launch_bounds__(256) plain_scale(const frit_plain_args a)
{
    const long long i = number();
    if (i < a.n) to(a)[i] = from(a, 0)[i] * a.factor[0];
}

extern "C" __global__ void __launch_bounds__(256) plain_softcap(const frit_plain_args a)
{
    const long long i = number();
    if (i < a.n) to(a)[i] = a.factor[0] * tanhf(from(a, 0)[i] / a.factor[0]);
}

// factor[0], factor[1]: low, high
extern "C" __global__ void __launch_bounds__(256) plain_clamp(const frit_plain_args a)
{
    const long long i = number();
    if (i < a.n) to(a)[i] = fminf(fmaxf(from(a, 0)[i], a.factor[0]), a.factor[1]);
}

// size[0]: frit_act
extern "C" __global__ void __launch_bounds__(256) plain_act(const frit_plain_args a)
{
    const long long i = number();
    if (i < a.n) to(a)[i] = exact_act(a.size[0], from(a, 0)[i]);
}

extern "C" __global__ void __launch_bounds__(256) plain_glu(const frit_plain_args a)
{
    const long long i = number();
    if (i < a.n) to(a)[i] = exact_act(a.size[0], from(a, 0)[i]) * from(a, 1)[i];
}

// factor: positive, negative, beta, eps
extern "C" __global__ void __launch_bounds__(256) plain_xielu(const frit_plain_args a)
{
    const long long i = number();
    if (i >= a.n) return;
    const float x = from(a, 0)[i];
    to(a)[i] = x > 0 ? a.factor[0] * x * x + a.factor[2] * x
                     : a.factor[1] * (expm1f(fminf(x, a.factor[3])) - x) + a.factor[2] * x;
}

// size: numbers of a row of y, of x; the first one of x
extern "C" __global__ void __launch_bounds__(256) plain_slice(const frit_plain_args a)
{
    const long long i = number();
    if (i < a.n) to(a)[i] = from(a, 0)[i / a.size[0] * a.size[1] + a.size[2] + i % a.size[0]];
}

// size: numbers of a row of x0, of x1; rows of x0 that share one of x1
extern "C" __global__ void __launch_bounds__(256) plain_concat(const frit_plain_args a)
{
    const long long i = number();
    if (i >= a.n) return;
    const int width = a.size[0] + a.size[1], at = (int)(i % width);
    const long long row = i / width;
    to(a)[i] = at < a.size[0] ? from(a, 0)[row * a.size[0] + at]
                              : from(a, 1)[row / a.size[2] * a.size[1] + at - a.size[0]];
}

// size[0]: numbers of a row
extern "C" __global__ void __launch_bounds__(256) plain_scale_rows(const frit_plain_args a)
{
    const long long i = number();
    if (i < a.n) to(a)[i] = from(a, 0)[i] * from(a, 1)[i / a.size[0]];
}

// x1: i32, the row of x0 of each row of y; size[0]: numbers of a row
extern "C" __global__ void __launch_bounds__(256) plain_take_rows(const frit_plain_args a)
{
    const long long i = number();
    if (i < a.n) to(a)[i] = from(a, 0)[(long long)((const int *)a.x[1])[i / a.size[0]] * a.size[0] + i % a.size[0]];
}

// ------------------------------------------------------------------------------- rows

// x0, x1: weight or 0, x2: bias or 0; size: numbers of a row, whether the mean is taken off; factor[0]: epsilon
extern "C" __global__ void __launch_bounds__(256) plain_norm(const frit_plain_args a)
{
    const long long row = row_of_warp();
    if (row >= a.n) return;
    const int lane = threadIdx.x % 32, width = a.size[0];
    const float *x = from(a, 0) + row * width;
    float sum = 0, squares = 0;
    if (a.size[1]) {
        for (int i = lane; i < width; i += 32) sum += x[i];
        sum = warp_sum(sum) / width;
    }
    for (int i = lane; i < width; i += 32) squares += (x[i] - sum) * (x[i] - sum);
    const float factor = 1 / sqrtf(warp_sum(squares) / width + a.factor[0]);
    for (int i = lane; i < width; i += 32) {
        float y = (x[i] - sum) * factor;
        if (a.x[1]) y *= from(a, 1)[i];
        if (a.x[2]) y += from(a, 2)[i];
        to(a)[row * width + i] = y;
    }
}

DEVICE float warp_largest(float x)
{
#pragma unroll
    for (int i = 16; i > 0; i /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, i));
    return x;
}

// size[0]: numbers of a row
extern "C" __global__ void __launch_bounds__(256) plain_softmax(const frit_plain_args a)
{
    const long long row = row_of_warp();
    if (row >= a.n) return;
    const int lane = threadIdx.x % 32, width = a.size[0];
    const float *x = from(a, 0) + row * width;
    float largest = -INFINITE, sum = 0;
    for (int i = lane; i < width; i += 32) largest = fmaxf(largest, x[i]);
    largest = warp_largest(largest);
    for (int i = lane; i < width; i += 32) sum += expf(x[i] - largest);
    sum = warp_sum(sum);
    for (int i = lane; i < width; i += 32) to(a)[row * width + i] = expf(x[i] - largest) / sum;
}

// ------------------------------------------------------------------------------- positions

// x0 [rows, heads, dim], x1: i32 positions, x2: f32 [turned / 2] angles of position 1, x3: f32 [turned / 2] that divide
// them, or 0; size: heads, dim, dimensions that turn, the first of them, whether they turn in halves;
// factor[0]: magnitude
extern "C" __global__ void __launch_bounds__(256) plain_rope(const frit_plain_args a)
{
    const long long i = number();
    if (i >= a.n) return;
    const int dim = a.size[1], turned = a.size[2], d = (int)(i % dim) - a.size[3];
    const float *x = from(a, 0);
    if (d < 0 || d >= turned) {
        to(a)[i] = x[i];
        return;
    }
    const int half = turned / 2, pair = a.size[4] ? d % half : d / 2, is_second = a.size[4] ? d >= half : d % 2;
    const int step = a.size[4] ? half : 1;
    const double frequency = from(a, 2)[pair] / (a.x[3] ? from(a, 3)[pair] : 1);
    const float2 turn = turn_of(((const int *)a.x[1])[i / dim / a.size[0]], frequency, a.factor[0]);
    to(a)[i] = is_second ? x[i - step] * turn.y + x[i] * turn.x : x[i] * turn.x - x[i + step] * turn.y;
}

// ------------------------------------------------------------------------------- the cache

DEVICE void cache_store(const frit_gpu_side &s, long long page, int head, int position, int d, float v)
{
    const long long at = s.is_transposed ? (long long)(head * s.dim + d) * 32 + position % 32
                                         : (long long)(head * 32 + position % 32) * s.row + d;
    char *to = (char *)s.pages + page * s.page_bytes;
    if (s.kind == 0) ((float *)to)[at] = v;
    if (s.kind == 1) ((u16 *)to)[at] = float_to_half(v);
    if (s.kind == 2) ((u16 *)to)[at] = (u16)pack_bf16x2(v, 0);
}

DEVICE float cache_load(const frit_gpu_side &s, long long page, int head, int position, int d)
{
    const long long at = s.is_transposed ? (long long)(head * s.dim + d) * 32 + position % 32
                                         : (long long)(head * 32 + position % 32) * s.row + d;
    const char *from = (const char *)s.pages + page * s.page_bytes;
    if (s.kind == 0) return ((const float *)from)[at];
    if (s.kind == 1) return half_to_float(((const u16 *)from)[at]);
    return __uint_as_float((u32)((const u16 *)from)[at] << 16);
}

// Keys and values of new positions: a thread for each number of a position.
extern "C" __global__ void __launch_bounds__(256) plain_kv_write(const frit_cache_args a)
{
    const int each = a.n_heads * (a.keys.dim + (a.v ? a.values.dim : 0));
    const long long i = number(), row = i / each;
    if (row >= a.n_rows) return;
    const int position = ((const int *)a.positions)[row], at = (int)(i % each), n_keys = a.n_heads * a.keys.dim;
    const long long page = ((const int *)a.pages)[((const int *)a.seq_of)[row] * a.page_stride + position / 32];
    if (at < n_keys)
        cache_store(a.keys, page, at / a.keys.dim, position, at % a.keys.dim, ((const float *)a.k)[row * n_keys + at]);
    else
        cache_store(a.values, page, (at - n_keys) / a.values.dim, position, (at - n_keys) % a.values.dim,
                    ((const float *)a.v)[row * a.n_heads * a.values.dim + at - n_keys]);
}

#define SPAN 128   // positions at a time

// ALiBi: the slope of a head (graph.h).
DEVICE float slope_of(float alibi, int head, int n_heads)
{
    int n = 1;
    while (2 * n <= n_heads) n *= 2;
    const float step = -alibi / n;
    return exp2f(head < n ? step * (head + 1) : step / 2 * (2 * (head - n) + 1));
}

// A block of 128 threads for each row and head. Positions come SPAN at a time: a thread has the score of one, then
// some dimensions of the sum.
extern "C" __global__ void __launch_bounds__(128, 4) plain_attend(const frit_attend_plain_args a)
{
    __shared__ float weights[SPAN], shared_max[4], shared_sum[4];
    extern __shared__ __align__(128) char shared[];
    const int row = blockIdx.x, head = blockIdx.y, thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int n_heads = gridDim.y, seq_of = ((const int *)a.seq_of)[row], position = ((const int *)a.positions)[row];
    const frit_gpu_seq seq = ((const frit_gpu_seq *)a.seqs)[seq_of];
    const int *pages = (const int *)a.pages + seq_of * a.page_stride;
    const int kv_head = head / (n_heads / a.n_kv_heads), k_dim = a.keys.dim, v_dim = a.values.dim;
    float *q = (float *)shared;
    for (int d = thread; d < k_dim; d += 128) q[d] = ((const float *)a.q)[((long long)row * n_heads + head) * k_dim + d];
    // The positions that are seen: [begin, end).
    int begin = 0, end = position + 1;
    if (a.is_cross) end = seq.n_source;
    if (a.is_bidirectional) {
        end = seq.n_past + seq.n_rows;
        if (a.window) begin = position - a.window / 2, end = min(end, position + a.window / 2 + 1);
    } else if (!a.is_cross) {
        if (a.window) begin = position - a.window + 1;
        if (a.chunk) begin = position / a.chunk * a.chunk;
    }
    begin = max(begin, 0);
    float scale = a.scale, largest = -INFINITE, total = 0, sums[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    if (a.temp_scale != 0) scale *= 1 + a.temp_scale * logf(1 + floorf((position + a.temp_offset) / a.temp_length));
    const float slope = slope_of(a.alibi, head, n_heads);
    __syncthreads();
    for (int first = begin; first < end; first += SPAN) {
        const int p = first + thread;
        float score = -INFINITE;
        if (p < end) {
            score = 0;
            const long long page = pages[p / 32];
            for (int d = 0; d < k_dim; d++) score += q[d] * cache_load(a.keys, page, kv_head, p, d);
            score *= scale;
            if (a.softcap != 0) score = a.softcap * tanhf(score / a.softcap);
            if (a.gains) {
                const int far = min(max(p - position, -a.reach), a.reach) + a.reach;
                score += ((const float *)a.gains)[head * (2 * a.reach + 1) + far];
            }
            if (a.alibi != 0) score -= slope * fabsf((float)(p - position));
        }
        float most = score;
#pragma unroll
        for (int i = 16; i > 0; i /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, i));
        if (lane == 0) shared_max[warp] = most;
        __syncthreads();
        const float before = largest;
        for (int i = 0; i < 4; i++) largest = fmaxf(largest, shared_max[i]);
        const float shrink = before == -INFINITE ? 0 : expf(before - largest), weight = p < end ? expf(score - largest) : 0;
        weights[thread] = weight;
        const float sum = warp_sum(weight);
        if (lane == 0) shared_sum[warp] = sum;
        __syncthreads();
        total = total * shrink + shared_sum[0] + shared_sum[1] + shared_sum[2] + shared_sum[3];
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const int d = thread + j * 128;
            if (d >= v_dim) continue;
            sums[j] *= shrink;
            for (int i = 0; i < SPAN && first + i < end; i++)
                sums[j] += weights[i] * cache_load(a.values, pages[(first + i) / 32], kv_head, first + i, d);
        }
        __syncthreads();
    }
    if (a.sinks) {   // one more score, of a value 0
        const float sink = ((const float *)a.sinks)[head], before = largest;
        largest = fmaxf(largest, sink);
        const float shrink = before == -INFINITE ? 0 : expf(before - largest);
        total = total * shrink + expf(sink - largest);
#pragma unroll
        for (int j = 0; j < 8; j++) sums[j] *= shrink;
    }
#pragma unroll
    for (int j = 0; j < 8; j++) {
        const int d = thread + j * 128;
        if (d < v_dim) ((float *)a.out)[((long long)row * n_heads + head) * v_dim + d] = sums[j] / total;
    }
}

// ------------------------------------------------------------------------------- experts

// x1: route; size: numbers of a row, experts of a row
extern "C" __global__ void __launch_bounds__(256) plain_gather_experts(const frit_plain_args a)
{
    const long long i = number();
    if (i >= a.n) return;
    const long long at = i / a.size[0];   // assignment
    const int expert = (int)from(a, 1)[at / a.size[1] * 2 * a.size[1] + at % a.size[1]];
    to(a)[i] = from(a, 0)[(long long)expert * a.size[0] + i % a.size[0]];
}

// x1: route, x2: residual or 0; size: numbers of a row, experts of a row, whether rows are not multiplied with weights
extern "C" __global__ void __launch_bounds__(256) plain_mix(const frit_plain_args a)
{
    const long long i = number();
    if (i >= a.n) return;
    const long long row = i / a.size[0];
    const float *weights = from(a, 1) + row * 2 * a.size[1] + a.size[1];
    float sum = 0;
    for (int k = 0; k < a.size[1]; k++)
        sum += from(a, 0)[(row * a.size[1] + k) * a.size[0] + i % a.size[0]] * (a.size[2] ? 1 : weights[k]);
    to(a)[i] = a.x[2] ? from(a, 2)[i] + sum : sum;
}
