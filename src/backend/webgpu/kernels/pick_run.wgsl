// SPDX-License-Identifier: MIT
// Picks (sample/pick.h) that give the CPU's token: with biases, penalties and masks; of the likeliest token, of the
// top_k likeliest, or of all. A dispatch for each STAGE, with a group of threads for each pick or 64:
//
//     0  biases and penalties, which change the logits (one group)
//     1  the largest logit; for lists, the number of tokens by the upper 11 bits of the logit
//     2  for lists, their number by the next 11 bits
//     3  the list: tokens that may be among the top_k, in any order; or sums of weights of all tokens
//     4  top-p, min-p, the draw (one group)
//
// pick.wgsl has looked at the unchanged logits, if there are changes, and says what `picked` has.
#include "step.wgsl"
@group(0) @binding(2) var<storage, read_write> scratch: array<f32>;
@group(0) @binding(3) var<storage, read_write> picked: array<u32>;
@group(0) @binding(4) var<storage, read_write> work: array<atomic<u32>>;

#define P_LOGITS params[0].x
#define P_N_VOCAB params[0].y
#define P_PARTS params[0].z
#define P_ZERO params[0].w
#include "exact.wgsl"

#define THREADS 256
#define GROUPS 64
#define KEY_OF_MINUS_INFINITY 0x007fffffu
#define LIKELIEST 0
#define LIST 1
#define ALL 2

// Words of a pick in the input of the step (step.wgsl, picks.c).
#define PICK_WORDS 18
#define OF_ROW 0u
#define OF_BIASES 1u
#define OF_COUNTS 3u
#define OF_UNKNOWN 5u
#define OF_MASK 6u
#define OF_KIND 7u
#define OF_TOP_K 8u
#define OF_TEMP 9u
#define OF_TOP_P 10u
#define OF_MIN_P 11u
#define OF_DRAWN 13u
#define OF_REPEAT 15u

// Words of a pick in `work`, which are 0 between steps, apart from sums and lists.
#define BINS 2048
#define AT_BINS 0u
#define AT_LOWER_BINS 2048u
#define AT_LENGTH 4096u
#define AT_FLAGS 4097u
#define AT_SUMS 4098u
#define AT_LIST 4226u
#define MOST_LISTED 512
#define WORK_WORDS 5250u

fn pick_word(pick: u32, i: u32) -> u32 {
    return step[STEP_PICKS + pick * PICK_WORDSu + i];
}

fn pick_float(pick: u32, i: u32) -> f32 {
    return bitcast<f32>(pick_word(pick, i));
}

fn row_of(pick: u32) -> u32 {
    return P_LOGITS + pick_word(pick, OF_ROW) * P_N_VOCAB;
}

fn has_changes(pick: u32) -> bool {
    return (pick_word(pick, OF_BIASES) + pick_word(pick, OF_COUNTS) > 0u) || (pick_word(pick, OF_UNKNOWN) != 0x7fffffffu);
}

// Integers in the order of logits. Tokens that are masked have that of -infinity.
fn key_at(pick: u32, token: u32) -> u32 {
    let mask = pick_word(pick, OF_MASK);
    if ((mask != 0u) && (((step[mask + token / 32u] >> (token & 31u)) & 1u) == 0u)) {
        return KEY_OF_MINUS_INFINITY;
    }
    let bits = bitcast<u32>(scratch[row_of(pick) + token]);
    let b = select(bits, 0u, bits == 0x80000000u);
    return select(b | 0x80000000u, ~b, (b >> 31u) == 1u);
}

fn logit_of(key: u32) -> f32 {
    return bitcast<f32>(select(~key, key & 0x7fffffffu, (key >> 31u) == 1u));
}

fn each_group() -> u32 {   // tokens
    return (P_N_VOCAB + GROUPSu - 1u) / GROUPSu;
}

var<workgroup> sums: array<vec2<u32>, THREADS>;

// Sums of the numbers of threads 0 to i, in sums[i].
fn sum_up(thread: u32, own: vec2<u32>) {
    workgroupBarrier();
    sums[thread] = own;
    workgroupBarrier();
    for (var n = 1u; n < THREADSu; n *= 2u) {
        var before = vec2<u32>(0u);
        if (thread >= n) {
            before = sums[thread - n];
        }
        workgroupBarrier();
        sums[thread] = sum_64(sums[thread], before);
        workgroupBarrier();
    }
}

#if STAGE > 0
var<workgroup> best: array<vec3<u32>, THREADS>;   // key, token, flags

fn find_best(thread: u32, own: vec3<u32>) {
    best[thread] = own;
    for (var n = THREADSu / 2u; n > 0u; n /= 2u) {
        workgroupBarrier();
        if (thread < n) {
            let a = best[thread];
            let b = best[thread + n];
            let is_b = (b.x > a.x) || ((b.x == a.x) && (b.y < a.y));
            best[thread] = vec3<u32>(select(a.xy, b.xy, is_b), a.z | b.z);
        }
    }
    workgroupBarrier();
}

