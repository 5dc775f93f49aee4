// SPDX-License-Identifier: MIT
// LLaDA MoE. As OLMoE with QK norms per head, but bidirectional: a text diffusion model.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_HEAD_NORMS,
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static frit_status adjust(frit_hparams *hp)
{
    hp->is_bidirectional = true;
    return FRIT_OK;
}

const frit_arch frit_arch_llada_moe = {
    .name = "llada-moe",
    .title = "LLaDA MoE",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .layer = frit_layer_sequential,
    .adjust = adjust,
};
