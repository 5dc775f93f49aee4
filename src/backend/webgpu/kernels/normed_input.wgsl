// SPDX-License-Identifier: MIT
// A product's own input: the norm of a row, x / sqrt(mean(x^2) + epsilon) * gain, as integers of 15 bits
// (pack_input.wgsl). Each group of threads of the product computes it in workgroup memory, while its weights are loaded.
//
// The 32 threads of a part make the DEPTH blocks of 256 columns that they multiply, which are all blocks of the part.
// Thread i of them has columns 4 i to 4 i + 3 of a block, and those 128 columns further. NORMED: the gains' binding.
#if NORMED
@group(0) @binding(NORMED) var<storage, read> gains: array<vec4<f32>>;
#define P_X params[6].z
#define P_EPSILON bitcast<f32>(params[6].w)

// Words of 4 bytes, of each 32 columns 8 and one that is not used.
var<workgroup> own_high: array<u32, (PARTS * DEPTH * 72)>;
var<workgroup> own_low: array<u32, (PARTS * DEPTH * 72)>;
var<workgroup> own_most: array<f32, (PARTS * DEPTH * 32)>;
var<workgroup> own_factors: array<f32, (PARTS * DEPTH)>;

fn largest_of(a: vec4<f32>, b: vec4<f32>) -> f32 {   // NaN if one of them is
    let most = max(max(max(abs(a.x), abs(a.y)), max(abs(a.z), abs(a.w))),
                   max(max(abs(b.x), abs(b.y)), max(abs(b.z), abs(b.w))));
    let sum = dot(a, vec4<f32>(1.0)) + dot(b, vec4<f32>(1.0));
    return select(most, sum, is_bad(sum));
}

fn mean_of_squares(thread: u32, own: f32) -> f32 {
    own_most[thread] = own;
    workgroupBarrier();
    if (thread < 16u) {
        var sum = 0.0;
#repeat i (THREADS / 16)
        sum += own_most[thread + 16u * @iu];
#end
        own_most[thread] = sum;
    }
    workgroupBarrier();
    var sum = 0.0;
#repeat i 16
    sum += own_most[@i];
#end
    workgroupBarrier();
    return sum / (f32(BLOCKS) * 256.0);
}

fn bytes_of(q: vec4<i32>) -> u32 {
    let b = vec4<u32>(q) & vec4<u32>(0xffu);
    return b.x | (b.y << 8u) | (b.z << 16u) | (b.w << 24u);
}

fn put_word(at: u32, x: vec4<f32>, inverse: f32) {
    let q = clamp(vec4<i32>(round(x * inverse)), vec4<i32>(-16256), vec4<i32>(16256));
    let high = (q + vec4<i32>(64)) >> vec4<u32>(7u);
    own_high[at] = bytes_of(high);
    own_low[at] = bytes_of(q - (high << vec4<u32>(7u)));
}

fn larger(a: f32, b: f32) -> f32 {
    return select(max(a, b), select(b, a, is_bad(a)), is_bad(a) || is_bad(b));
}

fn factor_of(slot: u32) -> f32 {
    var most = 0.0;
#repeat i 32
    most = larger(most, own_most[slot * 32u + @iu]);
#end
    return most / 16256.0;
}

fn x_at(i: u32) -> vec4<f32> {
    return vec4<f32>(scratch[P_X + i], scratch[P_X + i + 1u], scratch[P_X + i + 2u], scratch[P_X + i + 3u]);
}

// Bytes of 16 columns of a group of 32 from word `first` on. slot: of the block.
fn own_high_at(slot: u32, g: u32, first: u32) -> vec4<u32> {
    let at = slot * 72u + g * 9u + first;
    return vec4<u32>(own_high[at], own_high[at + 1u], own_high[at + 2u], own_high[at + 3u]);
}

fn own_low_at(slot: u32, g: u32, first: u32) -> vec4<u32> {
    let at = slot * 72u + g * 9u + first;
    return vec4<u32>(own_low[at], own_low[at + 1u], own_low[at + 2u], own_low[at + 3u]);
}

fn sum_of_16(high: vec4<u32>, low: vec4<u32>) -> f32 {
    let ones = vec4<u32>(0x01010101u);
    return f32(dot8(high, ones) * 128 + dot8(low, ones));
}

// All threads of the group call it. Blocks after the last one of the row are zeros.
fn make_own_input(thread: u32, part: u32, lane: u32) {
    let word = lane / 8u * 9u + (lane & 7u);
    var squares = 0.0;
#repeat k DEPTH
    let block@k = part + @ku * PARTSu;
    let is_there@k = block@k < BLOCKSu;
    let column@k = min(block@k, BLOCKSu - 1u) * 256u + lane * 4u;
    var a@k = x_at(column@k);
    var b@k = x_at(column@k + 128u);
    let gain_a@k = gains[column@k / 4u];
    let gain_b@k = gains[column@k / 4u + 32u];
    squares += select(0.0, dot(a@k, a@k) + dot(b@k, b@k), is_there@k);
#end
    let factor = 1.0 / sqrt(mean_of_squares(thread, squares) + P_EPSILON);
#repeat k DEPTH
    a@k = a@k * factor * gain_a@k;
    b@k = b@k * factor * gain_b@k;
    own_most[(part * DEPTHu + @ku) * 32u + lane] = select(0.0, largest_of(a@k, b@k), is_there@k);
#end
    workgroupBarrier();
#repeat k DEPTH
    {
        let slot = part * DEPTHu + @ku;
        let own = factor_of(slot);
        let inverse = 1.0 / own;
        let is_usable = own > 0.0 && !is_bad(own) && !is_bad(inverse);
        let used = select(0.0, inverse, is_usable);
        put_word(slot * 72u + word, select(vec4<f32>(0.0), a@k, is_usable), used);
        put_word(slot * 72u + word + 36u, select(vec4<f32>(0.0), b@k, is_usable), used);
        if (lane == 0u) {
            own_factors[slot] = own;
        }
    }
#end
    workgroupBarrier();
}
#endif
