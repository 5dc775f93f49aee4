// SPDX-License-Identifier: MIT
// Keys and values of the step's rows into the cache: a group of threads for a row and a head, of keys (z 0) or values.
// Numbers of 16 bits that share a word may be written by different groups, so each half of a word is written by atomic
// operations. Types and layout are in cache.wgsl; P_K, P_V: where the rows lie.
//
// ROTATES: keys are rotated, and so are queries, by the groups z 2 to z 1 + GROUP, GROUP heads for each head of keys.
// NORM_Q, NORM_K: heads have a norm before that, with weights of the binding.
#include "step.wgsl"
@group(0) @binding(2) var<storage, read_write> scratch: array<f32>;
@group(0) @binding(3) var<storage, read_write> cache: array<atomic<u32>>;
#if ROTATES
@group(0) @binding(ROTATES) var<storage, read> revolutions: array<vec2<u32>>;
#endif
#if NORM_Q
@group(0) @binding(NORM_Q) var<storage, read> query_weights: array<f32>;
#endif
#if NORM_K
@group(0) @binding(NORM_K) var<storage, read> key_weights: array<f32>;
#endif
#include "cache.wgsl"
#define P_K params[0].z
#define P_V params[0].w
#define P_Q params[3].x
#define P_ROTATED params[3].y
#define P_DIM params[3].z
#define P_FIRST params[3].w
#define P_IS_NEOX params[4].x
#define P_MAGNITUDE bitcast<f32>(params[4].y)
#define P_EPSILON_Q bitcast<f32>(params[4].z)
#define P_EPSILON_K bitcast<f32>(params[4].w)
#define THREADS 64

var<workgroup> x: array<f32, (MOST_DIM)>;
#if NORM_Q || NORM_K
var<workgroup> squares: array<f32, (THREADS)>;

// One divided by the root of the mean of the squares of x.
fn norm_factor(thread: u32, epsilon: f32) -> f32 {
    var sum = 0.0;
    for (var i = thread; i < K_DIMu; i += THREADSu) {
        sum += x[i] * x[i];
    }
    squares[thread] = sum;
    workgroupBarrier();
    sum = 0.0;
    for (var i = 0u; i < THREADSu; i++) {
        sum += squares[i];
    }
    return 1.0 / sqrt(sum / f32(K_DIMu) + epsilon);
}
#endif
#if ROTATES
#include "rotation.wgsl"

fn rotate(thread: u32, row: u32) {
    let half_size = P_DIM / 2u;
    for (var pair = thread; pair < half_size; pair += THREADSu) {
        let a = P_FIRST + select(2u * pair, pair, P_IS_NEOX == 1u);
        let b = a + select(1u, half_size, P_IS_NEOX == 1u);
        let r = rotation_of(step[STEP_ANGLES + row], pair) * P_MAGNITUDE;
        let y = x[a];
        let z = x[b];
        x[a] = y * r.x - z * r.y;
        x[b] = y * r.y + z * r.x;
    }
    workgroupBarrier();
}

fn rotate_query(thread: u32, row: u32, head: u32) {
    let at = (row * P_N_KV * GROUPu + head) * K_DIMu;
    for (var i = thread; i < K_DIMu; i += THREADSu) {
        x[i] = scratch[P_Q + at + i];
    }
    workgroupBarrier();
#if NORM_Q
    let factor = norm_factor(thread, P_EPSILON_Q);
    for (var i = thread; i < K_DIMu; i += THREADSu) {
        x[i] *= factor * query_weights[i];
    }
    workgroupBarrier();
#endif
    rotate(thread, row);
    for (var i = thread; i < K_DIMu; i += THREADSu) {
        scratch[P_ROTATED + at + i] = x[i];
    }
}
#endif

fn half_of(value: f32) -> u32 {   // rounds to the nearest, ties to even
    let b = bitcast<u32>(value);
    let s = (b >> 16u) & 0x8000u;
    let a = b & 0x7fffffffu;
    if (a > 0x7f800000u) {
        return s | 0x7e00u;
    }
    if (a >= 0x477ff000u) {
        return s | 0x7c00u;
    }
    if (a < 0x38800000u) {
        return s | (bitcast<u32>(bitcast<f32>(a) + 0.5) - 0x3f000000u);
    }
    return s | ((a + 0xfffu + ((a >> 13u) & 1u) - 0x38000000u) >> 13u);
}

fn brain_of(value: f32) -> u32 {
    let b = bitcast<u32>(value);
    if ((b & 0x7fffffffu) > 0x7f800000u) {
        return (b >> 16u) | 0x40u;
    }
    return (b + 0x7fffu + ((b >> 16u) & 1u)) >> 16u;
}

fn store16(page: u32, byte: u32, value: u32) {
    let shift = 8u * (byte & 2u);
    atomicAnd(&cache[page + byte / 4u], ~(0xffffu << shift));
    atomicOr(&cache[page + byte / 4u], value << shift);
}

fn transform(thread: u32, dim: u32, block: u32) {
    for (var n = 1u; n < block; n *= 2u) {
        for (var i = thread; i < dim / 2u; i += THREADSu) {
            let a = i / n * 2u * n + i % n;
            let y = x[a];
            let z = x[a + n];
            x[a] = y + z;
            x[a + n] = y - z;
        }
        workgroupBarrier();
    }
    for (var i = thread; i < dim; i += THREADSu) {
        x[i] *= inverseSqrt(f32(block));
    }
    workgroupBarrier();
}

