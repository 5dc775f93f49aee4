// SPDX-License-Identifier: MIT
// Olmo-Hybrid. Gated delta nets with norms before each branch, in three of four layers; layers as in OLMo 3, without
// windows, in the others.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_LAYER_WEIGHT(attn_norm, "attn_norm", N_EMBD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_LAYER_WEIGHT(q_norm, "attn_q_norm", N_Q, 1, 0),
    FRIT_LAYER_WEIGHT(k_norm, "attn_k_norm", N_K, 1, 0),
    FRIT_ROW_NORM(post_attn_norm, "post_attention_norm"),
    FRIT_ROW_RECURRENT(q,     "ssm_q",      KEYS,       N_EMBD, 0),
    FRIT_ROW_RECURRENT(k,     "ssm_k",      KEYS,       N_EMBD, 0),
    FRIT_ROW_RECURRENT(v,     "ssm_v",      INNER,      N_EMBD, 0),
    FRIT_ROW_RECURRENT(z,     "attn_gate",  INNER,      N_EMBD, 0),
    FRIT_WEIGHTS_CONV,
    FRIT_ROW_RECURRENT(dt_b,  "ssm_dt.bias", RANK,      1, FRIT_WEIGHT_WHOLE_NAME),
    FRIT_ROW_RECURRENT(a,     "ssm_a",      RANK,       1, FRIT_WEIGHT_WHOLE_NAME),
    FRIT_ROW_RECURRENT(norm,  "ssm_norm",   DELTA_HEAD, 1, 0),
    FRIT_ROW_RECURRENT(alpha, "ssm_alpha",  RANK,       N_EMBD, 0),
    FRIT_ROW_RECURRENT(beta,  "ssm_beta",   RANK,       N_EMBD, 0),
    FRIT_ROW_RECURRENT(out,   "ssm_out",    N_EMBD,     INNER,  0),
    FRIT_WEIGHTS_GATED(0),
    FRIT_LAYER_WEIGHT(post_ffn_norm, "post_ffw_norm", N_EMBD, 1, FRIT_WEIGHT_OPTIONAL),
};
// clang-format on

static const char *const keys[] = {FRIT_KEYS_MAMBA2, "ssm.beta_scale", "ssm.norm_epsilon"};

static frit_node *delta_net(frit_build *b, const frit_layer *layer, frit_node *x)
{
    const frit_recurrent_weights *w = &layer->recurrent;
    frit_node *qkv = frit_concat(b->g, frit_linear(b, &w->q, x), frit_linear(b, &w->k, x));
    qkv = frit_concat(b->g, qkv, frit_linear(b, &w->v, x));
    return frit_delta_net(b, layer, frit_linear(b, &w->z, x), qkv, frit_linear(b, &w->alpha, x),
                          frit_linear(b, &w->beta, x), false);
}

// In layers with a delta net the norm of post_attn_norm precedes the feed-forward.
static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    if (!b->lhp->is_recurrent) return frit_layer_post_norm(b, w, x);
    x = frit_add(b->g, x, delta_net(b, w, frit_norm(b, &w->attn_norm, x)));
    return frit_add(b->g, x, frit_feed_forward(b, &w->ffn, frit_norm(b, &w->post_attn_norm, x), b->hp->act));
}

static frit_status adjust(frit_hparams *hp)
{
    if (hp->recurrent.n_groups < 1 || hp->recurrent.rank < 1)
        return frit_fail(FRIT_E_FORMAT, "delta nets have %d heads in %d groups, expected 1 or more",
                         (int)hp->recurrent.rank, (int)hp->recurrent.n_groups);
    return frit_hybrid_adjust(hp);
}

const frit_arch frit_arch_olmo_hybrid = {
    .name = "olmo-hybrid",
    .title = "Olmo-Hybrid",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .attention = {.qk_norm = FRIT_QK_NORM_WHOLE},
    .layer = layer,
    .recurrent = delta_net,
    .adjust = adjust,
};
