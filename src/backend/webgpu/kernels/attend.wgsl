// SPDX-License-Identifier: MIT
// Attention of one row: a group of threads computes HEADS query heads that share a head of the cache, over the positions
// of a part, SPAN at a time. In a span a thread computes the scores of two positions, from every SLICES-th dimension, and
// then sums of two dimensions of the values. Several parts of a row are added by attend_sum.wgsl; with PACKS all are.
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
// Dimensions of keys, and positions of values, that a thread loads at a time.
#define VALUES 4
#if K_DIM / (4 * SLICES) * 4 * SLICES == K_DIM
#define KEYS 4
#else
#define KEYS 1
#endif

var<workgroup> q: array<f32, (HEADS * K_DIM)>;
var<workgroup> p: array<f32, (HEADS * SPAN)>;
#if SLICES > 1
var<workgroup> slices: array<f32, (SLICES * HEADS * SPAN)>;
#endif
var<workgroup> value_pages: array<u32, (SPAN / 32)>;   // first words of the span's pages
var<workgroup> each: array<f32, THREADS>;
var<workgroup> largest: array<f32, HEADS>;
var<workgroup> total: array<f32, HEADS>;
var<workgroup> shrink: array<f32, HEADS>;
var<workgroup> sums: array<vec2<f32>, THREADS>;
#include "scores.wgsl"

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
    transform_queries(thread, HEADSu * K_DIMu);
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
        if ((thread < SPANu / 32u) && (base + thread * 32u < span.y)) {
            value_pages[thread] = page_of(seq, base + thread * 32u) * P_V_PAGE + P_V_WORDS;
        }
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
            for (var d = slice; d < K_DIMu; d += KEYSu * SLICESu) {
#repeat k KEYS
                let k@k = two_keys(page, kv_head, d + @ku * SLICESu, position & 31u);
#end
#repeat h HEADS
#repeat k KEYS
                score@h += q[@hu * K_DIMu + d + @ku * SLICESu] * k@k;
#end
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
        // Weights of positions that are not seen are 0, and the first or last one that is seen is loaded instead.
        let first_seen = select(0u, span.x - base, span.x > base);
        let last_seen = min(SPANu, span.y - base) - 1u;
#repeat t T_COUNT
        {
#repeat h HEADS
            acc@t_@h *= shrink[@h];
#end
            let c = thread % PAIRSu + @tu * THREADSu;
            if (c < PAIRSu && my_group < n_groups) {
                for (var i = my_group; i <= last_seen; i += VALUESu * n_groups) {
#repeat k VALUES
                    let at@k = clamp(i + @ku * n_groups, first_seen, last_seen);
                    let v@k = two_values(value_pages[at@k / 32u], kv_head, (base + at@k) & 31u, c);
#end
#repeat k VALUES
                    if (i + @ku * n_groups <= last_seen) {
#repeat h HEADS
                        acc@t_@h += p[@hu * SPANu + i + @ku * n_groups] * v@k;
#end
                    }
#end
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
            if (n_parts == 1u && HADAMARD_Vu == 1u && PACKSu == 0u) {
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
