// SPDX-License-Identifier: MIT
// Op route (graph/ops.def): the experts of each row, and their weights. A warp for each row. All options are defines,
// because the kernel is short: most of its time is that of fetching its code.
//
// Shared memory: f32 [2 N_SCORES + N_GROUPS + N_USED]. Grid: rows; 32 threads. Defined by the host (experts.c):
// N_SCORES, N_USED, N_GROUPS, N_GROUPS_USED, GATING, BY_SIGMOID, BY_LOGIT, NORMALIZE, DIVISOR.
#include "args.h"
#include "ptx.cuh"

#define GATING_SOFTMAX          1   // frit_gating
#define GATING_SIGMOID          2
#define GATING_SOFTMAX_SELECTED 3
#define GATING_SQRT_SOFTPLUS    4
#define GATING_NEAR_BEST        5

#define INFINITE __uint_as_float(0x7f800000)
#define LEAST    6.103515625e-5f   // smallest divisor of normalized weights, as in the reference models

// An integer that orders as the number does.
DEVICE u32 key_of(float x)
{
    const u32 bits = __float_as_uint(x);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

DEVICE float of_key(u32 key)
{
    return __uint_as_float(key >> 31 ? key & 0x7fffffff : ~key);
}

// Index of the largest of n numbers, the first if several are equal. All lanes of a warp call it.
DEVICE int best(const float *s, int n, int lane)
{
    u32 most = 0;
    for (int i = lane; i < n; i += 32) most = max(most, key_of(s[i]));
    most = __reduce_max_sync(~0u, most);
    u32 first = 0;   // larger for a smaller index
    for (int i = lane; i < n; i += 32)
        if (key_of(s[i]) == most) first = max(first, (u32)(n - i));
    return n - (int)max(1u, __reduce_max_sync(~0u, first));
}

// Up to 256 scores in registers: a lane has the scores at lane + 32 j.
#define HELD    ((N_SCORES + 31) / 32)
#define IS_HELD (N_SCORES <= 256)

struct held {
    u32 key[IS_HELD ? HELD : 1];
    DEVICE void load(const float *s, int n, int lane)
    {
#pragma unroll
        for (int j = 0; j < HELD; j++) key[j] = lane + 32 * j < n ? key_of(s[lane + 32 * j]) : 0;
    }
    DEVICE int best(int n, int lane) const
    {
        u32 most = 0, first = 0;
#pragma unroll
        for (int j = 0; j < HELD; j++) most = max(most, key[j]);
        most = __reduce_max_sync(~0u, most);
#pragma unroll
        for (int j = HELD - 1; j >= 0; j--)
            if (key[j] == most) first = (u32)(n - lane - 32 * j);
        return n - (int)max(1u, __reduce_max_sync(~0u, first));
    }
    DEVICE void drop(int e, int lane)
    {
#pragma unroll
        for (int j = 0; j < HELD; j++)
            if (lane + 32 * j == e) key[j] = key_of(-INFINITE);
    }
};

DEVICE float largest(const float *s, int n, int lane)
{
    u32 most = 0;
    for (int i = lane; i < n; i += 32) most = max(most, key_of(s[i]));
    return of_key(__reduce_max_sync(~0u, most));
}

DEVICE void softmax(float *p, int n, int lane)
{
    const float most = largest(p, n, lane);
    float sum = 0;
    for (int i = lane; i < n; i += 32) sum += p[i] = expf(p[i] - most);
    sum = warp_sum(sum);
    for (int i = lane; i < n; i += 32) p[i] /= sum;
    __syncwarp();
}

DEVICE float probability(int gating, float x)
{
    if (gating == GATING_SIGMOID) return 1 / (1 + expf(-x));
    if (gating == GATING_SQRT_SOFTPLUS) return sqrtf(x > 20 ? x : log1pf(expf(x)));
    return x;
}

DEVICE float best_two(const float *s, int n)
{
    float first = -INFINITE, second = -INFINITE;
    for (int i = 0; i < n; i++) {
        second = fmaxf(second, fminf(first, s[i]));
        first = fmaxf(first, s[i]);
    }
    return first + second;
}

// Removes experts that are not in the best groups.
DEVICE void keep_best_groups(const frit_route_args &a, float *s, float *sums, int lane)
{
    const int size = N_SCORES / (N_GROUPS > 0 ? N_GROUPS : 1);
    for (int g = lane; g < N_GROUPS; g += 32) sums[g] = best_two(s + g * size, size);
    __syncwarp();
    for (int i = 0; i < N_GROUPS_USED; i++) {
        const int g = best(sums, N_GROUPS, lane);
        if (lane == 0) sums[g] = -INFINITE;
        __syncwarp();
    }
    for (int i = lane; i < size * N_GROUPS; i += 32)
        if (sums[i / size] != -INFINITE) s[i] = -INFINITE;
    __syncwarp();
}

// The weight of score e relative to the remaining scores near it.
DEVICE float near_best(const frit_route_args &a, const float *s, int e, int lane)
{
    const float top = s[e];
    float sum = 0;
    for (int i = lane; i < N_SCORES; i += 32)
        if (s[i] != -INFINITE && (top - s[i]) / fmaxf(fabsf(s[i]), top) <= 2 * a.jitter) sum += expf(s[i] - top);
    return 1 / warp_sum(sum);
}

DEVICE void weigh(const frit_route_args &a, float *weights, int lane)
{
    if (GATING == GATING_SOFTMAX_SELECTED) softmax(weights, N_USED, lane);
    float sum = 0;
    for (int k = lane; k < N_USED; k += 32) sum += weights[k];
    sum = fmaxf(warp_sum(sum), LEAST);
    for (int k = lane; k < N_USED; k += 32) {
        if (NORMALIZE) weights[k] /= sum;
        if (a.scale != 0) weights[k] *= a.scale;
    }
}

extern "C" __global__ void __launch_bounds__(32) route(const frit_route_args a)
{
    extern __shared__ __align__(128) char shared[];
    float *p = (float *)shared, *s = p + N_SCORES, *sums = s + N_SCORES, *weights = sums + N_GROUPS;
    const int lane = threadIdx.x;
    const float *x = (const float *)a.scores + (long long)blockIdx.x * N_SCORES, *bias = (const float *)a.bias;
    float *y = (float *)a.route + (long long)blockIdx.x * 2 * N_USED;
    let_next_kernel_start();
    wait_for_kernel_before();
    for (int i = lane; i < N_SCORES; i += 32) p[i] = probability(GATING, __ldcg(x + i));
    __syncwarp();
    if (GATING == GATING_SOFTMAX) softmax(p, N_SCORES, lane);
    for (int i = lane; i < N_SCORES; i += 32) {
        const float score = __ldcg(x + i);
        s[i] = BY_LOGIT ? score : BY_SIGMOID ? probability(GATING_SIGMOID, score) : p[i];
        if (bias) s[i] += bias[i];
    }
    __syncwarp();
    if (N_GROUPS > 1) keep_best_groups(a, s, sums, lane);
    held scores;
    if (IS_HELD) scores.load(s, N_SCORES, lane);
#pragma unroll 1
    for (int k = 0; k < N_USED; k++) {
        const int e = IS_HELD ? scores.best(N_SCORES, lane) : best(s, N_SCORES, lane);
        if (IS_HELD) scores.drop(e, lane);
        const float weight = GATING == GATING_NEAR_BEST ? near_best(a, s, e, lane) : p[e / DIVISOR];
        __syncwarp();
        if (lane == 0) {
            y[k] = (float)(e / DIVISOR);
            weights[k] = weight;
            s[e] = -INFINITE;
        }
        __syncwarp();
    }
    weigh(a, weights, lane);
    for (int k = lane; k < N_USED; k += 32) y[N_USED + k] = weights[k];
}
