// SPDX-License-Identifier: MIT
// Phi-3, Phi-4. As Llama; q, k and v are one matrix, gate and up another; long contexts have their own RoPE factors
// (LongRoPE).
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATE_IN_UP(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

const frit_arch frit_arch_phi3 = {
    .name = "phi3",
    .title = "Phi-3, Phi-4",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .layer = frit_layer_sequential,
};
