// SPDX-License-Identifier: MIT
// OLMoE. QK norms over all heads; experts.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_UNBIASED),
    FRIT_ROW_O(0),
    FRIT_LAYER_WEIGHT(q_norm, "attn_q_norm", N_Q, 1, 0),
    FRIT_LAYER_WEIGHT(k_norm, "attn_k_norm", N_K, 1, 0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

const frit_arch frit_arch_olmoe = {
    .name = "olmoe",
    .title = "OLMoE",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .attention = {.qk_norm = FRIT_QK_NORM_WHOLE},
    .layer = frit_layer_sequential,
};
