// SPDX-License-Identifier: MIT
// The sources of an op: X0_AT, X1_AT, X2_AT: 0 an offset in the scratch memory, P_X0 ..., 1 a tensor of the model,
// with the binding X0_BINDING ...
#include "step.wgsl"
@group(0) @binding(2) var<storage, read_write> scratch: array<f32>;
#if X0_AT
@group(0) @binding(X0_BINDING) var<storage, read> w0: array<f32>;
#endif
#if X1_AT
@group(0) @binding(X1_BINDING) var<storage, read> w1: array<f32>;
#endif
#if X2_AT
@group(0) @binding(X2_BINDING) var<storage, read> w2: array<f32>;
#endif

#define P_X0 params[0].x
#define P_X1 params[0].y
#define P_X2 params[0].z
#define P_Y params[0].w
#define P_EACH params[1].x
#define P_SIZE0 params[2].x
#define P_SIZE1 params[2].y
#define P_SIZE2 params[2].z
#define P_SIZE3 params[2].w
#define P_SIZE4 params[3].x
#define P_FACTOR0 bitcast<f32>(params[4].x)
#define P_FACTOR1 bitcast<f32>(params[4].y)
#define P_FACTOR2 bitcast<f32>(params[4].z)
#define P_FACTOR3 bitcast<f32>(params[4].w)

fn x0(i: u32) -> f32 {
#if X0_AT
    return w0[i];
#else
    return scratch[P_X0 + i];
#endif
}

fn x1(i: u32) -> f32 {
#if X1_AT
    return w1[i];
#else
    return scratch[P_X1 + i];
#endif
}

fn x2(i: u32) -> f32 {
#if X2_AT
    return w2[i];
#else
    return scratch[P_X2 + i];
#endif
}
