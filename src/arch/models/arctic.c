// SPDX-License-Identifier: MIT
// Arctic. A dense feed-forward after attention, in parallel with experts that read the layer's input.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_LAYER_WEIGHT(ffn.gate, "ffn_gate", N_EMBD, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(ffn.up,   "ffn_up",   N_EMBD, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(ffn.down, "ffn_down", N_EMBD, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_NORM(expert_norm, "ffn_norm_exps"),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_node *h = frit_norm(b, &w->attn_norm, x);
    frit_node *dense = frit_add(b->g, x, frit_attention(b, w, h, b->arch->attention));
    h = frit_norm(b, &w->ffn_norm, dense);
    dense = frit_add(b->g, dense, frit_feed_forward(b, &w->ffn, h, b->hp->act));
    h = frit_norm(b, &w->expert_norm, x);
    return frit_add(b->g, dense, frit_routed_experts(b, w, h, NULL));
}

const frit_arch frit_arch_arctic = {
    .name = "arctic",
    .title = "Arctic",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .expert_normalize = true,
    .layer = layer,
};
