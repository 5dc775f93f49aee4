// SPDX-License-Identifier: MIT
// What products apply to their results. BIAS, TIMES, GATED, ACT, ADD: bias, factor of the sum, gate, activation,
// residual. GATED: rows r and r + 8 of a tile are a gate and its value. P_BEGIN: row tiles of the matrix that are in
// other buffers before this one. STACK: matrices that follow each other in the buffer.
#define P_Y params[0].x
#define P_N_OUT params[0].y
#define P_BLOCKS params[0].z
#define P_BEGIN params[0].w
#define P_ADD params[1].x
#define P_TIMES bitcast<f32>(params[1].y)
#define P_ACT params[1].z
#define P_UNITS params[1].w
#define P_STACK 2
#define P_TILES params[7].x

#if GATED
#define EACH 8
#else
#define EACH 16
#endif

fn matrix_of(tile: u32) -> vec4<u32> {   // first row tile, offset of its results, rows of the matrix
#if STACK
    var matrix = params[P_STACK];
#repeat m (STACK - 1)
    if (tile >= params[P_STACK + 1 + @m].x) {
        matrix = params[P_STACK + 1 + @m];
    }
#end
    return matrix;
#else
    return vec4<u32>(0u, P_Y, P_N_OUT, 0u);
#endif
}

// What is added to the result of row r of a row tile for a row of the input: bias, residual.
fn addends(tile: u32, r: u32, row: u32) -> vec2<f32> {
    var a = vec2<f32>(0.0);
#if BIAS || ADD
    let matrix = matrix_of(tile);
    let o = (P_BEGIN + tile - matrix.x) * EACHu + r;
#if BIAS
    a.x = bias[min(o, matrix.z - 1u)];
#endif
#if ADD
    a.y = scratch[P_ADD + row * matrix.z + min(o, matrix.z - 1u)];
#endif
#endif
    return a;
}

// Row r of a row tile for a row of the input. up: the sum of row r + 8, if GATED.
fn store_with(tile: u32, r: u32, row: u32, sum: f32, up: f32, added: vec2<f32>) {
    let matrix = matrix_of(tile);
    let o = (P_BEGIN + tile - matrix.x) * EACHu + r;
    if (o >= matrix.z) {
        return;
    }
    var y = sum;
#if BIAS
    y += added.x;
#endif
#if TIMES
    y *= P_TIMES;
#endif
#if GATED
    y = activate(P_ACT, y) * up;
#endif
#if ACT
    y = activate(P_ACT, y);
#endif
#if ADD
    y += added.y;
#endif
    scratch[matrix.y + row * matrix.z + o] = y;
}

fn store(tile: u32, r: u32, row: u32, sum: f32, up: f32) {
    store_with(tile, r, row, sum, up, addends(tile, r, row));
}
