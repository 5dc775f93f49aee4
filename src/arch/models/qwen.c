// SPDX-License-Identifier: MIT
// Qwen 1. As Llama, with biases on q, k and v; the file gives the summed width of gate and up.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_LAYER_WEIGHT(qkv, "attn_qkv", N_EMBD_3, N_EMBD, 0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static frit_status adjust(frit_hparams *hp)
{
    for (int32_t i = 0; i < hp->n_layer; i++) hp->layers[i].n_ff /= 2;
    return FRIT_OK;
}

const frit_arch frit_arch_qwen = {
    .name = "qwen",
    .title = "Qwen",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .layer = frit_layer_sequential,
    .adjust = adjust,
};
