// SPDX-License-Identifier: MIT
// Mistral 4. As DeepSeek-V3; scores of far positions are sharpened.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_ROWS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_LAYER_WEIGHT(q,         "attn_q",         N_Q_MLA, N_EMBD,   FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(q_a,       "attn_q_a",       Q_RANK,  N_EMBD,   FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(q_a_norm,  "attn_q_a_norm",  Q_RANK,  1,        0),
    FRIT_LAYER_WEIGHT(q_b,       "attn_q_b",       N_Q_MLA, Q_RANK,   FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(kv_a,      "attn_kv_a_mqa",  KV_A,    N_EMBD,   FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(kv_a_norm, "attn_kv_a_norm", KV_RANK, 1,        0),
    FRIT_LAYER_STACK(k_b,        "attn_k_b",       N_HEAD,  KV_RANK,  NOPE_MLA, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_STACK(v_b,        "attn_v_b",       N_HEAD,  V_MLA,    KV_RANK,  FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(kv_b,      "attn_kv_b",      N_KV_B,  KV_RANK,  FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(o,         "attn_output",    N_EMBD,  N_O_MLA,  0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_ROWS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_ROWS_EXPERTS(FRIT_WEIGHT_UNSCALED),
    FRIT_ROWS_SHARED_EXPERT(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"attention.q_lora_rank",       "attention.kv_lora_rank",
                                   "attention.key_length_mla",    "attention.value_length_mla",
                                   "attention.temperature_scale", "attention.temperature_length",
                                   "expert_weights_norm",         "leading_dense_block_count"};

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_node *h = frit_norm(b, &w->attn_norm, x);
    x = frit_residual(b, x, frit_attention_mla(b, w, h));
    h = frit_norm(b, &w->ffn_norm, x);
    return frit_residual(b, x, frit_feed_forward_or_experts(b, w, h));
}

const frit_arch frit_arch_mistral4 = {
    .name = "mistral4",
    .title = "Mistral 4",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEIGHBOURS,
    .layer = layer,
    .adjust = frit_mla_adjust,
};
