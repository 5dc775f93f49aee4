// SPDX-License-Identifier: MIT
// A product of a matrix with NR rows: y = x w^T, and what is applied to its results (store.wgsl).
//
// SPLIT groups of threads, 1, 2 or 4, compute a row tile. Each 32 threads take every PARTS-th block of 256 columns:
// thread r0 * 8 + g has columns g * 32 to g * 32 + 31 of every fourth row of its group from r0 on. So a load of 32
// threads is contiguous, and the input of a thread serves several rows. The parts of a result are added in workgroup
// memory.
//
// BLOCKS: blocks of a row. A thread loads its units of DEPTH blocks before it multiplies the first of them; with AHEAD
// it loads those of the next DEPTH blocks too. The order of sums is that of blocks, whatever SPLIT, DEPTH and AHEAD are.
//
// IS_INT: the input has integers of 15 bits, 128 * high + low (quantize.wgsl), otherwise floats. NORMED: the groups make
// it of a row of numbers (normed_input.wgsl). ROUTED: the matrices
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
#define THREADS (32 * PARTS)
#include "tiles.wgsl"
#include "dots.wgsl"
#include "store.wgsl"
#include "normed_input.wgsl"
#if ROUTED
#include "routed.wgsl"
#endif
#define LOCAL_ROWS (16 / SPLIT)
#define LOCAL_EACH (EACH / SPLIT)
#define UPPER_ROWS (8 / SPLIT)
#define EACH_THREAD (4 / SPLIT)
// Blocks that the threads of a part take before they take the next ones of a row.
#define STRIDE (PARTS * DEPTH)
#define HAS_NEXT (ROUTED == 3 || BLOCKS > STRIDE)
#define IS_FULL (ROUTED != 3 && BLOCKS / STRIDE * STRIDE == BLOCKS)
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
#if SPLIT == 1
    return r;
#else
    return r % UPPER_ROWSu + UPPER_ROWSu * s + 8u * (r / UPPER_ROWSu);
#endif
}

// Of block i, which is one of all blocks of a row's experts if their products are added.
fn tile_of(row_tile: u32, row: u32, i: u32) -> u32 {
#if ROUTED == 3
    return ((first_tile(expert_of(row * P_USED + i / BLOCKSu)) + row_tile) * BLOCKSu + i % BLOCKSu) * TILEu;
#else
    return (row_tile * BLOCKSu + i) * TILEu;
#endif
}

#if IS_INT
struct unit {
    codes: raw_codes,
    scales: vec4<u32>,
}

fn unit_at(tile: u32, row: u32, g: u32) -> unit {
    return unit(raw_codes_at(tile, row * 8u + g), raw_scales_at(tile, row, g));
}
#endif

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
    let n_blocks = P_USED * BLOCKSu;
    let last_block = n_blocks - 1u;
    let matrix_tile = row_tile;
#elif ROUTED
    let first = 0u;
    let mine = assignments_of(group.y);
    let n_blocks = select(BLOCKSu, 0u, mine.count == 0u);
    let matrix_tile = first_tile(mine.expert) + row_tile;
#else
    let first = group.y * NRu;
    let n_rows = row_count();
    let n_blocks = BLOCKSu;
    let matrix_tile = row_tile;
#endif
#if ROUTED != 3
    let last_block = BLOCKSu - 1u;   // n_blocks may be 0
#endif
#repeat j EACH_THREAD
    let own@j = row_of_tile(r0 + 4u * @ju, s);
#end
#if IS_INT
#repeat k DEPTH
    let tile@k = tile_of(matrix_tile, first, min(part + @ku * PARTSu, last_block));
#repeat j EACH_THREAD
    var unit@k_@j = unit_at(tile@k, own@j, g);
#end
#end
#endif
#if LOADS_EARLY
    var early = vec2<f32>();
    if (thread < LOCAL_EACHu * NRu) {
        early = addends(row_tile, row_of_tile(thread % LOCAL_EACHu, s), first + thread / LOCAL_EACHu);
    }
#endif
#repeat n NR
#repeat j EACH_THREAD
    var acc@n_@j = 0.0;
