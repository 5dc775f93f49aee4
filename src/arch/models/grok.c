// SPDX-License-Identifier: MIT
// Grok. Soft caps on attention scores; norms before and after attention and feed-forward; GELU; experts, in parallel
// with a dense feed-forward where the file has one.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(post_attn_norm, "attn_output_norm"),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(post_ffn_norm, "layer_output_norm", N_EMBD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(post_ffn_norm, "post_ffw_norm", N_EMBD, 1, FRIT_WEIGHT_OPTIONAL),
};
// clang-format on

static const char *const keys[] = {"attn_logit_softcapping", "final_logit_softcapping", "embedding_scale",
                                   "logit_scale", "attention.output_scale"};

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_node *h = frit_norm(b, &w->attn_norm, x);
    h = frit_attention(b, w, h, b->arch->attention);
    x = frit_add(b->g, x, frit_norm(b, &w->post_attn_norm, h));
    h = frit_norm(b, &w->ffn_norm, x);
    frit_node *y = frit_routed_experts(b, w, h, NULL);
    if (frit_has(&w->ffn.up)) {
        y = frit_add(b->g, frit_feed_forward(b, &w->ffn, h, b->hp->act), y);
        y = frit_scale(b->g, y, 0.70710678f);   // sqrt(1/2)
    }
    return frit_add(b->g, x, frit_norm(b, &w->post_ffn_norm, y));
}

// Files without the keys are of Grok 1.
static frit_status adjust(frit_hparams *hp)
{
    if (hp->attn_softcap == 0) hp->attn_softcap = 30;
    if (hp->embd_scale == 0) hp->embd_scale = 78.38367176906169f;
    if (hp->logit_scale == 0) hp->logit_scale = 0.5773502691896257f;
    if (hp->attn_scale == 0) hp->attn_scale = 0.08838834764831845f;
    return FRIT_OK;
}

const frit_arch frit_arch_grok = {
    .name = "grok",
    .title = "Grok",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .act = FRIT_ACT_GELU_TANH,
    .expert_normalize = true,
    .layer = layer,
    .adjust = adjust,
};
