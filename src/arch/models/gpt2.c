// SPDX-License-Identifier: MIT
// GPT-2. LayerNorm; learned positions; GELU in an ungated feed-forward; biases everywhere.
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

static const char *const keys[] = {"attention.scale"};

const frit_arch frit_arch_gpt2 = {
    .name = "gpt2",
    .title = "GPT-2",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU_TANH,
    .attention = {.no_rope = true},
    .layer = frit_layer_sequential,
};
