// SPDX-License-Identifier: MIT
// DeepSeek-V2 to V3, Kimi-K2. Latent attention (MLA); experts in groups, shared experts.
#include "arch/arch.h"

static const frit_weight_row rows[] = {FRIT_WEIGHTS_MLA_EXPERTS(FRIT_WEIGHT_UNSCALED)};

static const char *const keys[] = {FRIT_KEYS_MLA_EXPERTS, "attention.temperature_scale",
                                   "attention.temperature_length"};

const frit_arch frit_arch_deepseek2 = {
    .name = "deepseek2",
    .title = "DeepSeek-V2, V3, R1, Kimi-K2, GLM-4.7-Flash",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .layer = frit_layer_sequential,
    .adjust = frit_mla_adjust,
};
