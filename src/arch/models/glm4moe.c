// SPDX-License-Identifier: MIT
// GLM-4.5 to 4.7. RoPE on part of each head; sigmoid router with a selection bias; shared experts.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_LAYER_WEIGHT(q_norm, "attn_q_norm", HEAD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(k_norm, "attn_k_norm", HEAD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_ROW_NORM(ffn_norm, "post_attention_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_SHARED_EXPERT(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"expert_weights_norm", "leading_dense_block_count"};

const frit_arch frit_arch_glm4moe = {
    .name = "glm4moe",
    .title = "GLM-4.5, 4.6, 4.7",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .gating = FRIT_GATING_SIGMOID,
    .layer = frit_layer_sequential,
};