// The best of the groups of stage 1.
fn find_best_of_groups(pick: u32, thread: u32) {
    var own = vec3<u32>(0u, 0xffffffffu, 0u);
    if (thread < GROUPSu) {
        let part = P_PARTS + (pick * GROUPSu + thread) * 4u;
        own = vec3<u32>(picked[part], picked[part + 1u], picked[part + 2u]);
    }
    find_best(thread, own);
}
#endif

#if STAGE == 2 || STAGE == 3 || STAGE == 4
var<workgroup> found_bin: vec2<u32>;   // the bin in which the number of tokens reaches `wanted`; tokens above it

fn find_bin(thread: u32, bins: u32, wanted: u32) -> vec2<u32> {
    let top = BINSu - 1u - thread * 8u;
    var own = 0u;
    for (var i = 0u; i < 8u; i++) {
        own += atomicLoad(&work[bins + top - i]);
    }
    sum_up(thread, vec2<u32>(own, 0u));
    if (thread == 0u) {
        found_bin = vec2<u32>(0u, 0u);   // if there are fewer tokens, all are above
    }
    workgroupBarrier();
    var before = sums[thread].x - own;
    if ((before < wanted) && (before + own >= wanted)) {
        for (var i = 0u; i < 8u; i++) {
            let n = atomicLoad(&work[bins + top - i]);
            if ((before < wanted) && (before + n >= wanted)) {
                found_bin = vec2<u32>(top - i, before);
            }
            before += n;
        }
    }
    workgroupBarrier();
    return found_bin;
}
#endif

#if STAGE == 1 || STAGE == 2
var<workgroup> bins: array<atomic<u32>, BINS>;

fn clear_bins(thread: u32) {   // workgroup memory need not be zero
    for (var i = thread; i < BINSu; i += THREADSu) {
        atomicStore(&bins[i], 0u);
    }
    workgroupBarrier();
}
#endif

#if STAGE == 0
// ------------------------------------------------------------------------------- changes

fn penalize(pick: u32, token: u32, count: u32) {
    let at = row_of(pick) + token;
    let old = scratch[at];
    let factor = pick_float(pick, OF_REPEAT);
    var x = kept(old * factor);
    if (old > 0.0) {
        x = quotient(old, factor);
    }
    x = kept(x - kept(kept(f32(count) * pick_float(pick, OF_REPEAT + 1u)) + pick_float(pick, OF_REPEAT + 2u)));
    scratch[at] = select(x, 3.402823466e38, x > 3.402823466e38);
}

var<workgroup> is_known: atomic<u32>;   // the token of the step before is among the counts
var<workgroup> flags: atomic<u32>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let pick = group.y;
    let base = pick * WORK_WORDS;
    if (!has_changes(pick)) {
        return;
    }
    if (thread == 0u) {
        atomicStore(&flags, 0u);
        atomicStore(&is_known, 0u);
    }
    workgroupBarrier();
    if (thread < GROUPSu) {
        atomicOr(&flags, picked[P_PARTS + (pick * GROUPSu + thread) * 4u + 2u]);
    }
    let biases = pick_word(pick, OF_BIASES + 1u);
    for (var i = 0u; i < pick_word(pick, OF_BIASES); i++) {
        let token = step[biases + 2u * i];
        if (token % THREADSu == thread) {   // which adds several biases of a token in their order
            let at = row_of(pick) + token;
            scratch[at] = kept(scratch[at] + bitcast<f32>(step[biases + 2u * i + 1u]));
        }
    }
    storageBarrier();
    workgroupBarrier();
    if (thread == 0u) {
        atomicStore(&work[base + AT_FLAGS], atomicLoad(&flags));
    }
    var unknown = pick_word(pick, OF_UNKNOWN);
    if (unknown >= 0x80000000u) {   // what pick ~unknown of the step before picked
        unknown = picked[4u * ~unknown];
    }
    let counts = pick_word(pick, OF_COUNTS + 1u);
    for (var i = thread; i < pick_word(pick, OF_COUNTS); i += THREADSu) {
        let token = step[counts + 2u * i];
        let count = step[counts + 2u * i + 1u];
        if (token == unknown) {
            atomicStore(&is_known, 1u);
        }
        if (count > 0u) {
            penalize(pick, token, count + select(0u, 1u, token == unknown));
        }
    }
    workgroupBarrier();
    if ((thread == 0u) && (unknown < P_N_VOCAB) && (atomicLoad(&is_known) == 0u)) {
        penalize(pick, unknown, 1u);
    }
}
#endif

