// SPDX-License-Identifier: MIT
// Scores of keys and numbers of values in the cache (cache.wgsl), for kernels of attention, which have queries in `q`
// and, if a query has SLICES threads, sum the scores of the slices.
#if HADAMARD_K > 1
// Transforms the n numbers of `q`, in blocks of HADAMARD_K (quant/hadamard.h). All threads of the group call it.
fn transform_queries(thread: u32, n: u32) {
    for (var half = 1u; half < HADAMARD_Ku; half *= 2u) {
        for (var i = thread; i < n / 2u; i += THREADSu) {
            let a = i / half * 2u * half + i % half;
            let x = q[a];
            let y = q[a + half];
            q[a] = x + y;
            q[a + half] = x - y;
        }
        workgroupBarrier();
    }
    for (var i = thread; i < n; i += THREADSu) {
        q[i] *= inverseSqrt(f32(HADAMARD_K));
    }
    workgroupBarrier();
}
#endif

fn load16(page: u32, byte: u32) -> u32 {
    return (cache[page + byte / 4u] >> (8u * (byte & 2u))) & 0xffffu;
}

fn load32(page: u32, byte: u32) -> u32 {   // at a multiple of 2
    let a = cache[page + byte / 4u];
    if ((byte & 2u) == 0u) {
        return a;
    }
    return (a >> 16u) | (cache[page + byte / 4u + 1u] << 16u);
}

#if K_TYPE >= 3 || V_TYPE >= 3
fn signed4(c: u32) -> vec4<f32> {
    return vec4<f32>(vec4<i32>(vec4<u32>(c << 24u, c << 16u, c << 8u, c)) >> vec4<u32>(24u));
}
#endif

// Dimension d of positions `at` (even) and at + 1 of a page.
fn two_keys(page: u32, head: u32, d: u32, at: u32) -> vec2<f32> {
#if K_TYPE == 0
    let i = page + head * 32u * K_DIMu + d * 32u + at;
    return bitcast<vec2<f32>>(vec2<u32>(cache[i], cache[i + 1u]));
#elif K_TYPE == 1
    return unpack2x16float(cache[page + (head * 32u * K_DIMu + d * 32u + at) / 2u]);
#elif K_TYPE == 2
    let c = cache[page + (head * 32u * K_DIMu + d * 32u + at) / 2u];
    return bitcast<vec2<f32>>(vec2<u32>(c << 16u, c & 0xffff0000u));
#else
    return vec2<f32>();
#endif
}

#if K_TYPE >= 3
// The product of query head h and a key in blocks of 32 numbers.
fn block_score(page: u32, head: u32, at: u32, h: u32, slice: u32) -> f32 {
    var sum = 0.0;
    for (var b = slice; b < K_DIMu / 32u; b += SLICESu) {
#if K_TYPE == 3
        let byte = (head * 32u + at) * P_K_ROW + b * 34u;
        var dots = 0.0;
        for (var i = 0u; i < 8u; i++) {
            let o = h * K_DIMu + b * 32u + i * 4u;
            dots += dot(signed4(load32(page, byte + 2u + i * 4u)), vec4<f32>(q[o], q[o + 1u], q[o + 2u], q[o + 3u]));
        }
#else
        let byte = (head * 32u + at) * P_K_ROW + b * 18u;
        var dots = 0.0;
        for (var i = 0u; i < 4u; i++) {
            let c = load32(page, byte + 2u + i * 4u);
            let o = h * K_DIMu + b * 32u + i * 4u;
            dots += dot(signed4(c & 0x0f0f0f0fu) - vec4<f32>(8.0), vec4<f32>(q[o], q[o + 1u], q[o + 2u], q[o + 3u]));
            dots += dot(signed4((c >> 4u) & 0x0f0f0f0fu) - vec4<f32>(8.0), vec4<f32>(q[o + 16u], q[o + 17u], q[o + 18u], q[o + 19u]));
        }
#endif
        sum += dots * unpack2x16float(load16(page, byte)).x;
    }
    return sum;
}
#endif

// Dimensions 2 c and 2 c + 1 of the value of a position.
fn two_values(page: u32, head: u32, at: u32, c: u32) -> vec2<f32> {
#if V_TYPE == 0
    let i = page + (head * 32u + at) * V_DIMu + 2u * c;
    return bitcast<vec2<f32>>(vec2<u32>(cache[i], cache[i + 1u]));
#elif V_TYPE == 1
    return unpack2x16float(cache[page + ((head * 32u + at) * V_DIMu) / 2u + c]);
#elif V_TYPE == 2
    let w = cache[page + ((head * 32u + at) * V_DIMu) / 2u + c];
    return bitcast<vec2<f32>>(vec2<u32>(w << 16u, w & 0xffff0000u));
#elif V_TYPE == 3
    let byte = (head * 32u + at) * P_V_ROW + c / 16u * 34u;
    let w = load16(page, byte + 2u + (c & 15u) * 2u);
    return signed4(w).xy * unpack2x16float(load16(page, byte)).x;
#else
    let byte = (head * 32u + at) * P_V_ROW + c / 16u * 18u;
    let w = load16(page, byte + 2u + (c & 7u) * 2u) >> (4u * ((c & 15u) / 8u));
    return (signed4(w & 0x0f0fu).xy - vec2<f32>(8.0)) * unpack2x16float(load16(page, byte)).x;
#endif
}

fn tanh_of(x: f32) -> f32 {
    let e = exp(-2.0 * abs(x));
    let t = select((1.0 - e) / (1.0 + e), abs(x) - abs(x) * x * x / 3.0, abs(x) < 0.02);
    return select(t, -t, x < 0.0);
}

fn score_of(sum: f32, scale: f32, head: u32, own: u32, position: u32) -> f32 {
    var s = sum * scale;
    if (P_SOFTCAP != 0.0) {
        s = P_SOFTCAP * tanh_of(s / P_SOFTCAP);
    }
    let distance = f32(max(own, position) - min(own, position));
#if GAINS
    let reach = i32(P_REACH);
    s += gains[head * (2u * P_REACH + 1u) + u32(clamp(i32(position) - i32(own), -reach, reach) + reach)];
#endif
    if (P_ALIBI != 0.0) {
        s -= slope_of(head) * distance;
    }
    return s;
}
