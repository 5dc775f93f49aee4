// SPDX-License-Identifier: MIT
// ChatGLM 3, GLM-4 9B. As Llama; gate and up are one matrix, RoPE on half of each head.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATE_IN_UP(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

const frit_arch frit_arch_chatglm = {
    .name = "chatglm",
    .title = "ChatGLM 3, GLM-4 9B",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .layer = frit_layer_sequential,
};
