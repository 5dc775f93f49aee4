// SPDX-License-Identifier: MIT
// Ops that read and write a session's state (graph/ops.def): conv, scan, delta, shift, wkv. group.y is a sequence, whose
// rows follow each other. The state is zero if nothing is past. After n_copied rows the state is also written to the
// state copy_state.
//
// AT0 to AT4: 0 a source is in the scratch memory from P_SOURCE0 ... on, 1 it is a tensor of the model with the binding
// BINDING0 ... The sizes are in the branch of each op. P_STATES: the first state of the op, P_N_STATE: numbers from one
// session's states to the next.
#include "step.wgsl"
@group(0) @binding(2) var<storage, read_write> scratch: array<f32>;
@group(0) @binding(3) var<storage, read_write> cache: array<f32>;

#define P_SOURCE0 params[0].x
#define P_SOURCE1 params[0].y
#define P_SOURCE2 params[0].z
#define P_SOURCE3 params[0].w
#define P_SOURCE4 params[1].x
#define P_Y params[1].y
#define P_STATES params[1].z
#define P_N_STATE params[1].w
#define P_SIZE0 params[2].x
#define P_SIZE1 params[2].y
#define P_SIZE2 params[2].z
#define P_SIZE3 params[2].w
#define P_SIZE4 params[3].x
#define P_IS_INTERLEAVED params[3].y
#define P_IS_FIXED params[3].z
#define THREADS 64

#if AT0
@group(0) @binding(BINDING0) var<storage, read> w0: array<f32>;
#endif
#if AT1
@group(0) @binding(BINDING1) var<storage, read> w1: array<f32>;
#endif
#if AT2
@group(0) @binding(BINDING2) var<storage, read> w2: array<f32>;
#endif
#if AT3
@group(0) @binding(BINDING3) var<storage, read> w3: array<f32>;
#endif
#if AT4
@group(0) @binding(BINDING4) var<storage, read> w4: array<f32>;
#endif

fn x0(i: u32) -> f32 {
#if AT0
    return w0[i];
#else
    return scratch[P_SOURCE0 + i];
#endif
}

fn x1(i: u32) -> f32 {
#if AT1
    return w1[i];
#else
    return scratch[P_SOURCE1 + i];
#endif
}

fn x2(i: u32) -> f32 {
#if AT2
    return w2[i];
#else
    return scratch[P_SOURCE2 + i];
#endif
}

fn x3(i: u32) -> f32 {
#if AT3
    return w3[i];
#else
    return scratch[P_SOURCE3 + i];
#endif
}

fn x4(i: u32) -> f32 {
#if AT4
    return w4[i];
#else
    return scratch[P_SOURCE4 + i];
#endif
}

struct sequence {
    first: u32,   // row
    n_rows: u32,
    n_copied: u32,
    has_past: bool,
    state: u32,   // offsets in the cache
    copy: u32,
}

fn sequence_of(i: u32) -> sequence {
    let at = STEP_SEQS + i * 8u;
    return sequence(step[at], step[at + 1u], step[at + 4u], step[at + 2u] > 0u, P_STATES + step[at + 3u] * P_N_STATE,
                    P_STATES + step[at + 5u] * P_N_STATE);
}

#if OP_CONV
// Row t - (n - 1) of the sequence: of earlier steps from the state [n - 1, channels] for t below n - 1.
fn earlier(s: sequence, t: u32, c: u32) -> f32 {
    let n_past = P_SIZE1 - 1u;
    if (t >= n_past) {
        return x0((s.first + t - n_past) * P_SIZE0 + c);
    }
    return cache[s.state + t * P_SIZE0 + c];
}
#endif

#if OP_WKV
// Sums that are to be multiplied by exp(z), which avoids overflow: adds v, weighed by exp(k).
fn weigh(w: vec3<f32>, k: f32, v: f32) -> vec3<f32> {
    let most = max(w.z, k);
    let old = exp(w.z - most);
    let now = exp(k - most);
    return vec3<f32>(old * w.x + now * v, old * w.y + now, most);
}
#endif

#if OP_SCAN || OP_DELTA
var<workgroup> partial: array<f32, THREADS>;

fn sum_of(thread: u32, x: f32) -> f32 {   // over the 32 threads of a row of the state
    workgroupBarrier();
    partial[thread] = x;
    workgroupBarrier();
    var sum = 0.0;
    for (var i = 0u; i < 32u; i++) {
        sum += partial[(thread & 32u) + i];
    }
    return sum;
}
#endif

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let s = sequence_of(group.y);
#if OP_CONV
    // x0 [rows, channels], x1 [channels, n], x2: bias; sizes: channels, n. A thread for each channel.
    let c = group.x * THREADSu + thread;
    if (c >= P_SIZE0) {
        return;
    }
    let n = P_SIZE1;
    if (!s.has_past) {
        for (var i = 0u; i + 1u < n; i++) {
            cache[s.state + i * P_SIZE0 + c] = 0.0;
        }
    }
    for (var t = 0u; t < s.n_rows; t++) {
#if HAS_2
        var sum = x2(c);
#else
        var sum = 0.0;
#endif
        for (var i = 0u; i < n; i++) {
            sum += x1(c * n + i) * earlier(s, t + i, c);
        }
        scratch[P_Y + (s.first + t) * P_SIZE0 + c] = sum;
    }
    if (s.n_copied > 0u) {
        for (var i = 0u; i + 1u < n; i++) {
            cache[s.copy + i * P_SIZE0 + c] = earlier(s, s.n_copied + i, c);
        }
    }
    for (var i = 0u; i + 1u < n; i++) {   // in place: reads later rows than it writes
        cache[s.state + i * P_SIZE0 + c] = earlier(s, s.n_rows + i, c);
    }
