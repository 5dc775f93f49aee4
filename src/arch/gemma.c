// SPDX-License-Identifier: MIT
// Gemma 1. As Llama, with GELU in the feed-forward, embeddings scaled by sqrt(n_embd), and the output tied to them.
// The 1 that its norms add to their weights is already in the stored ones.
#include "arch/arch.h"

#include <math.h>

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_MODEL_WEIGHT(tok_embd,   "token_embd",  N_VOCAB,    N_EMBD, FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(out_norm,   "output_norm", N_EMBD,     1,      0),
    FRIT_MODEL_WEIGHT(lm_head,    "output",      N_VOCAB,    N_EMBD, FRIT_WEIGHT_OR_TOK_EMBD),
    FRIT_MODEL_WEIGHT(rope_freqs, "rope_freqs",  ROPE_PAIRS, 1,      FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(attn_norm,  "attn_norm",   N_EMBD,     1,      0),
    FRIT_LAYER_WEIGHT(q,          "attn_q",      N_Q,        N_EMBD, 0),
    FRIT_LAYER_WEIGHT(k,          "attn_k",      N_K,        N_EMBD, 0),
    FRIT_LAYER_WEIGHT(v,          "attn_v",      N_V,        N_EMBD, 0),
    FRIT_LAYER_WEIGHT(o,          "attn_output", N_EMBD,     N_O,    0),
    FRIT_LAYER_WEIGHT(ffn_norm,   "ffn_norm",    N_EMBD,     1,      0),
    FRIT_LAYER_WEIGHT(gate,       "ffn_gate",    N_FF,       N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(up,         "ffn_up",      N_FF,       N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(down,       "ffn_down",    N_EMBD,     N_FF,   FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_node *h = frit_norm(b, &w->attn_norm, x);
    h = frit_attention(b, w, h, (frit_attention_options){0});
    x = frit_add(b->g, x, h);
    h = frit_norm(b, &w->ffn_norm, x);
    h = frit_feed_forward(b, w, h, (frit_ffn_options){.act = FRIT_ACT_GELU_TANH});
    return frit_add(b->g, x, h);
}

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
    .rope_style = FRIT_ROPE_HALVES,
    .layer = layer,
    .adjust = adjust,
};
