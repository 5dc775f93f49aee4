// SPDX-License-Identifier: MIT
// Baichuan. As Llama with 32 layers; with 40 layers, ALiBi instead of RoPE. Files have no key for the difference, and
// no published model has another number of layers: llama.cpp runs it without RoPE and without ALiBi.
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

static frit_status adjust(frit_hparams *hp)
{
    if (hp->n_layer == 40) hp->attn_alibi = 8;
    for (int32_t i = 0; i < hp->n_layer && hp->n_layer != 32; i++) hp->layers[i].no_rope = true;
    return FRIT_OK;
}

const frit_arch frit_arch_baichuan = {
    .name = "baichuan",
    .title = "Baichuan",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .layer = frit_layer_sequential,
    .adjust = adjust,
};
