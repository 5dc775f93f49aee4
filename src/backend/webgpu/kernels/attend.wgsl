// SPDX-License-Identifier: MIT
// Attention of one row: a group of threads computes HEADS query heads that share a head of the cache, over the positions
// of a part, SPAN at a time. In a span a thread computes the scores of two positions, from every SLICES-th dimension, and
// then sums of two dimensions of the values. Several parts of a row are added by attend_sum.wgsl.
//
// K_DIM, V_DIM: numbers of a key and a value. GROUP: query heads that share a head of the cache. HADAMARD_K,
// HADAMARD_V: blocks of the transform (quant/hadamard.h), 1: none. Other properties of the op are parameters.
#include "step.wgsl"
@group(0) @binding(2) var<storage, read_write> scratch: array<f32>;
@group(0) @binding(3) var<storage, read> cache: array<u32>;
@group(0) @binding(4) var<storage, read_write> parts: array<f32>;
#if SINKS || GAINS
@group(0) @binding(5) var<storage, read> gains: array<f32>;
#endif
#include "cache.wgsl"
#include "span.wgsl"

#define THREADS 128
#define SLICES (2 * THREADS / SPAN)
#define SUB (THREADS / HEADS)

var<workgroup> q: array<f32, (HEADS * K_DIM)>;
var<workgroup> p: array<f32, (HEADS * SPAN)>;
#if SLICES > 1
var<workgroup> slices: array<f32, (SLICES * HEADS * SPAN)>;
#endif
var<workgroup> each: array<f32, THREADS>;
var<workgroup> largest: array<f32, HEADS>;
var<workgroup> total: array<f32, HEADS>;
var<workgroup> shrink: array<f32, HEADS>;
var<workgroup> sums: array<vec2<f32>, THREADS>;

fn load16(page: u32, byte: u32) -> u32 {
    return (cache[page + byte / 4u] >> (8u * (byte & 2u))) & 0xffffu;
}

