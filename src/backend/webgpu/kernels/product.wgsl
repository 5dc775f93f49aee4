// SPDX-License-Identifier: MIT
// A product of a matrix with NR rows: y = x w^T, and what is applied to its results (store.wgsl).
//
// A group of threads computes 16 rows of the matrix. Each 32 threads take every PARTS-th block of 256 columns: thread
// r0 * 8 + g has columns g * 32 to g * 32 + 31 of rows r0, r0 + 4, r0 + 8 and r0 + 12. So a load of 32 threads is
// contiguous, and the input of a thread serves four rows. The parts of a result are added in workgroup memory.
//
// IS_INT: the input has integers of 15 bits, 128 * high + low (quantize.wgsl), otherwise floats. ROUTED: the matrices
// are those of experts (routed.wgsl).
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
#include "dots.wgsl"
#include "store.wgsl"
#if ROUTED
#include "routed.wgsl"
#endif
#define THREADS (32 * PARTS)

var<workgroup> partial: array<f32, (2 * PARTS * 8 * 17)>;
var<workgroup> sums: array<f32, (NR * PARTS * 16)>;

fn result_of(n: u32, r: u32) -> f32 {
    var sum = 0.0;
    for (var k = 0u; k < PARTSu; k++) {
        sum += sums[(n * PARTSu + k) * 16u + r];
    }
    return sum;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let lane = thread & 31u;
    let part = thread / 32u;
    let g = lane & 7u;
    let r0 = lane / 8u;
    fill_levels(thread, THREADSu);
#if ROUTED == 3
    let first = group.y;
    let n_blocks = P_USED * P_BLOCKS;
#elif ROUTED
    let mine = assignments_of(group.y);
    let n_blocks = select(P_BLOCKS, 0u, mine.count == 0u);
#else
    let first = group.y * NRu;
    let n_rows = row_count();
    let n_blocks = P_BLOCKS;
#endif
#repeat n NR
    var acc@n = vec4<f32>(0.0);
#if ROUTED == 3
#elif ROUTED
    let row@n = input_of(assignment(mine, @nu)) * P_BLOCKS;
#else
    let row@n = min(first + @nu, n_rows - 1u) * P_BLOCKS;
#endif
#end
    for (var i = part; i < n_blocks; i += PARTSu) {
#if ROUTED == 3
        let block = i % P_BLOCKS;
        let a = first * P_USED + i / P_BLOCKS;
        let row0 = a * P_BLOCKS;
        let weight = weight_of(a);
        let tile = ((first_tile(expert_of(a)) + group.x) * P_BLOCKS + block) * TILEu;
#elif ROUTED
        let block = i;
        let tile = ((first_tile(mine.expert) + group.x) * P_BLOCKS + block) * TILEu;
#else
        let block = i;
        let tile = (group.x * P_BLOCKS + block) * TILEu;
#endif
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
            let pair = bitcast<vec4<f32>>(acts[at + 32u + g / 2u]);
            let sum = select(pair.xy, pair.zw, (g & 1u) == 1u);
#if ROUTED == 3
            let factor = bitcast<f32>(acts[at + 36u].x) * weight;
#else
            let factor = bitcast<f32>(acts[at + 36u].x);
#endif
            var part_sum: vec4<f32>;
#repeat j 4
            part_sum[@j] = unit_sum(code@j, scale@j, high0, high1, low0, low1, sum);
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
#if ROUTED == 3
                acc@n += vec4<f32>(dot(w0, x), dot(w1, x), dot(w2, x), dot(w3, x)) * weight;
#else
                acc@n += vec4<f32>(dot(w0, x), dot(w1, x), dot(w2, x), dot(w3, x));
#endif
            }
#end
        }
#endif
    }
#repeat n NR
    {
        let at = (@nu & 1u) * (PARTSu * 8u * 17u);
        let to = at + (part * 8u + g) * 17u + r0;
        partial[to] = acc@n.x;
        partial[to + 4u] = acc@n.y;
        partial[to + 8u] = acc@n.z;
        partial[to + 12u] = acc@n.w;
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
    for (var i = thread; i < EACHu * NRu; i += THREADSu) {
        let n = i / EACHu;
        let r = i % EACHu;
        let y = result_of(n, r);
#if GATED
        let up = result_of(n, r + 8u);
#else
        let up = 0.0;
#endif
#if ROUTED == 3
        store(group.x, r, first, y, up);
#elif ROUTED
        if (n < mine.count) {
            let a = assignment(mine, n);
            let weight = weight_of(a);
            store(group.x, r, a, y * weight, up * weight);
        }
#else
        if (first + n < n_rows) {
            store(group.x, r, first + n, y, up);
        }
#endif
    }
}
