// SPDX-License-Identifier: MIT
// MiniCPM. As Llama, with scales on embeddings, residuals and logits; old files without the keys get defaults.
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
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"embedding_scale", "residual_scale", "attention.scale", "logit_scale"};

static frit_status adjust(frit_hparams *hp)
{
    if (hp->embd_scale == 0) hp->embd_scale = 12;
    if (hp->residual_scale == 0) hp->residual_scale = 1.4f / sqrtf((float)hp->n_layer);
    hp->logit_scale = 1 / (hp->logit_scale != 0 ? hp->logit_scale : 256 / (float)hp->n_embd);
    return FRIT_OK;
}

const frit_arch frit_arch_minicpm = {
    .name = "minicpm",
    .title = "MiniCPM",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .expert_normalize = true,
    .layer = frit_layer_sequential,
    .adjust = adjust,
};
