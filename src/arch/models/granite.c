// SPDX-License-Identifier: MIT
// Granite 3, HyperCLOVA X SEED. As Llama, with scales on embeddings, residuals, attention scores and logits; HyperCLOVA
// X has norms on both sides.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_LAYER_WEIGHT(post_attn_norm, "post_attention_norm", N_EMBD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_LAYER_WEIGHT(post_ffn_norm, "post_ffw_norm", N_EMBD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_SHARED_EXPERT(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"embedding_scale", "residual_scale", "attention.scale", "logit_scale",
                                   "rope.scaling.finetuned"};

static frit_status adjust(frit_hparams *hp)
{
    if (hp->logit_scale != 0) hp->logit_scale = 1 / hp->logit_scale;
    for (int32_t i = 0; i < hp->n_layer && !hp->is_rope_finetuned; i++) hp->layers[i].no_rope = true;
    return FRIT_OK;
}

const frit_arch frit_arch_granite = {
    .name = "granite",
    .title = "Granite 3",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .expert_normalize = true,
    .layer = frit_layer_sequential,
    .adjust = adjust,
};