#if STAGE == 1
// ------------------------------------------------------------------------------- the largest logit

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let pick = group.y;
    let base = pick * WORK_WORDS;
    let is_list = pick_word(pick, OF_KIND) == LISTu;
    let begin = group.x * each_group();
    clear_bins(thread);
    var own = vec3<u32>(0u, 0xffffffffu, 0u);
    for (var i = begin + thread; i < min(begin + each_group(), P_N_VOCAB); i += THREADSu) {
        let bits = bitcast<u32>(scratch[row_of(pick) + i]);
        let key = key_at(pick, i);
        if ((bits & 0x7f800000u) == 0x7f800000u) {
            own.z |= select(3u, 1u, bits == 0xff800000u);
        }
        if ((key > own.x) || (own.y == 0xffffffffu)) {
            own = vec3<u32>(key, i, own.z);
        }
        if (is_list && (key > KEY_OF_MINUS_INFINITY)) {
            atomicAdd(&bins[key >> 21u], 1u);
        }
    }
    find_best(thread, own);
    if (thread == 0u) {
        let to = P_PARTS + (pick * GROUPSu + group.x) * 4u;
        picked[to] = best[0].x;
        picked[to + 1u] = best[0].y;
        picked[to + 2u] = best[0].z;
    }
    for (var i = thread; is_list && (i < BINSu); i += THREADSu) {
        let n = atomicLoad(&bins[i]);
        if (n > 0u) {
            atomicAdd(&work[base + AT_BINS + i], n);
        }
    }
}
#endif

#if STAGE == 2
// ------------------------------------------------------------------------------- lower bins

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let pick = group.y;
    let base = pick * WORK_WORDS;
    if (pick_word(pick, OF_KIND) != LISTu) {
        return;
    }
    let upper = find_bin(thread, base + AT_BINS, pick_word(pick, OF_TOP_K)).x;
    let begin = group.x * each_group();
    clear_bins(thread);
    for (var i = begin + thread; i < min(begin + each_group(), P_N_VOCAB); i += THREADSu) {
        let key = key_at(pick, i);
        if ((key > KEY_OF_MINUS_INFINITY) && (key >> 21u == upper)) {
            atomicAdd(&bins[(key >> 10u) & 2047u], 1u);
        }
    }
    workgroupBarrier();
    for (var i = thread; i < BINSu; i += THREADSu) {
        let n = atomicLoad(&bins[i]);
        if (n > 0u) {
            atomicAdd(&work[base + AT_LOWER_BINS + i], n);
        }
    }
}
#endif

#if STAGE == 3 || STAGE == 4
// The upper 22 bits of the least key of a list, and the number of tokens above these keys.
fn find_prefix(pick: u32, thread: u32) -> vec2<u32> {
    let base = pick * WORK_WORDS;
    let wanted = pick_word(pick, OF_TOP_K);
    let upper = find_bin(thread, base + AT_BINS, wanted);
    workgroupBarrier();
    let lower = find_bin(thread, base + AT_LOWER_BINS, wanted - upper.y);
    return vec2<u32>((upper.x << 11u) | lower.x, upper.y + lower.y);
}

// The weight of a token of a pick of all.
fn weight_of_token(pick: u32, token: u32, most: f32) -> u32 {
    let key = key_at(pick, token);
    let logit = logit_of(key);
    let is_cut = (pick_word(pick, OF_MIN_P) != 0u) && !(logit >= kept(most + pick_float(pick, OF_MIN_P + 1u)));
    if ((key <= KEY_OF_MINUS_INFINITY) || is_cut) {
        return 0u;
    }
    return weight_at(logit, most, pick_float(pick, OF_TEMP));
}
#endif

#if STAGE == 3
// ------------------------------------------------------------------------------- the list, or sums

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let pick = group.y;
    let base = pick * WORK_WORDS;
    let kind = pick_word(pick, OF_KIND);
    let begin = group.x * each_group();
    let end = min(begin + each_group(), P_N_VOCAB);
    if (kind == LISTu) {
        let least = max(find_prefix(pick, thread).x << 10u, KEY_OF_MINUS_INFINITY + 1u);
        for (var i = begin + thread; i < end; i += THREADSu) {
            let key = key_at(pick, i);
            if (key >= least) {
                let at = atomicAdd(&work[base + AT_LENGTH], 1u);
                if (at < MOST_LISTEDu) {
                    atomicStore(&work[base + AT_LIST + 2u * at], key);
                    atomicStore(&work[base + AT_LIST + 2u * at + 1u], i);
                }
            }
        }
    } else if (kind == ALLu) {
        find_best_of_groups(pick, thread);
        let most = logit_of(best[0].x);
        var sum = vec2<u32>(0u);
        for (var i = begin + thread; i < end; i += THREADSu) {
            sum = sum_64(sum, vec2<u32>(weight_of_token(pick, i, most), 0u));
        }
        sum_up(thread, sum);
        if (thread == THREADSu - 1u) {
            atomicStore(&work[base + AT_SUMS + 2u * group.x], sums[thread].x);
            atomicStore(&work[base + AT_SUMS + 2u * group.x + 1u], sums[thread].y);
        }
    }
}
#endif

#if STAGE == 4
#include "pick_end.wgsl"
#endif
