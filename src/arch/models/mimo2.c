// SPDX-License-Identifier: MIT
// MiMo-V2-Flash, MiMo-V2.5. Values narrower than keys, and scaled; other KV heads, and sinks, in layers with a window;
// RoPE on part of each head.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_LAYER_WEIGHT(sinks, "attn_sinks", N_HEAD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"expert_weights_norm", "leading_dense_block_count", "attention.value_scale"};

const frit_arch frit_arch_mimo2 = {
    .name = "mimo2",
    .title = "MiMo-V2-Flash, MiMo-V2.5",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .windows = {.period = 4},
    .gating = FRIT_GATING_SIGMOID,
    .layer = frit_layer_sequential,
};
