// SPDX-License-Identifier: MIT
// Attention of prompts: a group of threads computes a query head for ROWS consecutive rows of a sequence, over all of
// their positions, 64 at a time. In a span a thread computes the scores of two positions and every fourth of the rows,
// and then sums of two dimensions of the values for some of the rows.
//
// The host lists blocks of at most BLOCK_ROWS rows of a sequence (step_input.c). K_DIM, V_DIM, GROUP, HADAMARD_K,
// HADAMARD_V are those of attend.wgsl. VALUE_GROUPS: threads that share the rows of a pair of dimensions.
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
#define SPAN 64
#define SLICES 1
#define BLOCK_ROWS 16
#define SUB (THREADS / ROWS)
#define SCORE_ROWS (ROWS / 4)
#define PAIRS (V_DIM / 2)
#define VALUE_ROWS (ROWS / VALUE_GROUPS)

var<workgroup> q: array<f32, (ROWS * K_DIM)>;
var<workgroup> p: array<f32, (ROWS * SPAN)>;
var<workgroup> each: array<f32, THREADS>;
var<workgroup> largest: array<f32, ROWS>;
var<workgroup> total: array<f32, ROWS>;
var<workgroup> shrink: array<f32, ROWS>;
var<workgroup> own_of: array<u32, ROWS>;
var<workgroup> span_of_row: array<vec2<u32>, ROWS>;
var<workgroup> scale_of_row: array<f32, ROWS>;
#include "scores.wgsl"

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let block = STEP_BLOCKS + 2u * (group.y / (BLOCK_ROWSu / ROWSu));
    let skipped = group.y % (BLOCK_ROWSu / ROWSu) * ROWSu;   // rows of the block that other groups compute
    if (skipped >= step[block + 1u]) {
        return;
    }
    let first = step[block] + skipped;
    let n_rows = min(ROWSu, step[block + 1u] - skipped);
    let head = group.x;
    let kv_head = head / GROUPu;
    let n_all = P_N_KV * GROUPu;
    let seq = step[STEP_SEQ_OF + first];
    let seen = span_of(seq, step[STEP_POSITIONS + first]).x;   // positions before it may have no values
    let begin = seen / 32u * 32u;
    let end = span_of(seq, step[STEP_POSITIONS + first + n_rows - 1u]).y;
    for (var i = thread; i < ROWSu * K_DIMu; i += THREADSu) {
        let row = first + min(i / K_DIMu, n_rows - 1u);
        q[i] = scratch[P_Q + (row * n_all + head) * K_DIMu + i % K_DIMu];
    }
    if (thread < ROWSu) {
        let own = step[STEP_POSITIONS + first + min(thread, n_rows - 1u)];
        own_of[thread] = own;
        span_of_row[thread] = span_of(seq, own);
        scale_of_row[thread] = scale_of(own);
        largest[thread] = -3.0e38;
        total[thread] = 0.0;
    }
    workgroupBarrier();
#if HADAMARD_K > 1
    transform_queries(thread, ROWSu * K_DIMu);
#endif
    let value_group = thread / PAIRSu;
    let value_row = min(value_group, VALUE_GROUPSu - 1u) * VALUE_ROWSu;
#repeat t T_COUNT
#repeat k VALUE_ROWS
    var acc@t_@k = vec2<f32>(0.0);
#end
#end
    for (var base = begin; base < end; base += SPANu) {
        let pair = thread & 31u;
        let score_row = thread / 32u * SCORE_ROWSu;
        let position = base + 2u * pair;
#repeat k SCORE_ROWS
        var score@k = vec2<f32>(0.0);
#end
        if (position < end) {
            let page = page_of(seq, position) * P_K_PAGE + P_K_WORDS;
#if K_TYPE < 3
            for (var d = 0u; d < K_DIMu; d++) {
                let key = two_keys(page, kv_head, d, position & 31u);
#repeat k SCORE_ROWS
                score@k += q[(score_row + @ku) * K_DIMu + d] * key;
#end
            }
#else
#repeat k SCORE_ROWS
            score@k = vec2<f32>(block_score(page, kv_head, position & 31u, score_row + @ku, 0u), block_score(page, kv_head, (position & 31u) + 1u, score_row + @ku, 0u));
#end
#endif
        }
#repeat k SCORE_ROWS
        {
            let row = score_row + @ku;
            let span = span_of_row[row];
            let own = own_of[row];
            let a = score_of(score@k.x, scale_of_row[row], head, own, position);
            let b = score_of(score@k.y, scale_of_row[row], head, own, position + 1u);
            p[row * SPANu + 2u * pair] = select(-3.0e38, a, (position >= span.x) && (position < span.y));
            p[row * SPANu + 2u * pair + 1u] = select(-3.0e38, b, (position + 1u >= span.x) && (position + 1u < span.y));
        }
#end
        workgroupBarrier();
        let row = thread / SUBu;
        var most = -3.0e38;
        for (var i = thread % SUBu; i < SPANu; i += SUBu) {
            most = max(most, p[row * SPANu + i]);
        }
        each[thread] = most;
        workgroupBarrier();
        if (thread < ROWSu) {
            var all = largest[thread];
            for (var i = 0u; i < SUBu; i++) {
                all = max(all, each[thread * SUBu + i]);
            }
            shrink[thread] = exp(largest[thread] - all);
            largest[thread] = all;
        }
        workgroupBarrier();
        var sum = 0.0;
        for (var i = thread % SUBu; i < SPANu; i += SUBu) {
            let s = p[row * SPANu + i];
            let e = select(exp(s - largest[row]), 0.0, s < -2.9e38);
            p[row * SPANu + i] = e;
            sum += e;
        }
        each[thread] = sum;
        workgroupBarrier();
        if (thread < ROWSu) {
            var all = total[thread] * shrink[thread];
            for (var i = 0u; i < SUBu; i++) {
                all += each[thread * SUBu + i];
            }
            total[thread] = all;
        }
        let n_here = min(SPANu, end - base);
#repeat t T_COUNT
        {
#repeat k VALUE_ROWS
            acc@t_@k *= shrink[value_row + @ku];
#end
            let c = thread % PAIRSu + @tu * THREADSu;
            if ((c < PAIRSu) && (value_group < VALUE_GROUPSu)) {
                for (var i = select(0u, seen - base, seen > base); i < n_here; i++) {
                    let v = two_values(page_of(seq, base + i) * P_V_PAGE + P_V_WORDS, kv_head, (base + i) & 31u, c);
#repeat k VALUE_ROWS
                    acc@t_@k += p[(value_row + @ku) * SPANu + i] * v;
#end
                }
            }
        }
#end
        workgroupBarrier();
    }
#repeat t T_COUNT
#repeat k VALUE_ROWS
    {
        let row = value_row + @ku;
        let c = thread % PAIRSu + @tu * THREADSu;
        if ((c < PAIRSu) && (value_group < VALUE_GROUPSu) && (row < n_rows)) {
            let i = (first + row) * n_all + head;
#if HADAMARD_V > 1
            let to = i * (V_DIMu + 2u);
            parts[to + 2u * c] = acc@t_@k.x;
            parts[to + 2u * c + 1u] = acc@t_@k.y;
            if (c == 0u) {
                parts[to + V_DIMu] = largest[row];
                parts[to + V_DIMu + 1u] = total[row];
            }
#else
            let factor = final_factor(head, largest[row], total[row]);
            scratch[P_Y + i * V_DIMu + 2u * c] = acc@t_@k.x * factor;
            scratch[P_Y + i * V_DIMu + 2u * c + 1u] = acc@t_@k.y * factor;
#endif
        }
    }
#end
#end
}
