// SPDX-License-Identifier: MIT
// BitNet b1.58. As Llama, with ternary matrices and a scale for each, and norms before the output projections.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_LAYER_WEIGHT(sub_norm, "attn_sub_norm", N_O, 1, 0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(0),
    FRIT_LAYER_WEIGHT(ffn.norm, "ffn_sub_norm", N_FF, 1, 0),
};
// clang-format on

const frit_arch frit_arch_bitnet = {
    .name = "bitnet",
    .title = "BitNet b1.58",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .layer = frit_layer_sequential,
};
