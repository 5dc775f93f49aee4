// SPDX-License-Identifier: MIT
// The input of products from rows of numbers: a group of threads for each block of 256 columns, padded with zeros. The
// grid is blocks x rows of the batch x rows of each of them.
#include "step.wgsl"
@group(0) @binding(2) var<storage, read_write> scratch: array<f32>;
@group(0) @binding(3) var<storage, read_write> acts: array<u32>;
#define THREADS 64
#include "pack_input.wgsl"

#define P_X params[0].x
#define P_WIDTH params[0].y
#define P_BLOCKS params[0].z

fn number(row: u32, column: u32) -> f32 {
    if (column >= P_WIDTH) {
        return 0.0;
    }
    return scratch[P_X + row * P_WIDTH + column];
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
    let row = group.y * groups.z + group.z;
    let i = group.x * 256u + thread * 4u;
    let x = vec4<f32>(number(row, i), number(row, i + 1u), number(row, i + 2u), number(row, i + 3u));
    pack_block(thread, (row * P_BLOCKS + group.x) * BLOCK_WORDSu, x, true);
}
