// SPDX-License-Identifier: MIT
// Where the keys and values of a layer lie (graph/batch.h): word offsets of a page, and byte offsets in it.
//
// K_TYPE, V_TYPE: 0 f32, 1 f16, 2 bf16, 3 q8_0, 4 q4_0. Keys of types without blocks are transposed: element d of
// position p is element d * 32 + p of its head. Other sides have rows of positions.
#define P_GROUP params[0].x
#define P_N_KV params[0].y
#define P_K_PAGE params[1].x
#define P_K_WORDS params[1].y
#define P_K_ROW params[1].z
#define P_V_PAGE params[2].x
#define P_V_WORDS params[2].y
#define P_V_ROW params[2].z

fn page_of(seq: u32, position: u32) -> u32 {
    return step[STEP_PAGES + (P_GROUP * STEP_N_SEQS + seq) * STEP_PAGE_STRIDE + position / 32u];
}
