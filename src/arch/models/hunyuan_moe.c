// SPDX-License-Identifier: MIT
// Hunyuan-A13B. As Hunyuan, with experts and a shared one.
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
    FRIT_WEIGHTS_SHARED_EXPERT(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

const frit_arch frit_arch_hunyuan_moe = {
    .name = "hunyuan-moe",
    .title = "Hunyuan-A13B",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .attention = {.norm_after_rope = true},
    .expert_normalize = true,
    .layer = frit_layer_sequential,
};
