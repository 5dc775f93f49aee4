// SPDX-License-Identifier: MIT
// Op route: the experts of each row, and their weights. A group of 64 threads for each row.
//
// N_SCORES, N_USED, N_GROUPS, N_GROUPS_USED, GATING, BY_SIGMOID, BY_LOGIT, NORMALIZE, DIVISOR: the op (graph/graph.h).
// P_FACTOR0: the scale of weights, 0: none. P_FACTOR1: jitter. Scores that were chosen or are not allowed are OUT.
#include "sources.wgsl"

#define THREADS 64
#define OUT -3.4e38
#define GATING_SOFTMAX 1
#define GATING_SIGMOID 2
#define GATING_SOFTMAX_SELECTED 3
#define GATING_SQRT_SOFTPLUS 4
#define GATING_NEAR_BEST 5

var<workgroup> p: array<f32, (N_SCORES)>;
var<workgroup> s: array<f32, (N_SCORES)>;
var<workgroup> weights: array<f32, (N_USED)>;
var<workgroup> sums: array<f32, (N_GROUPS + 1)>;
var<workgroup> values: array<f32, THREADS>;
var<workgroup> indices: array<u32, THREADS>;

fn sum_of(thread: u32, x: f32) -> f32 {
    workgroupBarrier();
    values[thread] = x;
    for (var n = THREADSu / 2u; n > 0u; n /= 2u) {
        workgroupBarrier();
        if (thread < n) {
            values[thread] += values[thread + n];
        }
    }
    workgroupBarrier();
    return values[0];
}

// The index of the largest score, the first of equal ones. All threads of the group call it.
fn best_score(thread: u32) -> u32 {
    var most = s[min(thread, N_SCORESu - 1u)];
    var at = min(thread, N_SCORESu - 1u);
    for (var i = thread + THREADSu; i < N_SCORESu; i += THREADSu) {
        if (s[i] > most) {
            most = s[i];
            at = i;
        }
    }
    workgroupBarrier();
    values[thread] = most;
    indices[thread] = at;
    for (var n = THREADSu / 2u; n > 0u; n /= 2u) {
        workgroupBarrier();
        if (thread < n) {
            let other = values[thread + n];
            if ((other > values[thread]) || ((other == values[thread]) && (indices[thread + n] < indices[thread]))) {
                values[thread] = other;
                indices[thread] = indices[thread + n];
            }
        }
    }
    workgroupBarrier();
    return indices[0];
}

fn probability(gating: u32, x: f32) -> f32 {
    if (gating == GATING_SIGMOIDu) {
        return 1.0 / (1.0 + exp(-x));
    }
    if (gating == GATING_SQRT_SOFTPLUSu) {
        let e = exp(-abs(x));
        return sqrt(max(x, 0.0) + select(log(1.0 + e), e - 0.5 * e * e, e < 0.0005));
    }
    return x;
}

#if N_GROUPS > 1
#define SIZE (N_SCORES / N_GROUPS)

fn best_two(first: u32) -> f32 {
    var a = OUT;
    var b = OUT;
    for (var i = 0u; i < SIZEu; i++) {
        let x = s[first + i];
        b = max(b, min(a, x));
        a = max(a, x);
    }
    return a + b;
}

// Excludes all experts outside of the best groups of experts.
fn keep_best_groups(thread: u32) {
    for (var g = thread; g < N_GROUPSu; g += THREADSu) {
        sums[g] = best_two(g * SIZEu);
    }
    workgroupBarrier();
    if (thread == 0u) {
        for (var k = 0u; k < N_GROUPS_USEDu; k++) {
            var best = 0u;
            for (var g = 1u; g < N_GROUPSu; g++) {
                if (sums[g] > sums[best]) {
                    best = g;
                }
            }
            sums[best] = OUT;
        }
    }
    workgroupBarrier();
    for (var i = thread; i < SIZEu * N_GROUPSu; i += THREADSu) {
        if (sums[i / SIZEu] != OUT) {
            s[i] = OUT;
        }
    }
    workgroupBarrier();
}
#endif

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let x_at = group.y * N_SCORESu;
    let y_at = P_Y + group.y * 2u * N_USEDu;
    for (var i = thread; i < N_SCORESu; i += THREADSu) {
        p[i] = probability(GATINGu, x0(x_at + i));
    }
    workgroupBarrier();
#if GATING == GATING_SOFTMAX
    var most = OUT;
    for (var i = 0u; i < N_SCORESu; i++) {
        most = max(most, p[i]);
    }
    var all = 0.0;
    workgroupBarrier();
    for (var i = thread; i < N_SCORESu; i += THREADSu) {
        p[i] = exp(p[i] - most);
        all += p[i];
    }
    let total = sum_of(thread, all);
    for (var i = thread; i < N_SCORESu; i += THREADSu) {
        p[i] /= total;
    }
    workgroupBarrier();
#endif
    for (var i = thread; i < N_SCORESu; i += THREADSu) {
#if BY_LOGIT
        var score = x0(x_at + i);
#elif BY_SIGMOID
        var score = probability(GATING_SIGMOIDu, x0(x_at + i));
#else
        var score = p[i];
#endif
#if HAS_BIAS
        score += x1(i);
#endif
        s[i] = score;
    }
    workgroupBarrier();
#if N_GROUPS > 1
    keep_best_groups(thread);
#endif
    for (var k = 0u; k < N_USEDu; k++) {
        let e = best_score(thread);
#if GATING == GATING_NEAR_BEST
        let top = s[e];
        var near = 0.0;
        for (var i = thread; i < N_SCORESu; i += THREADSu) {
            if ((s[i] != OUT) && ((top - s[i]) / max(abs(s[i]), top) <= 2.0 * P_FACTOR1)) {
                near += exp(s[i] - top);
            }
        }
        let weight = 1.0 / sum_of(thread, near);
#else
        let weight = p[e / DIVISORu];
#endif
        workgroupBarrier();
        if (thread == 0u) {
            scratch[y_at + k] = f32(e / DIVISORu);
            weights[k] = weight;
            s[e] = OUT;
        }
        workgroupBarrier();
    }
    if (thread == 0u) {
        var sum = 0.0;
#if GATING == GATING_SOFTMAX_SELECTED
        var largest = OUT;
        for (var k = 0u; k < N_USEDu; k++) {
            largest = max(largest, weights[k]);
        }
        for (var k = 0u; k < N_USEDu; k++) {
            weights[k] = exp(weights[k] - largest);
            sum += weights[k];
        }
        for (var k = 0u; k < N_USEDu; k++) {
            weights[k] /= sum;
        }
        sum = 0.0;
#endif
        for (var k = 0u; k < N_USEDu; k++) {
            sum += weights[k];
        }
        for (var k = 0u; k < N_USEDu; k++) {
            var weight = weights[k];
#if NORMALIZE
            weight /= max(sum, 6.103515625e-5);
#endif
            if (P_FACTOR0 != 0.0) {
                weight *= P_FACTOR0;
            }
            scratch[y_at + N_USEDu + k] = weight;
        }
    }
}
