// SPDX-License-Identifier: MIT
// GLM-4 0414. As Llama, with additional norms after attention and feed-forward; gate and up are one matrix. Vision
// models use NeoX RoPE.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(post_attn_norm, "post_attention_norm"),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATE_IN_UP(FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_NORM(post_ffn_norm, "post_ffw_norm"),
};
// clang-format on

static frit_status adjust(frit_hparams *hp)
{
    if (hp->rope_sections[0] > 0 && hp->rope_sections[1] > 0) hp->rope_style = FRIT_ROPE_NEOX;
    return FRIT_OK;
}

const frit_arch frit_arch_glm4 = {
    .name = "glm4",
    .title = "GLM-4 0414",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .layer = frit_layer_sequential,
    .adjust = adjust,
};
