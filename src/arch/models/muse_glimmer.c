// SPDX-License-Identifier: MIT
// Muse Glimmer (Meta). A norm after the embedding; gates on attention's output; norms on both sides; RoPE in layers
// with a window only; logits are scaled, then capped.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_LAYER_WEIGHT(q_norm, "attn_q_norm", HEAD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(k_norm, "attn_k_norm", HEAD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(head_gate, "attn_gate", GATE, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_NORM(post_attn_norm, "post_attention_norm"),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_NORM(post_ffn_norm, "post_ffw_norm"),
};
// clang-format on

static const char *const keys[] = {"final_logit_softcapping", "logit_scale", "attention.scale"};

static frit_status adjust(frit_hparams *hp)
{
    for (int32_t i = 0; i < hp->n_layer; i++) hp->layers[i].no_rope |= hp->layers[i].window == 0;
    return FRIT_OK;
}

static const float post_eps = 1e-8f;   // files have no key for it

static frit_node *post_norm(frit_build *b, const frit_weight *w, frit_node *x)
{
    return frit_rms_norm(b->g, x, frit_weight_node(b->g, w->w), post_eps);
}

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_node *h = frit_attention(b, w, frit_norm(b, &w->attn_norm, x), b->arch->attention);
    x = frit_add(b->g, x, post_norm(b, &w->post_attn_norm, h));
    h = frit_feed_forward(b, &w->ffn, frit_norm(b, &w->ffn_norm, x), b->hp->act);
    return frit_add(b->g, x, post_norm(b, &w->post_ffn_norm, h));
}

const frit_arch frit_arch_muse_glimmer = {
    .name = "muse-glimmer",
    .title = "Muse Glimmer",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .attention = {.bare_qk_norm = true},
    .norm_embedding = true,
    .windows = {.period = 4},
    .layer = layer,
    .adjust = adjust,
};
