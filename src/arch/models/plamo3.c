// SPDX-License-Identifier: MIT
// PLaMo 3. QK norms; norms on both sides; layers with a window have their own RoPE base; gate and up are one matrix.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_WEIGHTS_HEAD_NORMS,
    FRIT_LAYER_WEIGHT(post_attn_norm, "post_attention_norm", N_EMBD, 1, FRIT_WEIGHT_WHOLE_NAME),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATE_IN_UP(FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(post_ffn_norm, "post_ffw_norm", N_EMBD, 1, FRIT_WEIGHT_WHOLE_NAME),
};
// clang-format on

const frit_arch frit_arch_plamo3 = {
    .name = "plamo3",
    .title = "PLaMo 3",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .windows = {.period = 8},
    .layer = frit_layer_sequential,
};
