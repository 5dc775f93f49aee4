// SPDX-License-Identifier: MIT
// StarCoder, SantaCoder. As GPT-2, with one KV head.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_MODEL_WEIGHT(pos_embd, "position_embd", N_CTX, N_EMBD, FRIT_WEIGHT_TABLE),
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_UNGATED(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

const frit_arch frit_arch_starcoder = {
    .name = "starcoder",
    .title = "StarCoder",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU_TANH,
    .attention = {.no_rope = true},
    .layer = frit_layer_sequential,
};
