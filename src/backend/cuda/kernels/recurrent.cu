// SPDX-License-Identifier: MIT
// Ops that read and write a session's state (graph/ops.def): conv, scan, delta, shift, wkv. blockIdx.y is a sequence,
// whose rows follow each other. The state is zero if n_past is 0. After n_copied rows the state is also copied to
// copy_state. Each kernel's comment has the meaning of its sizes.
#include "args.h"
#include "ptx.cuh"

#define MOST 8   // numbers of a state's row in a lane, at most

struct sequence_state {   // of a sequence
    frit_gpu_seq seq;
    float *state, *copy;   // copy: where the state after seq.n_copied rows goes; used if n_copied > 0
};

DEVICE sequence_state state_of(const frit_recurrent_args &a)
{
    sequence_state p;
    p.seq = ((const frit_gpu_seq *)a.seqs)[blockIdx.y];
    p.state = (float *)a.states + (long long)p.seq.state * a.n_state;
    p.copy = (float *)a.states + (long long)p.seq.copy_state * a.n_state;
    return p;
}

DEVICE const float *from(const frit_recurrent_args &a, int i)
{
    return (const float *)a.x[i];
}

// Row t of the sequence. Negative t: a row of earlier steps, from the state [n - 1, channels].
DEVICE float row_at(const float *x, const float *kept, int n_kept, int n_channels, int t, int c)
{
    return t >= 0 ? x[(long long)t * n_channels + c] : kept[(n_kept + t) * n_channels + c];
}

// x0 [rows, channels], x1 [channels, n], x2: bias or 0; size: channels, n. A thread for each channel.
extern "C" __global__ void __launch_bounds__(256) recurrent_conv(const frit_recurrent_args a)
{
    const int c = blockIdx.x * 256 + threadIdx.x, n_channels = a.size[0], n = a.size[1];
    if (c >= n_channels) return;
    const sequence_state p = state_of(a);
    const float *x = from(a, 0) + (long long)p.seq.first_row * n_channels, *w = from(a, 1) + (long long)c * n;
    float *y = (float *)a.y + (long long)p.seq.first_row * n_channels;
    if (p.seq.n_past == 0)
        for (int i = 0; i < n - 1; i++) p.state[i * n_channels + c] = 0;
    for (int t = 0; t < p.seq.n_rows; t++) {
        float sum = a.x[2] ? from(a, 2)[c] : 0;
        for (int i = 0; i < n; i++) sum += w[i] * row_at(x, p.state, n - 1, n_channels, t - n + 1 + i, c);
        y[(long long)t * n_channels + c] = sum;
    }
    for (int i = 0; p.seq.n_copied > 0 && i < n - 1; i++)
        p.copy[i * n_channels + c] = row_at(x, p.state, n - 1, n_channels, p.seq.n_copied - (n - 1) + i, c);
    for (int i = 0; i < n - 1; i++)   // in place: reads later rows than it writes
        p.state[i * n_channels + c] = row_at(x, p.state, n - 1, n_channels, p.seq.n_rows - (n - 1) + i, c);
}

// A warp has a row of a head's state [dim, n]; lane i has its numbers i, i + 32, ...
struct state_row {
    int head, index, n;   // index: in dim
    long long at;         // offset in the state
    float v[MOST];
};

// Sets the warp's row; false: there is none. size: heads, dim, groups, n
DEVICE bool take_row(const frit_recurrent_args &a, const sequence_state &p, state_row &row)
{
    const int at = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    row.head = at / a.size[1], row.index = at % a.size[1], row.n = a.size[3];
    row.at = (long long)at * row.n;
#pragma unroll
    for (int i = 0; i < MOST; i++)
        row.v[i] = at < a.size[0] * a.size[1] && lane + i * 32 < row.n && p.seq.n_past > 0
                       ? p.state[row.at + lane + i * 32]
                       : 0;
    return at < a.size[0] * a.size[1];
}

DEVICE void store_row(const state_row &row, float *state)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < MOST; i++)
        if (lane + i * 32 < row.n) state[row.at + lane + i * 32] = row.v[i];
}

// a.x: x [rows, heads, dim], dt [rows, heads], a [heads, n_a], b and c [rows, groups, n]; size[4]: n_a, 1 or n.
extern "C" __global__ void __launch_bounds__(256) recurrent_scan(const frit_recurrent_args a)
{
    const sequence_state p = state_of(a);
    state_row row;
    if (!take_row(a, p, row)) return;
    const int lane = threadIdx.x % 32, n_heads = a.size[0], dim = a.size[1], n_groups = a.size[2], n = row.n;
    const int group = row.head / (n_heads / n_groups);
    for (int i_row = 0; i_row < p.seq.n_rows; i_row++) {
        const long long t = p.seq.first_row + i_row, keys = (t * n_groups + group) * n;
        const float dt = from(a, 1)[t * n_heads + row.head], x = from(a, 0)[(t * n_heads + row.head) * dim + row.index];
        float sum = 0;
#pragma unroll
        for (int i = 0; i < MOST; i++) {
            const int k = lane + i * 32;
            if (k >= n) break;
            const float decay = from(a, 2)[a.size[4] == 1 ? row.head : row.head * n + k];
            row.v[i] = expf(dt * decay) * row.v[i] + dt * x * from(a, 3)[keys + k];
            sum += row.v[i] * from(a, 4)[keys + k];
        }
        sum = warp_sum(sum);
        if (lane == 0) ((float *)a.y)[(t * n_heads + row.head) * dim + row.index] = sum;
        if (i_row + 1 == p.seq.n_copied) store_row(row, p.copy);
    }
    store_row(row, p.state);
}

