// SPDX-License-Identifier: MIT
// gpt-oss. An attention sink in each head; a window in every second layer; biases everywhere; experts with a clamped,
// shifted SwiGLU.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_LAYER_WEIGHT(sinks, "attn_sinks", N_HEAD, 1, 0),
    FRIT_ROW_NORM(ffn_norm, "post_attention_norm"),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

const frit_arch frit_arch_gpt_oss = {
    .name = "gpt-oss",
    .title = "gpt-oss",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .reads_media = true,
    .windows = {.period = 2},
    .gating = FRIT_GATING_SOFTMAX_SELECTED,
    .glu = frit_glu_plus_one,
    .layer = frit_layer_sequential,
};
