// SPDX-License-Identifier: MIT
// Falcon-H1. Attention and Mamba 2 in parallel after one norm, in every layer.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_IN_OUT,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(FRIT_WEIGHT_UNBIASED),
    FRIT_WEIGHTS_MAMBA2,
    FRIT_LAYER_WEIGHT(ffn_norm, "ffn_norm", N_EMBD, 1, FRIT_WEIGHT_WHOLE_NAME),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {FRIT_KEYS_MAMBA2, "attention.scale"};

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_node *h = frit_norm(b, &w->attn_norm, x);
    x = frit_add(b->g, x, frit_add(b->g, frit_attention(b, w, h, b->arch->attention), frit_mamba2(b, w, h)));
    return frit_add(b->g, x, frit_feed_forward(b, &w->ffn, frit_norm(b, &w->ffn_norm, x), b->hp->act));
}

static frit_status adjust(frit_hparams *hp)
{
    for (int32_t i = 0; i < hp->n_layer; i++) hp->layers[i].is_recurrent = true;
    return frit_recurrent_adjust(hp, true);
}

const frit_arch frit_arch_falcon_h1 = {
    .name = "falcon-h1",
    .title = "Falcon-H1",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .layer = layer,
    .recurrent = frit_mamba2,
    .adjust = adjust,
};
