// SPDX-License-Identifier: MIT
// DeepSeek-V2 to V3, Kimi-K2. Latent attention; experts, groups of them, shared ones.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_ROWS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_ROWS_MLA,
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_ROWS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_ROWS_EXPERTS(FRIT_WEIGHT_UNSCALED),
    FRIT_ROWS_SHARED_EXPERT(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"attention.q_lora_rank",       "attention.kv_lora_rank",
                                   "attention.key_length_mla",    "attention.value_length_mla",
                                   "attention.temperature_scale", "attention.temperature_length",
                                   "expert_weights_norm",         "leading_dense_block_count"};

const frit_arch frit_arch_deepseek2 = {
    .name = "deepseek2",
    .title = "DeepSeek-V2, V3, R1, Kimi-K2, GLM-4.7-Flash",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEIGHBOURS,
    .layer = frit_layer_sequential,
    .adjust = frit_mla_adjust,
};
