// SPDX-License-Identifier: MIT
// SmallThinker. The router reads the layer's input; ReLU gates in experts; layers without a window have no RoPE.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_node *scores = frit_linear(b, &w->router, x);
    frit_node *h = frit_norm(b, &w->attn_norm, x);
    x = frit_add(b->g, x, frit_attention(b, w, h, b->arch->attention));
    h = frit_norm(b, &w->ffn_norm, x);
    return frit_add(b->g, x, frit_routed_experts(b, w, h, scores));
}

static frit_status adjust(frit_hparams *hp)
{
    bool slides = false;
    for (int32_t i = 0; i < hp->n_layer; i++) slides |= hp->layers[i].window > 0;
    for (int32_t i = 0; i < hp->n_layer && slides; i++) hp->layers[i].no_rope |= i % 4 == 0;
    return FRIT_OK;
}

const frit_arch frit_arch_smallthinker = {
    .name = "smallthinker",
    .title = "SmallThinker",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .act = FRIT_ACT_RELU,
    .windows = {.period = 4, .first_is_full = true},
    .expert_normalize = true,
    .layer = layer,
    .adjust = adjust,
};
