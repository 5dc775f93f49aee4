// SPDX-License-Identifier: MIT
// A product of a matrix with many rows: y = x w^T, and what is applied to its results (store.wgsl).
//
// A group of 256 threads computes 64 rows of the matrix, four row tiles, for NR rows of the input. Weights and inputs
// of a step of columns are decoded into workgroup memory once. Thread t has 4 rows of the matrix and every 16th row of
// the input, so that it multiplies 4 x NR / 16 pairs. Steps have 32 columns of integers of 15 bits (IS_INT), or 16
// columns of floats. ROUTED: the matrices are those of experts (routed.wgsl). P_UNITS: blocks of 32 columns.
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
var<workgroup> shared_assignments: assignments;
#endif
#define THREADS 256
#define EACH_THREAD (NR / 16)

#if IS_INT
var<workgroup> code_tile: array<vec4<u32>, 128>;       // first 16 columns of 64 rows, then their last 16
var<workgroup> scale_tile: array<vec4<f32>, 64>;
var<workgroup> act_tile: array<vec4<u32>, (4 * NR)>;   // high bytes, twice, then low bytes of NR rows
var<workgroup> sum_tile: array<vec3<f32>, NR>;         // sums of 16 integers, and the factor
#else
var<workgroup> weight_tile: array<vec4<f32>, 256>;     // four columns of 64 rows, four times
var<workgroup> act_tile: array<vec4<u32>, (4 * NR)>;
#endif
var<workgroup> input_rows: array<u32, NR>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    fill_levels(thread, THREADSu);
#if ROUTED
    if (thread == 0u) {
        shared_assignments = assignments_of(group.y);
    }
    let mine = workgroupUniformLoad(&shared_assignments);
    if (mine.count == 0u) {
        return;
    }
    let matrix_tile = first_tile(mine.expert);
    if (thread < NRu) {
        input_rows[thread] = input_of(assignment(mine, thread));
    }
#else
    let first = group.y * NRu;
    let n_rows = row_count();
    let matrix_tile = 0u;
    if (thread < NRu) {
        input_rows[thread] = min(first + thread, n_rows - 1u);
    }
#endif
    // A thread has rows r and r + 8 of a row tile, which may be a gate and its value.
    let row = (thread & 7u) + ((thread >> 3u) & 1u) * 32u;
    let column = thread >> 4u;
    let loaded = thread & 63u;   // row of the matrix that the thread decodes
    let loaded_tile = (matrix_tile + min(group.x * 4u + loaded / 16u, P_TILES - 1u)) * P_BLOCKS;
#repeat n EACH_THREAD
    var acc@n = vec4<f32>(0.0);
#end
    workgroupBarrier();
#if IS_INT
    for (var unit = 0u; unit < P_UNITS; unit++) {
        let block = unit / 8u;
        let g = unit & 7u;
        if (thread < 64u) {
            let tile = (loaded_tile + block) * TILEu;
            let c = codes_at(tile, (loaded & 15u) * 8u + g);
            code_tile[loaded] = c.first;
            code_tile[64u + loaded] = c.last;
            scale_tile[loaded] = scales_at(tile, loaded & 15u, g);
        }
        for (var i = thread; i < 4u * NRu; i += THREADSu) {
            act_tile[i] = acts[(input_rows[i % NRu] * P_BLOCKS + block) * 40u + g * 5u + i / NRu];
        }
        if (thread >= THREADSu - NRu) {
            let i = thread - (THREADSu - NRu);
            sum_tile[i] = bitcast<vec4<f32>>(acts[(input_rows[i] * P_BLOCKS + block) * 40u + g * 5u + 4u]).xyz;
        }
        workgroupBarrier();
#repeat j 4
        let code@j = codes(code_tile[row + 8u * @ju], code_tile[64u + row + 8u * @ju]);
        let scale@j = scale_tile[row + 8u * @ju];
#end
#repeat n EACH_THREAD
        {
            let at = column + 16u * @nu;
            let high0 = act_tile[at];
            let high1 = act_tile[at + NRu];
            let low0 = act_tile[at + 2u * NRu];
            let low1 = act_tile[at + 3u * NRu];
            let sum = sum_tile[at];
            var part_sum: vec4<f32>;
#repeat j 4
            part_sum[@j] = unit_sum(code@j, scale@j, high0, high1, low0, low1, sum.xy);
#end
            acc@n += part_sum * sum.z;
        }
#end
        workgroupBarrier();
    }
#else
    for (var step_of = 0u; step_of < 2u * P_UNITS; step_of++) {
        let block = step_of / 16u;
        let g = (step_of / 2u) & 7u;
        let q0 = (step_of & 1u) * 4u;
        weight_tile[thread] = numbers_at((loaded_tile + block) * TILEu, loaded & 15u, g, q0 + thread / 64u);
        for (var i = thread; i < 4u * NRu; i += THREADSu) {
            act_tile[i] = acts[(input_rows[i % NRu] * P_BLOCKS + block) * 64u + g * 8u + q0 + i / NRu];
        }
        workgroupBarrier();
        for (var q = 0u; q < 4u; q++) {
#repeat j 4
            let w@j = weight_tile[q * 64u + row + 8u * @ju];
#end
#repeat n EACH_THREAD
            {
                let x = bitcast<vec4<f32>>(act_tile[q * NRu + column + 16u * @nu]);
                acc@n += vec4<f32>(dot(w0, x), dot(w1, x), dot(w2, x), dot(w3, x));
            }
#end
        }
        workgroupBarrier();
    }
#endif
    let tile = group.x * 4u + row / 16u;
#repeat n EACH_THREAD
    {
        let n = column + 16u * @nu;
#if ROUTED
        let is_used = n < mine.count;
        let to = assignment(mine, n);
        let y = acc@n * weight_of(to);
#else
        let is_used = first + n < n_rows;
        let to = first + n;
        let y = acc@n;
#endif
#repeat t 2
        if (is_used && (tile + @tu < P_TILES)) {
#if GATED
            store(tile + @tu, row & 7u, to, y[2 * @t], y[2 * @t + 1]);
#else
            store(tile + @tu, row & 7u, to, y[2 * @t], 0.0);
            store(tile + @tu, (row & 7u) + 8u, to, y[2 * @t + 1], 0.0);
#endif
        }
#end
    }
#end
}
