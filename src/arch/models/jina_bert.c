// SPDX-License-Identifier: MIT
// jina-embeddings v2 and v3. As BERT without learned positions. Version 2 has ALiBi over |i - j| and gated GELU; its
// models for code also have norms over all heads of queries and keys, and a second sum and norm after attention.
// Version 3 has RoPE.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row v2_rows[] = {
    FRIT_WEIGHTS_BERT,
    FRIT_LAYER_WEIGHT(q_norm, "attn_q_norm", N_Q, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(k_norm, "attn_k_norm", N_K, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(attn_norm_2, "attn_norm_2", N_EMBD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_WEIGHTS_GATED_OR_FUSED,
};

static const frit_weight_row v3_rows[] = {
    FRIT_WEIGHTS_BERT,
    FRIT_WEIGHTS_UNGATED(0),
};
// clang-format on

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    const frit_attention_options options = {.no_rope = true, .qk_norm = FRIT_QK_NORM_WHOLE};
    frit_node *h = frit_norm(b, &w->post_attn_norm, frit_add(b->g, x, frit_attention(b, w, x, options)));
    if (frit_has(&w->attn_norm_2)) h = frit_norm(b, &w->attn_norm_2, frit_add(b->g, h, x));
    x = frit_add(b->g, h, frit_feed_forward(b, &w->ffn, h, b->hp->act));
    return frit_norm(b, &w->post_ffn_norm, x);
}

static frit_status adjust(frit_hparams *hp)
{
    hp->attn_alibi = 8;
    return FRIT_OK;
}

const frit_arch frit_arch_jina_bert_v2 = {
    .name = "jina-bert-v2",
    .title = "jina-embeddings v2",
    .rows = v2_rows,
    .n_rows = FRIT_COUNT(v2_rows),
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU,
    .is_encoder = true,
    .no_out_norm = true,
    .adjust = adjust,
    .layer = layer,
};

const frit_arch frit_arch_jina_bert_v3 = {
    .name = "jina-bert-v3",
    .title = "jina-embeddings v3",
    .rows = v3_rows,
    .n_rows = FRIT_COUNT(v3_rows),
    .rope_style = FRIT_ROPE_NEOX,
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU,
    .is_encoder = true,
    .no_out_norm = true,
    .layer = frit_layer_norm_sums,
};
