// SPDX-License-Identifier: MIT
// Laguna (poolside). Softplus gates on attention's output, for heads or elements; more query heads, and RoPE without
// scaling, in layers with a window.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_WEIGHTS_HEAD_NORMS,
    FRIT_LAYER_WEIGHT(head_gate, "attn_gate", GATE, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_SHARED_EXPERT(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"expert_weights_norm", "leading_dense_block_count", "rope.dimension_count_swa"};

const frit_arch frit_arch_laguna = {
    .name = "laguna",
    .title = "Laguna",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .attention = {.softplus_gate = true},
    .windows = {.period = 4, .first_is_full = true, .plain_rope = true},
    .gating = FRIT_GATING_SIGMOID,
    .layer = frit_layer_sequential,
};
