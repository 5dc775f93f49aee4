// SPDX-License-Identifier: MIT
// A product of a matrix with NR rows: y = x w^T, and what is applied to its results (store.wgsl).
//
// SPLIT groups of threads, 1 or 2, compute a row tile. Each 32 threads take every PARTS-th block of 256 columns: thread
// r0 * 8 + g has columns g * 32 to g * 32 + 31 of every fourth row from r0 on, or every eighth if the tile is split. So
// a load of 32 threads is contiguous, and the input of a thread serves several rows. The parts of a result are added in
// workgroup memory.
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
#define LOCAL_ROWS (16 / SPLIT)
#define LOCAL_EACH (EACH / SPLIT)
#if SPLIT == 2
#define EACH_THREAD 2
alias row_sums = vec2<f32>;
#else
#define EACH_THREAD 4
alias row_sums = vec4<f32>;
#endif
// Each thread stores at most one result, and loads early what is added to it.
#define LOADS_EARLY (!ROUTED && (LOCAL_EACH * NR <= THREADS))

#if NR == 1
#define PARTIALS 1
#else
#define PARTIALS 2
#endif
var<workgroup> partial: array<f32, (PARTIALS * PARTS * 8 * 17)>;
var<workgroup> sums: array<f32, (NR * PARTS * LOCAL_ROWS)>;

fn result_of(n: u32, r: u32) -> f32 {
    var sum = 0.0;
    for (var k = 0u; k < PARTSu; k++) {
        sum += sums[(n * PARTSu + k) * LOCAL_ROWSu + r];
    }
    return sum;
}

fn row_of_tile(r: u32, s: u32) -> u32 {   // of row r of the group's rows
#if SPLIT == 2
    return (r & 3u) + 4u * s + 8u * (r / 4u);
#else
    return r;
#endif
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let lane = thread & 31u;
    let part = thread / 32u;
    let g = lane & 7u;
    let r0 = lane / 8u;
    let row_tile = group.x / SPLITu;
    let s = group.x % SPLITu;
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
#if LOADS_EARLY
    var early = vec2<f32>();
    if (thread < LOCAL_EACHu * NRu) {
        early = addends(row_tile, row_of_tile(thread % LOCAL_EACHu, s), first + thread / LOCAL_EACHu);
    }
#endif
#repeat n NR
    var acc@n = row_sums();
#if ROUTED == 3
#elif ROUTED
    let row@n = input_of(assignment(mine, @nu)) * P_BLOCKS;
#elif NR == 1
    let row@n = first * P_BLOCKS;
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
        let tile = ((first_tile(expert_of(a)) + row_tile) * P_BLOCKS + block) * TILEu;
#elif ROUTED
        let block = i;
        let tile = ((first_tile(mine.expert) + row_tile) * P_BLOCKS + block) * TILEu;
#else
        let block = i;
        let tile = (row_tile * P_BLOCKS + block) * TILEu;
#endif
#if IS_INT
#repeat j EACH_THREAD
        let code@j = codes_at(tile, row_of_tile(r0 + 4u * @ju, s) * 8u + g);
        let scale@j = scales_at(tile, row_of_tile(r0 + 4u * @ju, s), g);
#end
#repeat n NR
        {
            let at = (row@n + block) * 40u + g * 5u;
            let high0 = acts[at];
            let high1 = acts[at + 1u];
            let low0 = acts[at + 2u];
            let low1 = acts[at + 3u];
            let last = bitcast<vec4<f32>>(acts[at + 4u]);
            let sum = last.xy;
#if ROUTED == 3
            let factor = last.z * weight;
#else
            let factor = last.z;
#endif
            var part_sum: row_sums;
#repeat j EACH_THREAD
            part_sum[@j] = unit_sum(code@j, scale@j, high0, high1, low0, low1, sum);
#end
            acc@n += part_sum * factor;
        }
#end
#else
        for (var q = 0u; q < 8u; q++) {
#repeat j EACH_THREAD
            let w@j = numbers_at(tile, row_of_tile(r0 + 4u * @ju, s), g, q);
#end
#repeat n NR
            {
                let x = bitcast<vec4<f32>>(acts[(row@n + block) * 64u + g * 8u + q]);
                var part_sum: row_sums;
#repeat j EACH_THREAD
                part_sum[@j] = dot(w@j, x);
#end
#if ROUTED == 3
                acc@n += part_sum * weight;
#else
                acc@n += part_sum;
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
#repeat j EACH_THREAD
        partial[to + 4u * @ju] = acc@n[@j];
#end
        workgroupBarrier();
        if (thread < LOCAL_ROWSu * PARTSu) {
            let theirs = at + (thread / LOCAL_ROWSu) * (8u * 17u) + thread % LOCAL_ROWSu;
            var sum = 0.0;
            for (var k = 0u; k < 8u; k++) {
                sum += partial[theirs + k * 17u];
            }
            sums[@nu * PARTSu * LOCAL_ROWSu + thread] = sum;
        }
    }
#end
    workgroupBarrier();
    for (var i = thread; i < LOCAL_EACHu * NRu; i += THREADSu) {
        let n = i / LOCAL_EACHu;
        let r = row_of_tile(i % LOCAL_EACHu, s);
        let y = result_of(n, i % LOCAL_EACHu);
#if GATED
        let up = result_of(n, i % LOCAL_EACHu + LOCAL_EACHu);
#else
        let up = 0.0;
#endif
#if ROUTED == 3
        store(row_tile, r, first, y, up);
#elif ROUTED
        if (n < mine.count) {
            let a = assignment(mine, n);
            let weight = weight_of(a);
            store(row_tile, r, a, y * weight, up * weight);
        }
#else
        if (first + n < n_rows) {
#if LOADS_EARLY
            store_with(row_tile, r, first + n, y, up, early);
#else
            store(row_tile, r, first + n, y, up);
#endif
        }
#endif
    }
}
