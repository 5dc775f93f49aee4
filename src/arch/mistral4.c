// SPDX-License-Identifier: MIT
// Mistral 4. As DeepSeek-V3; scores of far positions are sharpened.
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

const frit_arch frit_arch_mistral4 = {
    .name = "mistral4",
    .title = "Mistral 4",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEIGHBOURS,
    .layer = frit_layer_sequential,
    .adjust = frit_mla_adjust,
};
