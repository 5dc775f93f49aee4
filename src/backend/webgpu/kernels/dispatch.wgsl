// SPDX-License-Identifier: MIT
// Sorts the assignments of a route by expert, so that products read the matrix of an expert once for several
// assignments. Assignment a is expert a % P_USED of row a / P_USED. One group of threads.
//
// Writes P_MOST groups of at most GROUP assignments, each as three numbers: the expert, the index of its first
// assignment in the order, their number (0: none); and the order. All are whole numbers in f32.
#include "step.wgsl"
@group(0) @binding(2) var<storage, read_write> scratch: array<f32>;

#define P_ROUTE params[0].x
#define P_USED params[0].y
#define P_LISTS params[0].z
#define P_ORDER params[0].w
#define P_MOST params[1].x
#define THREADS 256
#define EACH ((N_EXPERTS + THREADS - 1) / THREADS)

var<workgroup> counts: array<atomic<u32>, (N_EXPERTS)>;
var<workgroup> firsts: array<vec2<u32>, THREADS>;   // of a thread's experts: assignments and groups before them
var<workgroup> n_groups: u32;

fn expert_of(a: u32) -> u32 {
    return min(u32(scratch[P_ROUTE + a / P_USED * 2u * P_USED + a % P_USED]), N_EXPERTSu - 1u);
}

fn groups_of(count: u32) -> u32 {
    return (count + GROUPu - 1u) / GROUPu;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) thread: u32) {
    let n = row_count() * P_USED;
    for (var e = thread; e < N_EXPERTSu; e += THREADSu) {
        atomicStore(&counts[e], 0u);
    }
    workgroupBarrier();
    for (var a = thread; a < n; a += THREADSu) {
        atomicAdd(&counts[expert_of(a)], 1u);
    }
    workgroupBarrier();
    let begin = min(thread * EACHu, N_EXPERTSu);
    let end = min(begin + EACHu, N_EXPERTSu);
    var own = vec2<u32>(0u);
    for (var e = begin; e < end; e++) {
        let count = atomicLoad(&counts[e]);
        own += vec2<u32>(count, groups_of(count));
    }
    firsts[thread] = own;
    workgroupBarrier();
    if (thread == 0u) {
        var sum = vec2<u32>(0u);
        for (var i = 0u; i < THREADSu; i++) {
            let x = firsts[i];
            firsts[i] = sum;
            sum += x;
        }
        n_groups = sum.y;
    }
    workgroupBarrier();
    var at = firsts[thread];
    for (var e = begin; e < end; e++) {
        let count = atomicLoad(&counts[e]);
        for (var i = 0u; i < count; i += GROUPu) {
            let to = P_LISTS + 3u * at.y;
            scratch[to] = f32(e);
            scratch[to + 1u] = f32(at.x + i);
            scratch[to + 2u] = f32(min(count - i, GROUPu));
            at.y += 1u;
        }
        atomicStore(&counts[e], at.x);   // from here on: where the next assignment goes
        at.x += count;
    }
    for (var g = n_groups + thread; g < P_MOST; g += THREADSu) {
        scratch[P_LISTS + 3u * g] = 0.0;
        scratch[P_LISTS + 3u * g + 1u] = 0.0;
        scratch[P_LISTS + 3u * g + 2u] = 0.0;
    }
    workgroupBarrier();
    for (var a = thread; a < n; a += THREADSu) {
        scratch[P_ORDER + atomicAdd(&counts[expert_of(a)], 1u)] = f32(a);
    }
}