fn load32(page: u32, byte: u32) -> u32 {   // at a multiple of 2
    let a = cache[page + byte / 4u];
    if ((byte & 2u) == 0u) {
        return a;
    }
    return a >> 16u | cache[page + byte / 4u + 1u] << 16u;
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

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
    let row = group.z;
    let kv_head = group.y / P_CHUNKS;
    let first = kv_head * GROUPu + group.y % P_CHUNKS * HEADSu;   // query head
    let n_heads = min(HEADSu, kv_head * GROUPu + GROUPu - first);
    let n_all = P_N_KV * GROUPu;
    let seq = step[STEP_SEQ_OF + row];
    let own = step[STEP_POSITIONS + row];
    let span = span_of(seq, own);
    let n_parts = groups.x;
    let begin = span.x / 32u * 32u;
    let n_spans = (max(span.y, begin) - begin + SPANu - 1u) / SPANu;
    let each_part = (n_spans + n_parts - 1u) / n_parts;
    let scale = scale_of(own);
    for (var i = thread; i < HEADSu * K_DIMu; i += THREADSu) {
        q[i] = scratch[P_Q + (row * n_all + min(first + i / K_DIMu, n_all - 1u)) * K_DIMu + i % K_DIMu];
    }
    if (thread < HEADSu) {
        largest[thread] = -3.0e38;
        total[thread] = 0.0;
    }
    workgroupBarrier();
#if HADAMARD_K > 1
    for (var n = 1u; n < HADAMARD_Ku; n *= 2u) {
        for (var i = thread; i < HEADSu * K_DIMu / 2u; i += THREADSu) {
            let a = i / n * 2u * n + i % n;
            let x = q[a];
            let y = q[a + n];
            q[a] = x + y;
            q[a + n] = x - y;
        }
        workgroupBarrier();
    }
    for (var i = thread; i < HEADSu * K_DIMu; i += THREADSu) {
        q[i] *= inverseSqrt(f32(HADAMARD_K));
    }
    workgroupBarrier();
#endif
#define PAIRS (V_DIM / 2)
#define TURNS ((PAIRS + THREADS - 1) / THREADS)
#repeat t T_COUNT
#repeat h HEADS
    var acc@t_@h = vec2<f32>(0.0);
#end
#end
    let n_groups = max(THREADSu / PAIRSu, 1u);
    let my_group = thread / PAIRSu;
    for (var s = group.x * each_part; s < min((group.x + 1u) * each_part, n_spans); s++) {
        let base = begin + s * SPANu;
        let pair = thread % (SPANu / 2u);
        let slice = thread / (SPANu / 2u);
        let position = base + 2u * pair;
        let is_seen = vec2<bool>((position >= span.x) && (position < span.y), (position + 1u >= span.x) && (position + 1u < span.y));
        let any_seen = is_seen.x || is_seen.y;
        var page = 0u;
        if (any_seen) {
            page = page_of(seq, position) * P_K_PAGE + P_K_WORDS;
        }
#repeat h HEADS
        var score@h = vec2<f32>(0.0);
#end
#if K_TYPE < 3
        if (any_seen) {
            for (var d = slice; d < K_DIMu; d += SLICESu) {
                let k = two_keys(page, kv_head, d, position & 31u);
#repeat h HEADS
                score@h += q[@hu * K_DIMu + d] * k;
#end
            }
        }
#else
        if (any_seen) {
#repeat h HEADS
            score@h = vec2<f32>(block_score(page, kv_head, position & 31u, @hu, slice), block_score(page, kv_head, (position & 31u) + 1u, @hu, slice));
#end
        }
#endif
#if SLICES > 1
#repeat h HEADS
        slices[(slice * HEADSu + @hu) * SPANu + 2u * pair] = score@h.x;
        slices[(slice * HEADSu + @hu) * SPANu + 2u * pair + 1u] = score@h.y;
#end
        workgroupBarrier();
        for (var i = thread; i < HEADSu * SPANu; i += THREADSu) {
            let at = base + i % SPANu;
            var sum = 0.0;
            for (var k = 0u; k < SLICESu; k++) {
                sum += slices[k * HEADSu * SPANu + i];
            }
            let s = score_of(sum, scale, first + i / SPANu, own, at);
            p[i] = select(-3.0e38, s, (at >= span.x) && (at < span.y));
        }
#else
#repeat h HEADS
        {
            let a = score_of(score@h.x, scale, first + @hu, own, position);
            let b = score_of(score@h.y, scale, first + @hu, own, position + 1u);
            p[@hu * SPANu + 2u * pair] = select(-3.0e38, a, is_seen.x);
            p[@hu * SPANu + 2u * pair + 1u] = select(-3.0e38, b, is_seen.y);
        }
#end
#endif
        workgroupBarrier();
        let h_of = thread / SUBu;
        if (h_of < HEADSu) {
            var most = -3.0e38;
            for (var i = thread % SUBu; i < SPANu; i += SUBu) {
                most = max(most, p[h_of * SPANu + i]);
            }
            each[thread] = most;
        }
        workgroupBarrier();
        if (thread < HEADSu) {
            var most = largest[thread];
            for (var i = 0u; i < SUBu; i++) {
                most = max(most, each[thread * SUBu + i]);
            }
            shrink[thread] = exp(largest[thread] - most);
            largest[thread] = most;
        }
        workgroupBarrier();
        if (h_of < HEADSu) {
            var sum = 0.0;
            for (var i = thread % SUBu; i < SPANu; i += SUBu) {
                let s = p[h_of * SPANu + i];
                let e = select(exp(s - largest[h_of]), 0.0, s < -2.9e38);
                p[h_of * SPANu + i] = e;
                sum += e;
            }
            each[thread] = sum;
        }
        workgroupBarrier();
        if (thread < HEADSu) {
            var sum = total[thread] * shrink[thread];
            for (var i = 0u; i < SUBu; i++) {
                sum += each[thread * SUBu + i];
            }
            total[thread] = sum;
        }
        let end = min(SPANu, span.y - base);
#repeat t T_COUNT
        {
#repeat h HEADS
            acc@t_@h *= shrink[@h];
#end
            let c = thread % PAIRSu + @tu * THREADSu;
            if (c < PAIRSu && my_group < n_groups) {
                for (var i = my_group + select(0u, (span.x - base) / n_groups * n_groups, span.x > base); i < end; i += n_groups) {
                    if (base + i >= span.x) {
                        let v = two_values(page_of(seq, base + i) * P_V_PAGE + P_V_WORDS, kv_head, (base + i) & 31u, c);
#repeat h HEADS
                        acc@t_@h += p[@hu * SPANu + i] * v;
#end
                    }
                }
            }
        }
#end
        workgroupBarrier();
    }
    // Adds the groups of positions, and writes the part or, if there is one, the result.
#repeat t T_COUNT
#repeat h HEADS
    {
        sums[thread] = acc@t_@h;
        workgroupBarrier();
        let c = thread + @tu * THREADSu;
        if (@hu < n_heads && thread < PAIRSu && c < PAIRSu) {
            var sum = sums[thread];
            for (var i = 1u; i < n_groups; i++) {
                sum += sums[thread + i * PAIRSu];
            }
            let head = first + @hu;
            let i = row * n_all + head;
            if (n_parts == 1u && HADAMARD_Vu == 1u) {
                let factor = final_factor(head, largest[@h], total[@h]);
                scratch[P_Y + i * V_DIMu + 2u * c] = sum.x * factor;
                scratch[P_Y + i * V_DIMu + 2u * c + 1u] = sum.y * factor;
            } else {
                let to = (i * n_parts + group.x) * (V_DIMu + 2u);
                parts[to + 2u * c] = sum.x;
                parts[to + 2u * c + 1u] = sum.y;
                if (c == 0u) {
                    parts[to + V_DIMu] = largest[@h];
                    parts[to + V_DIMu + 1u] = total[@h];
                }
            }
        }
        workgroupBarrier();
    }
#end
#end
}
