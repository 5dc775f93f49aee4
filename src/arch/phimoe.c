// SPDX-License-Identifier: MIT
// Phi-3.5 MoE. Norms have biases; softmax over all experts, of which two are used.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_ROWS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_ROWS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_ROWS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_ROWS_EXPERTS(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

const frit_arch frit_arch_phimoe = {
    .name = "phimoe",
    .title = "Phi-3.5 MoE",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_HALVES,
    .expert_normalize = true,
    .layer = frit_layer_sequential,
};
