// SPDX-License-Identifier: MIT
// Mistral 4. As DeepSeek-V3; with an attention temperature.
#include "arch/arch.h"

static const frit_weight_row rows[] = {FRIT_WEIGHTS_MLA_EXPERTS(FRIT_WEIGHT_UNSCALED)};

static const char *const keys[] = {FRIT_KEYS_MLA_EXPERTS, "attention.temperature_scale",
                                   "attention.temperature_length"};

const frit_arch frit_arch_mistral4 = {
    .name = "mistral4",
    .title = "Mistral 4",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .layer = frit_layer_sequential,
    .adjust = frit_mla_adjust,
};
