// SPDX-License-Identifier: MIT
// Rows of a table by tokens. The table lies in several buffers if one would be too large: this dispatch writes the rows
// of tokens from P_FIRST on to before P_END. P_WIDTH: numbers of a row. IDS: the word of the
// step that says where tokens, or positions, lie. IS_TOKENS: tokens, of which the step before may have picked some.
#include "step.wgsl"
@group(0) @binding(2) var<storage, read_write> scratch: array<f32>;
@group(0) @binding(3) var<storage, read> tiles: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> words: array<u32>;
#if IS_TOKENS
@group(0) @binding(5) var<storage, read> picked: array<u32>;
#endif
#include "tiles.wgsl"

#define P_Y params[0].x
#define P_WIDTH params[0].y
#define P_BLOCKS params[0].z
#define P_FIRST params[0].w
#define P_END params[1].x

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    fill_levels(thread, 64u);
    var token = step[step[IDSu] + group.y];
#if IS_TOKENS
    if (token >= 0x80000000u) {   // the token of pick ~token of the step before (pick.wgsl)
        token = picked[4u * ~token];
    }
#endif
    if (token < P_FIRST || token >= P_END) {
        return;
    }
    let row = token - P_FIRST;
    let tile = (row / 16u * P_BLOCKS + group.x) * TILEu;
    let x = numbers_at(tile, row & 15u, thread / 8u, thread & 7u);
    let column = group.x * 256u + thread * 4u;
    for (var i = 0u; i < 4u; i++) {
        if (column + i < P_WIDTH) {
            scratch[P_Y + group.y * P_WIDTH + column + i] = x[i];
        }
    }
}
