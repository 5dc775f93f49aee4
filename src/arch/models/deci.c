// SPDX-License-Identifier: MIT
// DeciLM, Llama Nemotron. As Llama, but each layer has its own head counts and widths: none, or a matrix instead of
// attention.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_LAYER_WEIGHT(attn_norm, "attn_norm", N_EMBD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_WEIGHTS_QKV(FRIT_WEIGHT_OPTIONAL),
    FRIT_ROW_O(0),
    FRIT_LAYER_WEIGHT(ffn_norm, "ffn_norm", N_EMBD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"attention.scale"};

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    if (b->lhp->n_head > 0) {
        frit_node *h = frit_norm(b, &w->attn_norm, x);
        h = b->lhp->n_head_kv > 0 ? frit_attention(b, w, h, b->arch->attention) : frit_linear(b, &w->o, h);
        if (b->lhp->n_ff == 0) return h;
        x = frit_add(b->g, x, h);
    }
    if (b->lhp->n_ff == 0) return x;
    frit_node *h = frit_norm(b, &w->ffn_norm, x);
    return frit_add(b->g, x, frit_feed_forward(b, &w->ffn, h, b->hp->act));
}

const frit_arch frit_arch_deci = {
    .name = "deci",
    .title = "DeciLM, Llama Nemotron",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .layer = layer,
};
