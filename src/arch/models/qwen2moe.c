// SPDX-License-Identifier: MIT
// Qwen1.5-MoE, Qwen2-MoE. As Qwen2, with experts, and shared experts weighted by a sigmoid.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_SHARED_EXPERT(FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(shared_gate, "ffn_gate_inp_shexp", 1, N_EMBD, FRIT_WEIGHT_EXPERT),
};
// clang-format on

static frit_status adjust(frit_hparams *hp)
{
    if (hp->n_ff_shexp == 0) hp->n_ff_shexp = hp->layers[0].n_ff;
    return FRIT_OK;
}

const frit_arch frit_arch_qwen2moe = {
    .name = "qwen2moe",
    .title = "Qwen1.5-MoE, Qwen2-MoE",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .layer = frit_layer_sequential,
    .adjust = adjust,
};
