// SPDX-License-Identifier: MIT
// What all kernels have: the parameters of a dispatch, and the input of the step.
//
// ROWS_OF: which rows a dispatch has: 0 those of the batch, 1 outputs, 2 a constant number, P_ROWS.
@group(0) @binding(0) var<uniform> params: array<vec4<u32>, 8>;
@group(0) @binding(1) var<storage, read> step: array<u32>;

#define P_ROWS params[7].w
#define STEP_TOKENS step[4]
#define STEP_ANGLES step[5]
#define STEP_OUT_ROWS step[6]
#define STEP_SEQ_OF step[7]
#define STEP_SEQS step[8]
#define STEP_PAGES step[9]
#define STEP_POSITIONS step[10]
#define STEP_BLOCKS step[12]
#define STEP_PICKS step[15]
#define STEP_N_SEQS step[2]
#define STEP_PAGE_STRIDE step[3]

fn row_count() -> u32 {
#if ROWS_OF == 0
    return step[0];
#elif ROWS_OF == 1
    return step[1];
#else
    return P_ROWS;
#endif
}

fn is_bad(x: f32) -> bool {   // NaN or infinite
    return (bitcast<u32>(x) & 0x7f800000u) == 0x7f800000u;
}
