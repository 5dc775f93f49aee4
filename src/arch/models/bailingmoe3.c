// SPDX-License-Identifier: MIT
// Ling 3. As Kimi Linear; latent attention with RoPE and gated heads; decays have a lower bound.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_IN_OUT,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_MLA_IN,
    FRIT_LAYER_WEIGHT(o, "attn_output", N_EMBD, N_O_MLA, FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_KDA,
    FRIT_LAYER_WEIGHT(head_gate, "attn_gate", N_HEAD, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_RECURRENT(decay_a, "ssm_f_a", INNER, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_RECURRENT(gate_a,  "ssm_g_a", INNER, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_SHARED_EXPERT(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"swiglu_clamp_exp",           "swiglu_clamp_shexp",       "expert_weights_norm",
                                   "kda.gate_lower_bound",       "ssm.conv_kernel",          "kda.head_dim",
                                   "attention.q_lora_rank",      "attention.kv_lora_rank",   "attention.key_length_mla",
                                   "attention.value_length_mla", "leading_dense_block_count"};

static frit_status adjust(frit_hparams *hp)
{
    hp->recurrent.is_bounded = true;
    return frit_kda_adjust(hp);
}

const frit_arch frit_arch_bailingmoe3 = {
    .name = "bailingmoe3",
    .title = "Ling 3",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .gating = FRIT_GATING_SIGMOID,
    .layer = frit_layer_sequential,
    .recurrent = frit_kda,
    .adjust = adjust,
};
