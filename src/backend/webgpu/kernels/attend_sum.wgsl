// SPDX-License-Identifier: MIT
// Adds the parts of attention of a row and a head, and transforms the sum back if values are transformed.
//
// PACKS: a group of threads makes 256 columns of the row, and the input of products from them too. P_BLOCKS: such blocks
// of a row.
#include "step.wgsl"
@group(0) @binding(2) var<storage, read_write> scratch: array<f32>;
@group(0) @binding(3) var<storage, read> parts: array<f32>;
#if SINKS || GAINS
@group(0) @binding(4) var<storage, read> gains: array<f32>;
#endif
#include "cache.wgsl"
#include "span.wgsl"
#if PACKS
@group(0) @binding(PACKS) var<storage, read_write> acts: array<u32>;
#define P_BLOCKS params[6].x
#define THREADS 64
#include "pack_input.wgsl"

// Columns `column` to `column` + 3 of the row, which are of one head.
fn sum_of_parts(row: u32, column: u32) -> vec4<f32> {
    let n_all = P_N_KV * GROUPu;
    let head = column / V_DIMu;
    let n = step[11];
    let base = (row * n_all + head) * n * (V_DIMu + 2u);
    var most = -3.0e38;
    for (var k = 0u; k < n; k++) {
        most = max(most, parts[base + k * (V_DIMu + 2u) + V_DIMu]);
    }
    var sum = 0.0;
    var x = vec4<f32>();
    for (var k = 0u; k < n; k++) {
        let at = base + k * (V_DIMu + 2u);
        let d = at + column % V_DIMu;
        let e = exp(parts[at + V_DIMu] - most);
        sum += parts[at + V_DIMu + 1u] * e;
        x += vec4<f32>(parts[d], parts[d + 1u], parts[d + 2u], parts[d + 3u]) * e;
    }
    return x * final_factor(head, most, sum);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let width = P_N_KV * GROUPu * V_DIMu;
    let column = group.x * 256u + thread * 4u;
    var x = vec4<f32>();
    if (column < width) {
        x = sum_of_parts(group.y, column);
        for (var k = 0u; k < 4u; k++) {
            scratch[P_Y + group.y * width + column + k] = x[k];
        }
    }
    pack_block(thread, (group.y * P_BLOCKS + group.x) * BLOCK_WORDSu, x, true);
}
#else
#define THREADS 128

var<workgroup> y: array<f32, V_DIM>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let n_all = P_N_KV * GROUPu;
    let head = group.x;
    let i = group.y * n_all + head;
    let n = step[11];
    let base = i * n * (V_DIMu + 2u);
    var most = -3.0e38;
    for (var k = 0u; k < n; k++) {
        most = max(most, parts[base + k * (V_DIMu + 2u) + V_DIMu]);
    }
    var sum = 0.0;
    for (var k = 0u; k < n; k++) {
        let at = base + k * (V_DIMu + 2u) + V_DIMu;
        sum += parts[at + 1u] * exp(parts[at] - most);
    }
    let factor = final_factor(head, most, sum);
    for (var d = thread; d < V_DIMu; d += THREADSu) {
        var x = 0.0;
        for (var k = 0u; k < n; k++) {
            let at = base + k * (V_DIMu + 2u);
            x += parts[at + d] * exp(parts[at + V_DIMu] - most);
        }
        y[d] = x * factor;
    }
    workgroupBarrier();
#if HADAMARD_V > 1
    for (var n = 1u; n < HADAMARD_Vu; n *= 2u) {
        for (var i = thread; i < V_DIMu / 2u; i += THREADSu) {
            let a = i / n * 2u * n + i % n;
            let x = y[a];
            let z = y[a + n];
            y[a] = x + z;
            y[a + n] = x - z;
        }
        workgroupBarrier();
    }
#define BACK inverseSqrt(f32(HADAMARD_V))
#else
#define BACK 1.0
#endif
    for (var d = thread; d < V_DIMu; d += THREADSu) {
        scratch[P_Y + i * V_DIMu + d] = y[d] * BACK;
    }
}
#endif
