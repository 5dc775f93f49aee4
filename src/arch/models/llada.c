// SPDX-License-Identifier: MIT
// LLaDA. As Llama, but bidirectional: a text diffusion model.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_IN_OUT,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(FRIT_WEIGHT_UNBIASED),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_UNBIASED),
};
// clang-format on

static frit_status adjust(frit_hparams *hp)
{
    hp->is_bidirectional = true;
    return FRIT_OK;
}

const frit_arch frit_arch_llada = {
    .name = "llada",
    .title = "LLaDA",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .layer = frit_layer_sequential,
    .adjust = adjust,
};