// Numbers i and i + 1 of block b, and the block's scale.
fn store_q8(page: u32, row: u32, i: u32) {
    let b = i / 32u * 32u;
    var most = 0.0;
    for (var k = 0u; k < 32u; k++) {
        most = max(most, abs(x[b + k]));
    }
    let scale = most / 127.0;
    let inverse = select(0.0, 1.0 / scale, scale > 0.0);
    let q = vec2<u32>(vec2<i32>(round(vec2<f32>(x[i], x[i + 1u]) * inverse))) & vec2<u32>(0xffu);
    let byte = row + i / 32u * 34u;
    store16(page, byte + 2u + i % 32u, q.x | (q.y << 8u));
    if (i % 32u == 0u) {
        store16(page, byte, half_of(scale));
    }
}

// Numbers i, i + 1, i + 16 and i + 17 of a block.
fn store_q4(page: u32, row: u32, i: u32) {
    let b = i / 32u * 32u;
    var most = 0.0;
    for (var k = 0u; k < 32u; k++) {
        most = select(most, x[b + k], abs(x[b + k]) > abs(most));
    }
    let scale = most / -8.0;
    let inverse = select(0.0, 1.0 / scale, scale != 0.0);
    let v = vec4<f32>(x[i], x[i + 1u], x[i + 16u], x[i + 17u]) * inverse + vec4<f32>(8.5);
    let q = min(vec4<u32>(max(v, vec4<f32>(0.0))), vec4<u32>(15u));
    let byte = row + i / 32u * 18u;
    store16(page, byte + 2u + i % 32u, q.x | (q.y << 8u) | (q.z << 4u) | (q.w << 12u));
    if (i % 32u == 0u) {
        store16(page, byte, half_of(scale));
    }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let head = group.x;
    let row = group.y;
#if ROTATES
    if (group.z >= 2u) {
        rotate_query(thread, row, head * GROUPu + group.z - 2u);
        return;
    }
#endif
    let seq = step[STEP_SEQ_OF + row];
    let position = step[STEP_POSITIONS + row];
    let at = position & 31u;
    let page = page_of(seq, position);
    if (group.z == 0u) {
        let words = page * P_K_PAGE + P_K_WORDS;
        for (var i = thread; i < K_DIMu; i += THREADSu) {
            x[i] = scratch[P_K + (row * P_N_KV + head) * K_DIMu + i];
        }
        workgroupBarrier();
#if NORM_K
        let factor = norm_factor(thread, P_EPSILON_K);
        for (var i = thread; i < K_DIMu; i += THREADSu) {
            x[i] *= factor * key_weights[i];
        }
        workgroupBarrier();
#endif
#if ROTATES
        rotate(thread, row);
#endif
#if HADAMARD_K > 1
        transform(thread, K_DIMu, HADAMARD_Ku);
#endif
#if K_TYPE == 0
        for (var i = thread; i < K_DIMu; i += THREADSu) {
            atomicStore(&cache[words + head * 32u * K_DIMu + i * 32u + at], bitcast<u32>(x[i]));
        }
#elif K_TYPE == 1
        for (var i = thread; i < K_DIMu; i += THREADSu) {
            store16(words, (head * 32u * K_DIMu + i * 32u + at) * 2u, half_of(x[i]));
        }
#elif K_TYPE == 2
        for (var i = thread; i < K_DIMu; i += THREADSu) {
            store16(words, (head * 32u * K_DIMu + i * 32u + at) * 2u, brain_of(x[i]));
        }
#elif K_TYPE == 3
        for (var i = 2u * thread; i < K_DIMu; i += 2u * THREADSu) {
            store_q8(words, (head * 32u + at) * P_K_ROW, i);
        }
#else
        for (var i = 2u * thread; i < K_DIMu / 2u; i += 2u * THREADSu) {
            store_q4(words, (head * 32u + at) * P_K_ROW, i / 16u * 32u + i % 16u);
        }
#endif
    } else {
        let words = page * P_V_PAGE + P_V_WORDS;
        let base = (head * 32u + at) * V_DIMu;
        for (var i = thread; i < V_DIMu; i += THREADSu) {
            x[i] = scratch[P_V + (row * P_N_KV + head) * V_DIMu + i];
        }
        workgroupBarrier();
#if HADAMARD_V > 1
        transform(thread, V_DIMu, HADAMARD_Vu);
#endif
#if V_TYPE == 0
        for (var i = thread; i < V_DIMu; i += THREADSu) {
            atomicStore(&cache[words + base + i], bitcast<u32>(x[i]));
        }
#elif V_TYPE == 1
        for (var i = 2u * thread; i < V_DIMu; i += 2u * THREADSu) {
            atomicStore(&cache[words + (base + i) / 2u], half_of(x[i]) | (half_of(x[i + 1u]) << 16u));
        }
#elif V_TYPE == 2
        for (var i = 2u * thread; i < V_DIMu; i += 2u * THREADSu) {
            atomicStore(&cache[words + (base + i) / 2u], brain_of(x[i]) | (brain_of(x[i + 1u]) << 16u));
        }
#elif V_TYPE == 3
        for (var i = 2u * thread; i < V_DIMu; i += 2u * THREADSu) {
            store_q8(words, (head * 32u + at) * P_V_ROW, i);
        }
#else
        for (var i = 2u * thread; i < V_DIMu / 2u; i += 2u * THREADSu) {
            store_q4(words, (head * 32u + at) * P_V_ROW, i / 16u * 32u + i % 16u);
        }
#endif
    }
}
