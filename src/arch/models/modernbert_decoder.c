// SPDX-License-Identifier: MIT
// Decoders of ModernBERT (Ettin). As ModernBERT, but causal, with a dense layer and a norm before the output.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_MODEL_WEIGHT(tok_embd, "token_embd",      N_VOCAB, N_EMBD, FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(tok_norm, "token_embd_norm", N_EMBD,  1,      0),
    FRIT_MODEL_WEIGHT(out_norm, "output_norm",     N_EMBD,  1,      0),
    FRIT_WEIGHTS_MASKED_LM,
    FRIT_LAYER_WEIGHT(attn_norm, "attn_norm",      N_EMBD,  1,      FRIT_WEIGHT_OPTIONAL),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATE_IN_UP(0),
};
// clang-format on

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_node *h = frit_has(&w->attn_norm) ? frit_norm(b, &w->attn_norm, x) : x;
    x = frit_add(b->g, x, frit_attention(b, w, h, b->arch->attention));
    return frit_add(b->g, x, frit_feed_forward(b, &w->ffn, frit_norm(b, &w->ffn_norm, x), b->hp->act));
}

const frit_arch frit_arch_modernbert_decoder = {
    .name = "modernbert-decoder",
    .title = "ModernBERT decoders, Ettin",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU,
    .windows = {.period = 3, .first_is_full = true},
    .layer = layer,
};