#end
#if ROUTED == 3
    let row@n = first * n_blocks;
#elif ROUTED
    let row@n = input_of(assignment(mine, @nu)) * BLOCKSu;
#elif NR == 1
    let row@n = first * BLOCKSu;
#else
    let row@n = min(first + @nu, n_rows - 1u) * BLOCKSu;
#endif
#end
#if NORMED
    make_own_input(thread, part, lane);
#endif
#if IS_INT
    for (var begin = part; begin < n_blocks; begin += STRIDEu) {
#repeat k DEPTH
        let i@k = begin + @ku * PARTSu;
#if HAS_NEXT && AHEAD
        let next@k = tile_of(matrix_tile, first, min(i@k + STRIDEu, last_block));
#repeat j EACH_THREAD
        let now@k_@j = unit@k_@j;
        unit@k_@j = unit_at(next@k, own@j, g);
#end
#endif
#end
#repeat k DEPTH
#if IS_FULL || @k == 0
        {
#else
        if (i@k < n_blocks) {
#endif
#repeat j EACH_THREAD
#if HAS_NEXT && AHEAD
            let code@j = codes_of(now@k_@j.codes, own@j * 8u + g);
            let scale@j = scales_of(now@k_@j.scales, own@j, g);
#else
            let code@j = codes_of(unit@k_@j.codes, own@j * 8u + g);
            let scale@j = scales_of(unit@k_@j.scales, own@j, g);
#endif
#end
#repeat n NR
            {
#if NORMED
                let slot = part * DEPTHu + @ku;
                let high0 = own_high_at(slot, g, 0u);
                let high1 = own_high_at(slot, g, 4u);
                let low0 = own_low_at(slot, g, 0u);
                let low1 = own_low_at(slot, g, 4u);
#if HAS_MIN
                let sum = vec2<f32>(sum_of_16(high0, low0), sum_of_16(high1, low1));
#else
                let sum = vec2<f32>();
#endif
                let factor = own_factors[slot];
#else
                let at = (row@n + i@k) * 37u;
                let high0 = acts[at + g * 4u];
                let high1 = acts[at + g * 4u + 1u];
                let low0 = acts[at + g * 4u + 2u];
                let low1 = acts[at + g * 4u + 3u];
                let pair = bitcast<vec4<f32>>(acts[at + 32u + g / 2u]);
                let sum = select(pair.xy, pair.zw, (g & 1u) == 1u);
#if ROUTED == 3
                let factor = bitcast<f32>(acts[at + 36u].x) * weight_of(first * P_USED + i@k / BLOCKSu);
#else
                let factor = bitcast<f32>(acts[at + 36u].x);
#endif
#endif
#repeat j EACH_THREAD
                acc@n_@j += unit_sum(code@j, scale@j, high0, high1, low0, low1, sum) * factor;
#end
            }
#end
        }
#end
#if HAS_NEXT && !AHEAD
#repeat k DEPTH
        let next@k = tile_of(matrix_tile, first, min(i@k + STRIDEu, last_block));
#repeat j EACH_THREAD
        unit@k_@j = unit_at(next@k, own@j, g);
#end
#end
#endif
    }
#else
    for (var i = part; i < n_blocks; i += PARTSu) {
        let tile = tile_of(matrix_tile, first, i);
        for (var q = 0u; q < 8u; q++) {
#repeat j EACH_THREAD
            let w@j = numbers_at(tile, own@j, g, q);
#end
#repeat n NR
            {
                let x = bitcast<vec4<f32>>(acts[(row@n + i) * 64u + g * 8u + q]);
#repeat j EACH_THREAD
#if ROUTED == 3
                acc@n_@j += dot(w@j, x) * weight_of(first * P_USED + i / BLOCKSu);
#else
                acc@n_@j += dot(w@j, x);
#endif
#end
            }
#end
        }
    }
#endif
#repeat n NR
    {
        let at = (@nu & 1u) * (PARTSu * 8u * 17u);
        let to = at + (part * 8u + g) * 17u + r0;
#repeat j EACH_THREAD
        partial[to + 4u * @ju] = acc@n_@j;
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
