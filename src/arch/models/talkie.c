// SPDX-License-Identifier: MIT
// Talkie. Norms without weights; QK norms after the rotation, and a gain for each head of q; each layer adds the scaled
// embedding.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_MODEL_WEIGHT(tok_embd,   "token_embd",         N_VOCAB, N_EMBD, FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(lm_head,    "output",             N_VOCAB, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_LAYER_WEIGHT(q_norm,    "attn_q_norm",        N_Q,     1,      FRIT_WEIGHT_SPREAD),
    FRIT_LAYER_WEIGHT(ffn.gate,  "ffn_gate",           N_FF,    N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(ffn.up,    "ffn_up",             N_FF,    N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(ffn.down,  "ffn_down",           N_EMBD,  N_FF,   FRIT_WEIGHT_SCALE_LAST),
    FRIT_LAYER_WEIGHT(out_scale, "layer_output_scale", N_EMBD,  1,      FRIT_WEIGHT_SPREAD),
};
// clang-format on

static const char *const keys[] = {"logit_scale"};

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    x = frit_layer_sequential(b, w, x);
    return frit_add(b->g, x, frit_mul(b->g, b->embedding, frit_weight_node(b->g, w->out_scale.w)));
}

const frit_arch frit_arch_talkie = {
    .name = "talkie",
    .title = "Talkie",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .attention = {.norm_after_rope = true, .bare_qk_norm = true, .qk_norm = FRIT_QK_NORM_HEADS},
    .norm_embedding = true,
    .layer = layer,
};
