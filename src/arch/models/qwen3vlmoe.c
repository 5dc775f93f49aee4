// SPDX-License-Identifier: MIT
// Qwen3-VL MoE: the text side. As Qwen3 MoE.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_HEAD_NORMS,
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"n_deepstack_layers"};

const frit_arch frit_arch_qwen3vlmoe = {
    .name = "qwen3vlmoe",
    .title = "Qwen3-VL MoE",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .expert_normalize = true,
    .reads_media = true,
    .mixes_rope = true,
    .layer = frit_layer_sequential,
};
