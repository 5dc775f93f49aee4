// SPDX-License-Identifier: MIT
// A product of a matrix with NR rows: y = x w^T, and what is applied to its results.
//
// A group of threads computes 16 rows of the matrix. Each 32 threads take every PARTS-th block of 256 columns: thread
// r0 * 8 + g has columns g * 32 to g * 32 + 31 of rows r0, r0 + 4, r0 + 8 and r0 + 12. So a load of 32 threads is
// contiguous, and the input of a thread serves four rows. The parts of a result are added in workgroup memory.
//
// IS_INT: the input has integers of 15 bits, 128 * high + low (quantize.wgsl), otherwise floats. BIAS, TIMES, GATED, ACT,
// ADD: bias, factor of the sum, gate, activation, residual; rows r and r + 8 of a tile are a gate and its value. BEGIN:
// row tiles of the matrix that are in other buffers before this one. STACK: matrices that follow each other in the
// buffer.
#include "step.wgsl"
#include "activation.wgsl"
@group(0) @binding(2) var<storage, read_write> scratch: array<f32>;
@group(0) @binding(3) var<storage, read> acts: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> tiles: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> words: array<u32>;
#if BIAS
@group(0) @binding(6) var<storage, read> bias: array<f32>;
#endif
#include "tiles.wgsl"

#define P_Y params[0].x
#define P_N_OUT params[0].y
#define P_BLOCKS params[0].z
#define P_BEGIN params[0].w
#define P_ADD params[1].x
#define P_TIMES bitcast<f32>(params[1].y)
#define P_ACT params[1].z
#define THREADS (32 * PARTS)

var<workgroup> partial: array<f32, (2 * PARTS * 8 * 17)>;
var<workgroup> sums: array<f32, (NR * PARTS * 16)>;

#if IS_INT
fn dot8(a: vec4<u32>, b: vec4<u32>) -> i32 {
    return dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y) + dot4I8Packed(a.z, b.z) + dot4I8Packed(a.w, b.w);
}
#endif

fn result_of(n: u32, r: u32) -> f32 {
    var sum = 0.0;
    for (var k = 0u; k < PARTSu; k++) {
        sum += sums[(n * PARTSu + k) * 16u + r];
    }
    return sum;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let first = group.y * NRu;
    let n_rows = row_count();
    let lane = thread & 31u;
    let part = thread / 32u;
    let g = lane & 7u;
    let r0 = lane / 8u;
    fill_levels(thread, THREADSu);
#repeat n NR
    var acc@n = vec4<f32>(0.0);
    let row@n = min(first + @nu, n_rows - 1u) * P_BLOCKS;
#end
    for (var block = part; block < P_BLOCKS; block += PARTSu) {
        let tile = (group.x * P_BLOCKS + block) * TILEu;
#if IS_INT
#repeat j 4
        let code@j = codes_at(tile, (r0 + 4u * @ju) * 8u + g);
        let scale@j = scales_at(tile, r0 + 4u * @ju, g);
#end
#repeat n NR
        {
            let at = (row@n + block) * 37u;
            let high0 = acts[at + g * 4u];
            let high1 = acts[at + g * 4u + 1u];
            let low0 = acts[at + g * 4u + 2u];
            let low1 = acts[at + g * 4u + 3u];
            let factor = bitcast<f32>(acts[at + 36u].x);
#if HAS_MIN
            let pair = bitcast<vec4<f32>>(acts[at + 32u + g / 2u]);
            let sum = select(pair.xy, pair.zw, (g & 1u) == 1u);
#endif
            var part_sum: vec4<f32>;
#repeat j 4
            {
                let a = dot8(code@j.first, high0) * 128 + dot8(code@j.first, low0);
                let b = dot8(code@j.last, high1) * 128 + dot8(code@j.last, low1);
#if HAS_16
                part_sum[@j] = f32(a) * scale@j.x + f32(b) * scale@j.y;
#else
                part_sum[@j] = f32(a + b) * scale@j.x;
#endif
#if HAS_MIN
                part_sum[@j] += scale@j.z * sum.x + scale@j.w * sum.y;
#endif
            }
#end
            acc@n += part_sum * factor;
        }
#end
#else
        for (var q = 0u; q < 8u; q++) {
#repeat j 4
            let w@j = numbers_at(tile, r0 + 4u * @ju, g, q);
#end
#repeat n NR
            {
                let x = bitcast<vec4<f32>>(acts[(row@n + block) * 64u + g * 8u + q]);
                acc@n += vec4<f32>(dot(w0, x), dot(w1, x), dot(w2, x), dot(w3, x));
            }
#end
        }
#endif
    }
#repeat n NR
    {
        let at = (@nu & 1u) * (PARTSu * 8u * 17u);
        let mine = at + (part * 8u + g) * 17u + r0;
        partial[mine] = acc@n.x;
        partial[mine + 4u] = acc@n.y;
        partial[mine + 8u] = acc@n.z;
        partial[mine + 12u] = acc@n.w;
        workgroupBarrier();
        if (thread < 16u * PARTSu) {
            let theirs = at + (thread / 16u) * (8u * 17u) + (thread & 15u);
            var sum = 0.0;
            for (var k = 0u; k < 8u; k++) {
                sum += partial[theirs + k * 17u];
            }
            sums[@nu * PARTSu * 16u + thread] = sum;
        }
    }
#end
    workgroupBarrier();
#if GATED
#define EACH 8
#else
#define EACH 16
#endif
#if STACK
    var matrix = params[2];   // first row tile, offset of its results, rows of the matrix
#repeat m (STACK - 1)
    if (group.x >= params[3 + @m].x) {
        matrix = params[3 + @m];
    }
#end
#else
    let matrix = vec4<u32>(0u, P_Y, P_N_OUT, 0u);
#endif
    for (var i = thread; i < EACHu * NRu; i += THREADSu) {
        let n = i / EACHu;
        let r = i % EACHu;
        let o = (P_BEGIN + group.x - matrix.x) * EACHu + r;
        if (first + n < n_rows && o < matrix.z) {
            var y = result_of(n, r);
            let to = (first + n) * matrix.z + o;
#if BIAS
            y += bias[o];
#endif
#if TIMES
            y *= P_TIMES;
#endif
#if GATED
            y = activate(P_ACT, y) * result_of(n, r + 8u);
#endif
#if ACT
            y = activate(P_ACT, y);
#endif
#if ADD
            y += scratch[P_ADD + to];
#endif
            scratch[matrix.y + to] = y;
        }
    }
}
