// SPDX-License-Identifier: MIT
// Ops without a fast kernel: one kernel for each op, with the formula of graph/ops.def. Sizes are arguments, and each
// kernel's comment says which. In the section "numbers" a thread computes one number of y; in the section "rows" a warp
// computes a row. 256 threads; the grid covers n.
#include "activation.cuh"
#include "args.h"
#include "rotation.cuh"

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

// x1 repeats; size[0]: numbers of x1
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

// size: numbers of a row of y, of a row of x; index of the first number in x
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

// x1: 1 and the numbers of a row that takes the place of the row of x0, or 0; size[0]: numbers of a row
extern "C" __global__ void __launch_bounds__(256) plain_place_rows(const frit_plain_args a)
{
    const long long i = number();
    if (i >= a.n) return;
    const float *soft = from(a, 1) + i / a.size[0] * (a.size[0] + 1);
    to(a)[i] = soft[0] != 0 ? soft[1 + i % a.size[0]] : from(a, 0)[i];
}

// ------------------------------------------------------------------------------- rows

// x0, x1: weight or 0, x2: bias or 0; size: numbers of a row, 1: the mean is subtracted; factor[0]: epsilon
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

// Keeps what exceeds the mean by factor[0] standard deviations. size[0]: numbers of a row
extern "C" __global__ void __launch_bounds__(256) plain_gaussian_topk(const frit_plain_args a)
{
    const long long row = row_of_warp();
    if (row >= a.n) return;
    const int lane = threadIdx.x % 32, width = a.size[0];
    const float *x = from(a, 0) + row * width;
    float sum = 0, squares = 0;
    for (int i = lane; i < width; i += 32) sum += x[i];
    const float mean = warp_sum(sum) / width;
    for (int i = lane; i < width; i += 32) squares += (x[i] - mean) * (x[i] - mean);
    const float cut = mean + a.factor[0] * sqrtf(warp_sum(squares) / width);
    for (int i = lane; i < width; i += 32) to(a)[row * width + i] = fmaxf(x[i] - cut, 0);
}

// size[0]: numbers of a row; factor[0]: epsilon
extern "C" __global__ void __launch_bounds__(256) plain_rms_match(const frit_plain_args a)
{
    const long long row = row_of_warp();
    if (row >= a.n) return;
    const int lane = threadIdx.x % 32, width = a.size[0];
    const float *x = from(a, 0) + row * width, *like = from(a, 1) + row * width;
    float own = 0, wanted = 0;
    for (int i = lane; i < width; i += 32) own += x[i] * x[i], wanted += like[i] * like[i];
    const float factor = sqrtf(warp_sum(wanted) / width / fmaxf(warp_sum(own) / width, a.factor[0]));
    for (int i = lane; i < width; i += 32) to(a)[row * width + i] = x[i] * factor;
}

// x0 [rows, n, dim], x1 [rows, m, n]; size: n, m, dim
extern "C" __global__ void __launch_bounds__(256) plain_mix_streams(const frit_plain_args a)
{
    const long long i = number();
    if (i >= a.n) return;
    const int n = a.size[0], dim = a.size[2], d = (int)(i % dim);
    const long long stream = i / dim;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += from(a, 1)[stream * n + k] * from(a, 0)[(stream / a.size[1] * n + k) * dim + d];
    to(a)[i] = sum;
}

// ------------------------------------------------------------------------------- positions

// A rotated number of a head: its pair, and the other number of the pair. size: heads, dim, rotated dimensions, the first
// of them, 1: NeoX pairs
typedef struct place {
    int pair, step;   // -1: the number does not rotate
    bool is_second;
} place;

DEVICE place place_of(const frit_plain_args &a, long long i)
{
    const int rotated = a.size[2], half = rotated / 2, d = (int)(i % a.size[1]) - a.size[3];
    if (d < 0 || d >= rotated) return {-1, 0, false};
    if (a.size[4]) return {d % half, half, d >= half};
    return {d / 2, 1, d % 2 != 0};
}

DEVICE float rotate(const float *x, const place &at, float2 rotation)
{
    return at.is_second ? x[-at.step] * rotation.y + x[0] * rotation.x : x[0] * rotation.x - x[at.step] * rotation.y;
}

// x0 [rows, heads, dim], x1: i32 positions, x2: f32 [rotated / 2] angles at position 1, x3: f32 [rotated / 2] divisors
// of the angles, or 0; size: as of `place`; factor[0]: magnitude
extern "C" __global__ void __launch_bounds__(256) plain_rope(const frit_plain_args a)
{
    const long long i = number();
    if (i >= a.n) return;
    const float *x = from(a, 0) + i;
    const place at = place_of(a, i);
    if (at.pair < 0) {
        to(a)[i] = *x;
        return;
    }
    const double frequency = from(a, 2)[at.pair] / (a.x[3] ? from(a, 3)[at.pair] : 1);
    to(a)[i] = rotate(x, at, rotation_of(((const int *)a.x[1])[i / a.size[1] / a.size[0]], frequency, a.factor[0]));
}

// x0 [rows, heads, dim], x1 [rows, rotated]: cosines, then sines; size: as of `place`
extern "C" __global__ void __launch_bounds__(256) plain_rope_angles(const frit_plain_args a)
{
    const long long i = number();
    if (i >= a.n) return;
    const float *x = from(a, 0) + i, *turns = from(a, 1) + i / a.size[1] / a.size[0] * a.size[2];
    const place at = place_of(a, i);
    to(a)[i] = at.pair < 0 ? *x : rotate(x, at, {turns[at.pair], turns[a.size[2] / 2 + at.pair]});
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

// x1: route, x2: residual or 0; size: numbers of a row, experts of a row, 1: rows are added without weights
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
