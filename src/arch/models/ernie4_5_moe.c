// SPDX-License-Identifier: MIT
// ERNIE 4.5 MoE. As ERNIE 4.5, with experts, a selection bias and shared experts in some layers.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(FRIT_WEIGHT_UNBIASED),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_SHARED_EXPERT(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"leading_dense_block_count", "interleave_moe_layer_step"};

const frit_arch frit_arch_ernie4_5_moe = {
    .name = "ernie4_5-moe",
    .title = "ERNIE 4.5 MoE",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .expert_normalize = true,
    .layer = frit_layer_sequential,
};
