// SPDX-License-Identifier: MIT
// Hunyuan 3. QK norms per head; sigmoid router with a selection bias; shared experts.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_HEAD_NORMS,
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_SCALE_LAST),
    FRIT_WEIGHTS_EXPERTS(0),
    FRIT_LAYER_WEIGHT(router_bias, "exp_probs_b", N_EXPERT, 1, FRIT_WEIGHT_OPTIONAL | FRIT_WEIGHT_WHOLE_NAME),
    FRIT_WEIGHTS_SHARED_EXPERT(FRIT_WEIGHT_SCALE_LAST),
};
// clang-format on

static const char *const keys[] = {"expert_weights_norm", "leading_dense_block_count"};

const frit_arch frit_arch_hy_v3 = {
    .name = "hy_v3",
    .title = "Hunyuan 3",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .gating = FRIT_GATING_SIGMOID,
    .layer = frit_layer_sequential,
};
