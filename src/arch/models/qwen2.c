// SPDX-License-Identifier: MIT
// Qwen2 and Qwen2.5. As Llama, with biases on q, k and v.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

const frit_arch frit_arch_qwen2 = {
    .name = "qwen2",
    .title = "Qwen2, Qwen2.5",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .reads_media = true,
    .layer = frit_layer_sequential,
};
