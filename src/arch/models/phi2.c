// SPDX-License-Identifier: MIT
// Phi-1 to 2. LayerNorm; RoPE on part of each head; attention and feed-forward in parallel after one norm.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_WEIGHTS_UNGATED(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

const frit_arch frit_arch_phi2 = {
    .name = "phi2",
    .title = "Phi-1, Phi-1.5, Phi-2",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU_TANH,
    .layer = frit_layer_parallel,
};
