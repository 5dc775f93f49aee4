// SPDX-License-Identifier: MIT
// A norm of rows that products read: a group of THREADS threads writes THREADS / 64 blocks of 256 columns of a row, as
// numbers and as the input of products. Each group adds the whole row, so that a row has several groups. HAS_WEIGHT, HAS_BIAS, IS_LAYER: the norm. P_SIZE0: numbers of a row; P_SIZE1: blocks of a row;
// P_FACTOR0: epsilon.
#include "sources.wgsl"
@group(0) @binding(3) var<storage, read_write> acts: array<u32>;
#include "pack_input.wgsl"

var<workgroup> all_sums: array<f32, (THREADS)>;

fn sum_of(thread: u32, x: f32) -> f32 {
    workgroupBarrier();
    all_sums[thread] = x;
    workgroupBarrier();
    if (thread < 16u) {
        var sum = 0.0;
        for (var i = thread; i < THREADSu; i += 16u) {
            sum += all_sums[i];
        }
        all_sums[thread] = sum;
    }
    workgroupBarrier();
    var sum = 0.0;
    for (var i = 0u; i < 16u; i++) {
        sum += all_sums[i];
    }
    return sum;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let row = group.y;
    let width = P_SIZE0;
    let at = row * width;
    var mean = 0.0;
#if IS_LAYER
    var a = 0.0;
    for (var i = thread; i < width; i += THREADSu) {
        a += x0(at + i);
    }
    mean = sum_of(thread, a) / f32(width);
#endif
    var b = 0.0;
    for (var i = thread; i < width; i += THREADSu) {
        let d = x0(at + i) - mean;
        b += d * d;
    }
    let factor = 1.0 / sqrt(sum_of(thread, b) / f32(width) + P_FACTOR0);
    let block = group.x * (THREADSu / 64u) + thread / 64u;
    var y = vec4<f32>(0.0);
    for (var k = 0u; k < 4u; k++) {
        let i = block * 256u + (thread & 63u) * 4u + k;
        if (i < width) {
            var z = (x0(at + i) - mean) * factor;
#if HAS_WEIGHT
            z *= x1(i);
#endif
#if HAS_BIAS
            z += x2(i);
#endif
            scratch[P_Y + at + i] = z;
            y[k] = z;
        }
    }
    pack_block(thread, (row * P_SIZE1 + block) * BLOCK_WORDSu, y, block < P_SIZE1);
}
