// SPDX-License-Identifier: MIT
// Ops on rows of the last dimension, a group of THREADS threads for each. P_SIZE0: numbers of a row. P_FACTOR0: epsilon,
// or the factor of gaussian_topk. P_EACH: such rows in a row of the batch.
#include "sources.wgsl"

var<workgroup> shared_sums: array<f32, (THREADS)>;

fn sum_of(thread: u32, x: f32) -> f32 {
    workgroupBarrier();
    shared_sums[thread] = x;
    for (var n = THREADSu / 2u; n > 0u; n /= 2u) {
        workgroupBarrier();
        if (thread < n) {
            shared_sums[thread] += shared_sums[thread + n];
        }
    }
    workgroupBarrier();
    return shared_sums[0];
}

fn largest_of(thread: u32, x: f32) -> f32 {
    workgroupBarrier();
    shared_sums[thread] = x;
    for (var n = THREADSu / 2u; n > 0u; n /= 2u) {
        workgroupBarrier();
        if (thread < n) {
            shared_sums[thread] = max(shared_sums[thread], shared_sums[thread + n]);
        }
    }
    workgroupBarrier();
    return shared_sums[0];
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= row_count() * P_EACH) {
        return;
    }
    let width = P_SIZE0;
    let at = row * width;
    var a = 0.0;
    var b = 0.0;
#if OP == OP_LAYER_NORM || OP == OP_GAUSSIAN_TOPK
    for (var i = thread; i < width; i += THREADSu) {
        a += x0(at + i);
    }
    let mean = sum_of(thread, a) / f32(width);
#elif OP == OP_RMS_NORM
    let mean = 0.0;
#endif
#if OP == OP_LAYER_NORM || OP == OP_GAUSSIAN_TOPK || OP == OP_RMS_NORM
    for (var i = thread; i < width; i += THREADSu) {
        let d = x0(at + i) - mean;
        b += d * d;
    }
    let variance = sum_of(thread, b) / f32(width);
#endif
#if OP == OP_LAYER_NORM || OP == OP_RMS_NORM
    let factor = 1.0 / sqrt(variance + P_FACTOR0);
    for (var i = thread; i < width; i += THREADSu) {
        var y = (x0(at + i) - mean) * factor;
#if HAS_WEIGHT
        y *= x1(i);
#endif
#if HAS_BIAS
        y += x2(i);
#endif
        scratch[P_Y + at + i] = y;
    }
#elif OP == OP_GAUSSIAN_TOPK
    let cut = mean + P_FACTOR0 * sqrt(variance);
    for (var i = thread; i < width; i += THREADSu) {
        scratch[P_Y + at + i] = max(x0(at + i) - cut, 0.0);
    }
#elif OP == OP_SOFTMAX
    var most = -3.4e38;
    for (var i = thread; i < width; i += THREADSu) {
        most = max(most, x0(at + i));
    }
    let largest = largest_of(thread, most);
    for (var i = thread; i < width; i += THREADSu) {
        a += exp(x0(at + i) - largest);
    }
    let sum = sum_of(thread, a);
    for (var i = thread; i < width; i += THREADSu) {
        scratch[P_Y + at + i] = exp(x0(at + i) - largest) / sum;
    }
#elif OP == OP_RMS_MATCH
    for (var i = thread; i < width; i += THREADSu) {
        a += x0(at + i) * x0(at + i);
        b += x1(at + i) * x1(at + i);
    }
    let own = sum_of(thread, a) / f32(width);
    let wanted = sum_of(thread, b) / f32(width);
    let factor = sqrt(wanted / max(own, P_FACTOR0));
    for (var i = thread; i < width; i += THREADSu) {
        scratch[P_Y + at + i] = x0(at + i) * factor;
    }
#endif
}
