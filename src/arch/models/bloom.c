// SPDX-License-Identifier: MIT
// BLOOM. LayerNorm, also after the embeddings; ALiBi; GELU in an ungated feed-forward; biases everywhere.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_MODEL_WEIGHT(tok_norm, "token_embd_norm", N_EMBD, 1, 0),
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_UNGATED(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static frit_status adjust(frit_hparams *hp)
{
    hp->attn_alibi = 8;
    return FRIT_OK;
}

const frit_arch frit_arch_bloom = {
    .name = "bloom",
    .title = "BLOOM",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU_TANH,
    .attention = {.no_rope = true},
    .layer = frit_layer_sequential,
    .adjust = adjust,
};
