// SPDX-License-Identifier: MIT
// Qwen3 MoE. As Qwen3, with experts.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_HEAD_NORMS,
    FRIT_WEIGHTS_EXPERTS(0),
};
// clang-format on

const frit_arch frit_arch_qwen3moe = {
    .name = "qwen3moe",
    .title = "Qwen3 MoE",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .reads_media = true,
    .expert_normalize = true,
    .layer = frit_layer_sequential,
};
