// SPDX-License-Identifier: MIT
// Ops that compute each number for itself, with the formulas of graph/ops.def. OP: the name of the op in C's table. The
// sizes and factors of each op are in its branch.
#include "sources.wgsl"
#include "activation.wgsl"

fn value(i: u32) -> f32 {
#if OP == OP_ADD
    return x0(i) + x1(i % P_SIZE0);   // numbers of x1
#elif OP == OP_MUL
    return x0(i) * x1(i % P_SIZE0);
#elif OP == OP_SCALE
    return x0(i) * P_FACTOR0;
#elif OP == OP_SOFTCAP
    return P_FACTOR0 * tanh_of(x0(i) / P_FACTOR0);
#elif OP == OP_CLAMP
    return min(max(x0(i), P_FACTOR0), P_FACTOR1);
#elif OP == OP_ACT
    return activate(P_SIZE0, x0(i));
#elif OP == OP_GLU
    return activate(P_SIZE0, x0(i)) * x1(i);
#elif OP == OP_XIELU
    let x = x0(i);   // positive, negative, beta, eps
    let m = min(x, P_FACTOR3);
    let e = select(exp(m) - 1.0, m + 0.5 * m * m + m * m * m / 6.0, abs(m) < 0.01);
    return select(P_FACTOR1 * (e - x) + P_FACTOR2 * x, P_FACTOR0 * x * x + P_FACTOR2 * x, x > 0.0);
#elif OP == OP_SLICE
    return x0(i / P_SIZE0 * P_SIZE1 + P_SIZE2 + i % P_SIZE0);   // numbers of a row of y, of x, the first one
#elif OP == OP_CONCAT
    let width = P_SIZE0 + P_SIZE1;   // numbers of a row of x0, of x1; rows of x0 that share one of x1
    let at = i % width;
    let row = i / width;
    if (at < P_SIZE0) {
        return x0(row * P_SIZE0 + at);
    }
    return x1(row / P_SIZE2 * P_SIZE1 + at - P_SIZE0);
#elif OP == OP_SCALE_ROWS
    return x0(i) * x1(i / P_SIZE0);   // numbers of a row
#elif OP == OP_TAKE_ROWS
    return x0(step[STEP_OUT_ROWS + i / P_SIZE0] * P_SIZE0 + i % P_SIZE0);
#elif OP == OP_PLACE_ROWS
    let soft = i / P_SIZE0 * (P_SIZE0 + 1u);   // numbers of a row; x1: 1 and the row that takes the place, or 0
    if (x1(soft) != 0.0) {
        return x1(soft + 1u + i % P_SIZE0);
    }
    return x0(i);
#elif OP == OP_GATHER_EXPERTS
    let at = i / P_SIZE0;   // assignment; numbers of a row, experts of a row
    let expert = u32(x1(at / P_SIZE1 * 2u * P_SIZE1 + at % P_SIZE1));
    return x0(expert * P_SIZE0 + i % P_SIZE0);
#elif OP == OP_MIX
    let row = i / P_SIZE0;   // numbers of a row, experts of a row, 1: without weights
    var sum = 0.0;
    for (var k = 0u; k < P_SIZE1; k++) {
        let x = x0((row * P_SIZE1 + k) * P_SIZE0 + i % P_SIZE0);
        sum += select(x * x1(row * 2u * P_SIZE1 + P_SIZE1 + k), x, P_SIZE2 == 1u);
    }
    return sum;
#elif OP == OP_MIX_STREAMS
    let d = i % P_SIZE2;   // x0 [rows, n, dim], x1 [rows, m, n]: n, m, dim
    let stream = i / P_SIZE2;
    var sum = 0.0;
    for (var k = 0u; k < P_SIZE0; k++) {
        sum += x1(stream * P_SIZE0 + k) * x0((stream / P_SIZE1 * P_SIZE0 + k) * P_SIZE2 + d);
    }
    return sum;
#endif
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
    let i = (group.y * groups.x + group.x) * 256u + thread;
    if (i < row_count() * P_EACH) {
        scratch[P_Y + i] = value(i);
    }
}
