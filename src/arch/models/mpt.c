// SPDX-License-Identifier: MIT
// MPT. LayerNorm; ALiBi or learned positions; GELU in an ungated feed-forward; q, k and v may be clamped.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_MODEL_WEIGHT(pos_embd, "position_embd", N_CTX, N_EMBD, FRIT_WEIGHT_TABLE | FRIT_WEIGHT_OPTIONAL),
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_LAYER_WEIGHT(q_norm, "attn_q_norm", N_EMBD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(k_norm, "attn_k_norm", N_EMBD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_WEIGHTS_UNGATED(FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(act_scale, "ffn.act.scales", N_FF, 1, FRIT_WEIGHT_OPTIONAL | FRIT_WEIGHT_WHOLE_NAME | FRIT_WEIGHT_INVERSE),
};
// clang-format on

static const char *const keys[] = {"attention.clamp_kqv", "attention.max_alibi_bias", "attention.scale"};

// As frit_layer_sequential, but quantizers may have scaled the activation's output.
static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_node *h = frit_norm(b, &w->attn_norm, x);
    x = frit_add(b->g, x, frit_attention(b, w, h, b->arch->attention));
    h = frit_linear(b, &w->ffn.up, frit_norm(b, &w->ffn_norm, x));
    h = frit_activate(b->g, h, b->hp->act);
    if (frit_has(&w->act_scale)) h = frit_mul(b->g, h, frit_weight_node(b->g, w->act_scale.w));
    return frit_add(b->g, x, frit_linear(b, &w->ffn.down, h));
}

const frit_arch frit_arch_mpt = {
    .name = "mpt",
    .title = "MPT",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU_TANH,
    .attention = {.no_rope = true, .qk_norm = FRIT_QK_NORM_WHOLE},
    .layer = layer,
};