#elif OP_SHIFT
    // x0 [rows, channels]; size: channels. A thread for each channel.
    let c = group.x * THREADSu + thread;
    if (c >= P_SIZE0) {
        return;
    }
    var before = 0.0;
    if (s.has_past) {
        before = cache[s.state + c];
    }
    for (var t = 0u; t < s.n_rows; t++) {
        let at = (s.first + t) * P_SIZE0 + c;
        let now = x0(at);
        scratch[P_Y + at] = before;
        before = now;
        if (t + 1u == s.n_copied) {
            cache[s.copy + c] = before;
        }
    }
    cache[s.state + c] = before;
#elif OP_WKV
    // x0 and x1 [rows, channels] k and v, x2 and x3 [channels] w and u; size: channels. A thread for each channel.
    let c = group.x * THREADSu + thread;
    let n = P_SIZE0;
    if (c >= n) {
        return;
    }
    var w = vec3<f32>(0.0, 0.0, -1.0e38);
    if (s.has_past) {
        w = vec3<f32>(cache[s.state + c], cache[s.state + n + c], cache[s.state + 2u * n + c]);
    }
    for (var t = 0u; t < s.n_rows; t++) {
        let at = (s.first + t) * n + c;
        let k = x0(at);
        let v = x1(at);
        let seen = weigh(w, x3(c) + k, v);
        scratch[P_Y + at] = seen.x / seen.y;
        w.z += x2(c);
        w = weigh(w, k, v);
        if (t + 1u == s.n_copied) {
            cache[s.copy + c] = w.x;
            cache[s.copy + n + c] = w.y;
            cache[s.copy + 2u * n + c] = w.z;
        }
    }
    cache[s.state + c] = w.x;
    cache[s.state + n + c] = w.y;
    cache[s.state + 2u * n + c] = w.z;
#else
    // Sizes: heads, dim, groups, n, numbers of a decay. 32 threads have a row of a head's state [dim, n]; thread i has
    // its numbers i, i + 32, ..., COUNT of them.
    let at = group.x * 2u + thread / 32u;
    let lane = thread & 31u;
    let is_row = at < P_SIZE0 * P_SIZE1;
    let head = min(at / P_SIZE1, P_SIZE0 - 1u);
    let index = at % P_SIZE1;
    let n = P_SIZE3;
    let row = at * n;
#repeat i COUNT
    let k@i = lane + 32u * @iu;
    let is@i = is_row && (k@i < n);
    var v@i = 0.0;
    if (is@i && s.has_past) {
        v@i = cache[s.state + row + k@i];
    }
#end
    let group_of = select(head / (P_SIZE0 / P_SIZE2), head % P_SIZE2, P_IS_INTERLEAVED == 1u);
    for (var t = 0u; t < s.n_rows; t++) {
        let h = (s.first + t) * P_SIZE0 + head;
        let keys = ((s.first + t) * P_SIZE2 + group_of) * n;
#if OP_SCAN
        // x0 x [rows, heads, dim], x1 dt [rows, heads], x2 a [heads, 1 or n], x3 and x4 b and c [rows, groups, n].
        let dt = x1(h);
        let x = x0(h * P_SIZE1 + index);
        var sum = 0.0;
#repeat i COUNT
        if (is@i) {
            let decay = x2(select(head * n + k@i, head, P_SIZE4 == 1u));
            v@i = exp(dt * decay) * v@i + dt * x * x3(keys + k@i);
            sum += v@i * x4(keys + k@i);
        }
#end
#else
        // x0 v [rows, heads, dim], x1 and x2 k and q [rows, groups, n], x3 g [rows, heads, 1 or n] or, fixed, [heads],
        // x4 beta [rows, heads].
        let g = select(h * P_SIZE4, head, P_IS_FIXED == 1u);
        let v = x0(h * P_SIZE1 + index);
        var known = 0.0;
#repeat i COUNT
        if (is@i) {
            v@i *= exp(x3(g + select(k@i, 0u, P_SIZE4 == 1u)));
            known += v@i * x1(keys + k@i);
        }
#end
#if HAS_4
        let news = (v - sum_of(thread, known)) * x4(h);
#else
        let news = v;
#endif
        var sum = 0.0;
#repeat i COUNT
        if (is@i) {
            v@i += news * x1(keys + k@i);
            sum += v@i * x2(keys + k@i);
        }
#end
#endif
        let all = sum_of(thread, sum);
        if (is_row && (lane == 0u)) {
            scratch[P_Y + h * P_SIZE1 + index] = all;
        }
        if (t + 1u == s.n_copied) {
#repeat i COUNT
            if (is@i) {
                cache[s.copy + row + k@i] = v@i;
            }
#end
        }
    }
#repeat i COUNT
    if (is@i) {
        cache[s.state + row + k@i] = v@i;
    }
#end
#endif
}
