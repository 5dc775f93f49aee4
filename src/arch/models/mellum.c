// SPDX-License-Identifier: MIT
// Mellum 2. As Qwen3 MoE, with windows; layers with a window use RoPE without scaling.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_HEAD_NORMS,
    FRIT_WEIGHTS_EXPERTS(0),
};
// clang-format on

static const char *const keys[] = {"attention.sliding_window"};

const frit_arch frit_arch_mellum = {
    .name = "mellum",
    .title = "Mellum 2",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .windows = {.period = 4, .plain_rope = true},
    .expert_normalize = true,
    .layer = frit_layer_sequential,
};
