// SPDX-License-Identifier: MIT
// The terms that adapters add to products and hidden states (graph/adapt.h). A row of the step has the adapters for
// which its sequence has a scale that is not 0. In a row of h, the numbers of its adapters follow each other.
//
// OP_DOWN: h[t, first + j] = scale * sum_i x[t, i] a[j, i], a group of 64 threads for each number; IS_LOOKUP: the sum is
// a row of a [tokens, rank]. OP_UP: y[t, o] = x[t, o] + sum_j h[t, first + j] b[j, first_row + o]. OP_STEER: y[t, :] =
// x[t, :] + scale * direction. `adapters` is made by ops/adapt.c.
#include "step.wgsl"
@group(0) @binding(2) var<storage, read_write> scratch: array<f32>;
@group(0) @binding(3) var<storage, read> adapters: array<u32>;

#define P_X params[0].x
#define P_H params[0].y
#define P_Y params[0].z
#define P_WIDTH params[0].w
#define P_INDEX params[1].x
#define P_N_H params[1].y
#define P_FIRST_ROW params[1].z
#define N_LOADED adapters[0]
#define N_MATRICES adapters[1]
#define N_LAYERS adapters[2]

fn scale_of(t: u32, adapter: u32) -> f32 {
    if (adapter >= step[14]) {
        return 0.0;
    }
#if ROWS_OF == 1
    let row = step[STEP_OUT_ROWS + t];
#else
    let row = t;
#endif
    return bitcast<f32>(step[step[13] + step[STEP_SEQ_OF + row] * step[14] + adapter]);
}

fn row_of(adapter: u32) -> u32 {   // the adapter's part of the table
    return 4u + adapter * (5u * N_MATRICES + N_LAYERS);
}

struct low_rank {
    rank: u32,   // 0: the row does not have the adapter at this matrix
    scale: f32,
    a: u32,
    b: u32,
    n_b: u32,
}

fn low_rank_of(t: u32, adapter: u32) -> low_rank {
    let at = row_of(adapter) + 5u * P_INDEX;
    let scale = scale_of(t, adapter) * bitcast<f32>(adapters[at + 1u]);
    return low_rank(select(adapters[at], 0u, scale == 0.0), scale, adapters[at + 2u], adapters[at + 3u], adapters[at + 4u]);
}

#if OP_DOWN
var<workgroup> sums: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let t = group.y;
    let at = group.x;
    var first = 0u;
    var part = low_rank(0u, 0.0, 0u, 0u, 0u);
    for (var adapter = 0u; adapter < N_LOADED; adapter++) {
        part = low_rank_of(t, adapter);
        if (at < first + part.rank) {
            break;
        }
        first += part.rank;
        part.rank = 0u;
    }
    if (part.rank == 0u) {
        return;
    }
    let j = at - first;
#if IS_LOOKUP
    if (thread == 0u) {
        scratch[P_Y + t * P_N_H + at] = part.scale * bitcast<f32>(adapters[part.a + step[STEP_TOKENS + t] * part.rank + j]);
    }
#else
    var sum = 0.0;
    for (var i = thread; i < P_WIDTH; i += 64u) {
        sum += scratch[P_X + t * P_WIDTH + i] * bitcast<f32>(adapters[part.a + j * P_WIDTH + i]);
    }
    sums[thread] = sum;
    workgroupBarrier();
    if (thread == 0u) {
        var all = 0.0;
        for (var i = 0u; i < 64u; i++) {
            all += sums[i];
        }
        scratch[P_Y + t * P_N_H + at] = part.scale * all;
    }
#endif
}
#else
fn term(t: u32, o: u32) -> f32 {
    var sum = 0.0;
#if OP_UP
    var first = 0u;
    for (var adapter = 0u; adapter < N_LOADED; adapter++) {
        let part = low_rank_of(t, adapter);
        for (var j = 0u; j < part.rank; j++) {
            let b = bitcast<f32>(adapters[part.b + j * part.n_b + P_FIRST_ROW + o]);
            sum += scratch[P_H + t * P_N_H + first + j] * b;
        }
        first += part.rank;
    }
#else
    for (var adapter = 0u; adapter < N_LOADED; adapter++) {
        let direction = adapters[row_of(adapter) + 5u * N_MATRICES + P_INDEX];
        let scale = scale_of(t, adapter);
        if ((direction != 0u) && (scale != 0.0)) {
            sum += scale * bitcast<f32>(adapters[direction + o]);
        }
    }
#endif
    return sum;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
    let i = (group.y * groups.x + group.x) * 256u + thread;
    if (i < row_count() * P_WIDTH) {
        scratch[P_Y + i] = scratch[P_X + i] + term(i / P_WIDTH, i % P_WIDTH);
    }
}
#endif
