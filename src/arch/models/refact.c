// SPDX-License-Identifier: MIT
// Refact. As Llama, with ALiBi instead of RoPE; biases of o and the feed-forward are ignored.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(FRIT_WEIGHT_UNBIASED),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_UNBIASED),
    FRIT_LAYER_WEIGHT(unused, "ffn_gate_inp", N_EXPERT, N_EMBD, FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_STACK(unused, "ffn_gate_exps", N_EXPERT, N_FF_EXP, N_EMBD, FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_STACK(unused, "ffn_up_exps",   N_EXPERT, N_FF_EXP, N_EMBD, FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_STACK(unused, "ffn_down_exps", N_EXPERT, N_EMBD, N_FF_EXP, FRIT_WEIGHT_OPTIONAL),
};
// clang-format on

// llama.cpp, which defines these files, loads experts for this architecture but does not run them, so the feed-forward
// has only its activation. No model with experts was published.
static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    if (frit_has(&w->ffn.up)) return frit_layer_sequential(b, w, x);
    frit_node *h = frit_norm(b, &w->attn_norm, x);
    x = frit_add(b->g, x, frit_attention(b, w, h, b->arch->attention));
    return frit_add(b->g, x, frit_activate(b->g, frit_norm(b, &w->ffn_norm, x), b->hp->act));
}

static frit_status adjust(frit_hparams *hp)
{
    hp->attn_alibi = 8;
    return FRIT_OK;
}

const frit_arch frit_arch_refact = {
    .name = "refact",
    .title = "Refact",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .attention = {.no_rope = true},
    .layer = layer,
    .adjust = adjust,
};
