// SPDX-License-Identifier: MIT
// The likeliest token of rows of logits, the one with the lowest id among several. PASS 0: GROUPS groups of threads look
// at a part of a row each; PASS 1: a group of threads compares the parts. Logits are compared as integers in the same
// order, so NaN and infinity are seen on all GPUs.
//
// `picked` has four words for each pick: the token, which the next step may read, the status (sample/pick.h), and 1 if
// some logit is not finite. The parts are from P_PARTS on.
#include "step.wgsl"
@group(0) @binding(2) var<storage, read_write> scratch: array<f32>;
@group(0) @binding(3) var<storage, read_write> picked: array<u32>;

#define P_LOGITS params[0].x
#define P_N_VOCAB params[0].y
#define P_PARTS params[0].z
#define GROUPS 64
#define PICK_WORDS 18   // of the input of the step, the first of which is the row
#if PASS == 0
#define THREADS 256
#else
#define THREADS GROUPS
#endif
#define KEY_OF_MINUS_INFINITY 0x007fffffu

var<workgroup> keys: array<u32, (THREADS)>;
var<workgroup> tokens: array<u32, (THREADS)>;
var<workgroup> flags: array<u32, (THREADS)>;   // 1: not finite, 2: NaN or infinity

fn compare(thread: u32) {
    for (var n = THREADSu / 2u; n > 0u; n /= 2u) {
        workgroupBarrier();
        if (thread < n) {
            let key = keys[thread + n];
            let token = tokens[thread + n];
            if ((key > keys[thread]) || ((key == keys[thread]) && (token < tokens[thread]))) {
                keys[thread] = key;
                tokens[thread] = token;
            }
            flags[thread] |= flags[thread + n];
        }
    }
    workgroupBarrier();
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let pick = group.y;
#if PASS == 0
    let each = (P_N_VOCAB + GROUPSu - 1u) / GROUPSu;
    let begin = group.x * each;
    let row = P_LOGITS + step[STEP_PICKS + pick * PICK_WORDSu] * P_N_VOCAB;
    var key = 0u;
    var token = 0xffffffffu;
    var flag = 0u;
    for (var i = begin + thread; i < min(begin + each, P_N_VOCAB); i += THREADSu) {
        var b = bitcast<u32>(scratch[row + i]);
        if ((b & 0x7f800000u) == 0x7f800000u) {
            flag |= select(3u, 1u, b == 0xff800000u);
        }
        b = select(b, 0u, b == 0x80000000u);
        let own = select(b | 0x80000000u, ~b, (b >> 31u) == 1u);
        if ((own > key) || (token == 0xffffffffu)) {
            key = own;
            token = i;
        }
    }
    keys[thread] = key;
    tokens[thread] = token;
    flags[thread] = flag;
    compare(thread);
    if (thread == 0u) {
        let to = P_PARTS + (pick * GROUPSu + group.x) * 4u;
        picked[to] = keys[0];
        picked[to + 1u] = tokens[0];
        picked[to + 2u] = flags[0];
    }
#else
    let from_part = P_PARTS + (pick * GROUPSu + thread) * 4u;
    keys[thread] = picked[from_part];
    tokens[thread] = picked[from_part + 1u];
    flags[thread] = picked[from_part + 2u];
    compare(thread);
    if (thread == 0u) {
        var status = 0u;
        if (keys[0] <= KEY_OF_MINUS_INFINITY) {
            status = 2u;
        }
        if ((flags[0] & 2u) != 0u) {
            status = 1u;
        }
        picked[pick * 4u] = select(0u, tokens[0], status == 0u);
        picked[pick * 4u + 1u] = status;
        picked[pick * 4u + 2u] = flags[0] & 1u;
    }
#endif
}
