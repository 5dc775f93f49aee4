// SPDX-License-Identifier: MIT
// The product of a unit of weights (tiles.wgsl), 32 columns of a row, with integers of 15 bits (pack_input.wgsl): bytes
// of the first and last 16 columns, and their sums.
#if IS_INT
fn dot8(a: vec4<u32>, b: vec4<u32>) -> i32 {
    return dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y) + dot4I8Packed(a.z, b.z) + dot4I8Packed(a.w, b.w);
}

fn unit_sum(code: codes, scale: vec4<f32>, high0: vec4<u32>, high1: vec4<u32>, low0: vec4<u32>, low1: vec4<u32>,
            sum: vec2<f32>) -> f32 {
#if HAS_16
    let a = dot8(code.first, high0) * 128 + dot8(code.first, low0);
    let b = dot8(code.last, high1) * 128 + dot8(code.last, low1);
    let y = f32(a) * scale.x + f32(b) * scale.y;
#else
    let high = dot8(code.first, high0) + dot8(code.last, high1);
    let y = f32(high * 128 + (dot8(code.first, low0) + dot8(code.last, low1))) * scale.x;
#endif
#if HAS_MIN && HAS_16
    return y + scale.z * sum.x + scale.w * sum.y;
#elif HAS_MIN
    return y + scale.z * (sum.x + sum.y);
#else
    return y;
#endif
}
#endif
