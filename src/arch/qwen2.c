// SPDX-License-Identifier: MIT
// Qwen2 and Qwen2.5. As Llama, with biases on q, k and v.
#include "arch/arch.h"

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
    h = frit_feed_forward(b, w, h, (frit_ffn_options){.act = FRIT_ACT_SILU});
    return frit_add(b->g, x, h);
}

const frit_arch frit_arch_qwen2 = {
    .name = "qwen2",
    .title = "Qwen2, Qwen2.5",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_HALVES,
    .layer = layer,
};
