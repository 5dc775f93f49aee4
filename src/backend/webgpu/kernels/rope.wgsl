// SPDX-License-Identifier: MIT
// Rotation of pairs by position, or with IS_GIVEN by the cosines and sines of x1.
//
// P_SIZE: heads, numbers of a head, rotated numbers, the first of them, 1: NeoX pairs. P_FACTOR0: magnitude.
#include "sources.wgsl"
#if IS_GIVEN
fn turn_of(row: u32, pair: u32) -> vec2<f32> {
    return vec2<f32>(x1(row * P_SIZE2 + pair), x1(row * P_SIZE2 + P_SIZE2 / 2u + pair));
}
#else
@group(0) @binding(X3_BINDING) var<storage, read> revolutions: array<vec2<u32>>;
#include "rotation.wgsl"

fn turn_of(row: u32, pair: u32) -> vec2<f32> {
    return rotation_of(step[STEP_ANGLES + row], pair) * P_FACTOR0;
}
#endif

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
    let i = (group.y * groups.x + group.x) * 256u + thread;
    if (i >= row_count() * P_EACH) {
        return;
    }
    let d = i % P_SIZE1 - P_SIZE3;   // wraps around before the first rotated number
    let x = x0(i);
    if (d >= P_SIZE2) {
        scratch[P_Y + i] = x;
        return;
    }
    let is_neox = P_SIZE4 == 1u;
    let half_size = P_SIZE2 / 2u;
    let pair = select(d / 2u, d % half_size, is_neox);
    let is_second = select((d & 1u) == 1u, d >= half_size, is_neox);
    let apart = select(1u, half_size, is_neox);
    let r = turn_of(i / (P_SIZE0 * P_SIZE1), pair);
    if (is_second) {
        scratch[P_Y + i] = x0(i - apart) * r.y + x * r.x;
    } else {
        scratch[P_Y + i] = x * r.x - x0(i + apart) * r.y;
    }
}
