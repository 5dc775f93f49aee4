// SPDX-License-Identifier: MIT
// Gemma 1. As Llama, with GELU in the feed-forward, embeddings scaled by sqrt(n_embd), and an output tied to the
// embeddings. GGUF files store norm weights with the 1 already added.
#include "arch/arch.h"

#include <math.h>

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
    hp->embd_scale = sqrtf((float)hp->n_embd);
    return FRIT_OK;
}

const frit_arch frit_arch_gemma = {
    .name = "gemma",
    .title = "Gemma",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .act = FRIT_ACT_GELU_TANH,
    .layer = frit_layer_sequential,
    .adjust = adjust,
};