// x: v [rows, heads, dim], k and q [rows, groups, n], g [rows, heads, n_g] or if it is fixed [heads], beta [rows,
// heads] or 0; size[4]: n_g, 1 or n; size[5]: bit 0: interleaved, bit 1: g is fixed.
extern "C" __global__ void __launch_bounds__(256) recurrent_delta(const frit_recurrent_args a)
{
    const sequence_state p = state_of(a);
    state_row row;
    if (!take_row(a, p, row)) return;
    const int lane = threadIdx.x % 32, n_heads = a.size[0], dim = a.size[1], n_groups = a.size[2], n = row.n;
    const int group = a.size[5] & 1 ? row.head % n_groups : row.head / (n_heads / n_groups);
    for (int i_row = 0; i_row < p.seq.n_rows; i_row++) {
        const long long t = p.seq.first_row + i_row, h = t * n_heads + row.head, keys = (t * n_groups + group) * n;
        const float *g = from(a, 3) + (a.size[5] & 2 ? row.head : h * a.size[4]), v = from(a, 0)[h * dim + row.index];
        float known = 0, sum = 0;
#pragma unroll
        for (int i = 0; i < MOST; i++) {
            const int k = lane + i * 32;
            if (k >= n) break;
            row.v[i] *= expf(g[a.size[4] == 1 ? 0 : k]);
            known += row.v[i] * from(a, 1)[keys + k];
        }
        const float added = a.x[4] ? (v - warp_sum(known)) * from(a, 4)[h] : v;
#pragma unroll
        for (int i = 0; i < MOST; i++) {
            const int k = lane + i * 32;
            if (k >= n) break;
            row.v[i] += added * from(a, 1)[keys + k];
            sum += row.v[i] * from(a, 2)[keys + k];
        }
        sum = warp_sum(sum);
        if (lane == 0) ((float *)a.y)[h * dim + row.index] = sum;
        if (i_row + 1 == p.seq.n_copied) store_row(row, p.copy);
    }
    store_row(row, p.state);
}

// x0 [rows, channels]; size: channels. A thread for each channel.
extern "C" __global__ void __launch_bounds__(256) recurrent_shift(const frit_recurrent_args a)
{
    const int c = blockIdx.x * 256 + threadIdx.x, n_channels = a.size[0];
    if (c >= n_channels) return;
    const sequence_state p = state_of(a);
    float before = p.seq.n_past == 0 ? 0 : p.state[c];
    for (int i = 0; i < p.seq.n_rows; i++) {
        const long long at = (long long)(p.seq.first_row + i) * n_channels + c;
        ((float *)a.y)[at] = before;
        before = from(a, 0)[at];
        if (i + 1 == p.seq.n_copied) p.copy[c] = before;
    }
    p.state[c] = before;
}

struct weighed {   // sums that are to be multiplied by exp(max), which avoids overflow
    float sum, weight, max;
};

// Adds v, weighed by exp(k). No exponent is above 0.
DEVICE weighed weigh(weighed w, float k, float v)
{
    const float max = fmaxf(w.max, k), old = expf(w.max - max), now = expf(k - max);
    return {old * w.sum + now * v, old * w.weight + now, max};
}

DEVICE void store_weighed(float *state, int n_channels, int c, weighed w)
{
    state[c] = w.sum, state[n_channels + c] = w.weight, state[2 * n_channels + c] = w.max;
}

// x: k and v [rows, channels], w and u [channels]; size: channels. A thread for each channel.
extern "C" __global__ void __launch_bounds__(256) recurrent_wkv(const frit_recurrent_args a)
{
    const int c = blockIdx.x * 256 + threadIdx.x, n_channels = a.size[0];
    if (c >= n_channels) return;
    const sequence_state p = state_of(a);
    const float decay = from(a, 2)[c], first = from(a, 3)[c];
    weighed w = {0, 0, -1e38f};
    if (p.seq.n_past > 0) w = {p.state[c], p.state[n_channels + c], p.state[2 * n_channels + c]};
    for (int i = 0; i < p.seq.n_rows; i++) {
        const long long at = (long long)(p.seq.first_row + i) * n_channels + c;
        const float k = from(a, 0)[at], v = from(a, 1)[at];
        const weighed seen = weigh(w, first + k, v);
        ((float *)a.y)[at] = seen.sum / seen.weight;
        w.max += decay;
        w = weigh(w, k, v);
        if (i + 1 == p.seq.n_copied) store_weighed(p.copy, n_channels, c, w);
    }
    store_weighed(p.state, n_channels, c, w);
}
