// SPDX-License-Identifier: MIT
// Falcon. LayerNorm; attention and feed-forward in parallel; the larger models have a separate norm for attention.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_LAYER_WEIGHT(attn_norm_2, "attn_norm_2", N_EMBD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_WEIGHTS_UNGATED(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

const frit_arch frit_arch_falcon = {
    .name = "falcon",
    .title = "Falcon",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU_TANH,
    .layer = frit_layer_parallel,
};
