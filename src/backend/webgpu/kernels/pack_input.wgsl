// SPDX-License-Identifier: MIT
// Making the input of products: 64 threads write a block of 256 columns, thread i columns 4 i to 4 i + 3.
//
// IS_INT: integers of 15 bits, 128 * high + low, times a factor for each block. In units of 16 bytes a block has for
// each 32 columns 2 units of high and 2 of low bytes, and a unit with the sums of the first and last 16 integers (f32)
// and the factor. Otherwise: f32.
// A factor that is not finite makes all products of the block so. THREADS: of a group. `acts` is declared by the kernel.
#if IS_INT
#define BLOCK_WORDS 160
var<workgroup> largest: array<f32, (THREADS)>;
var<workgroup> larger: array<f32, (THREADS / 8)>;
var<workgroup> partial: array<f32, (THREADS)>;

fn larger_of(a: f32, b: f32) -> f32 {
    if (is_bad(a)) {
        return a;
    }
    if (is_bad(b)) {
        return b;
    }
    return max(a, b);
}

fn packed(q: vec4<i32>) -> u32 {
    let b = vec4<u32>(q) & vec4<u32>(0xffu);
    return b.x | (b.y << 8u) | (b.z << 16u) | (b.w << 24u);
}

// All threads of the group call it; at: the word where the block begins.
fn pack_block(thread: u32, at: u32, x: vec4<f32>, is_used: bool) {
    let t = thread & 63u;
    let a = abs(x);
    largest[thread] = larger_of(larger_of(a.x, a.y), larger_of(a.z, a.w));
    workgroupBarrier();
    if (thread < THREADSu / 8u) {
        var most = 0.0;
        for (var i = 0u; i < 8u; i++) {
            most = larger_of(most, largest[thread * 8u + i]);
        }
        larger[thread] = most;
    }
    workgroupBarrier();
    var most = 0.0;
    for (var i = 0u; i < 8u; i++) {
        most = larger_of(most, larger[thread / 64u * 8u + i]);
    }
    let factor = most / 16256.0;
    let inverse = 1.0 / factor;
    var q = vec4<i32>(0);
    if (factor > 0.0 && !is_bad(factor) && !is_bad(inverse)) {
        q = clamp(vec4<i32>(round(x * inverse)), vec4<i32>(-16256), vec4<i32>(16256));
    }
    let high = (q + vec4<i32>(64)) >> vec4<u32>(7u);
    partial[thread] = f32(q.x + q.y + q.z + q.w);
    workgroupBarrier();
    if (!is_used) {
        return;
    }
    let word = at + t / 8u * 20u + (t & 7u);
    acts[word] = packed(high);
    acts[word + 8u] = packed(q - (high << vec4<u32>(7u)));
    if (t < 16u) {
        let k = thread / 64u * 64u + 4u * t;
        acts[at + t / 2u * 20u + 16u + (t & 1u)] = bitcast<u32>(partial[k] + partial[k + 1u] + partial[k + 2u] + partial[k + 3u]);
    } else if (t < 24u) {
        acts[at + (t - 16u) * 20u + 18u] = bitcast<u32>(factor);
    }
}
#else
#define BLOCK_WORDS 256

fn pack_block(thread: u32, at: u32, x: vec4<f32>, is_used: bool) {
    if (!is_used) {
        return;
    }
    let word = at + (thread & 63u) * 4u;
    acts[word] = bitcast<u32>(x.x);
    acts[word + 1u] = bitcast<u32>(x.y);
    acts[word + 2u] = bitcast<u32>(x.z);
    acts[word + 3u] = bitcast<u32>(x.w);
}
#endif
